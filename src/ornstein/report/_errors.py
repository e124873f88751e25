r"""Standard errors over rows of calibration errors.

$\mathrm{ECE} = \frac{1}{N} |\sum_{i \in b} (c_i - r_i)|$ summed over bins b, with
confidence c and rightness r. With the sign $s_b$ of each bin's gap as it is seen, that
is the mean of $s_{b(i)} (c_i - r_i)$ over rows, whose standard error is known: the
delta method, too small where gaps are no larger than their noise, for signs are then
chance.
"""

import numpy as np

from .._types import Bool, Float
from ..metrics import mean_and_error

NUM_BINS = 15
_NUM_LEVELS = 19


def ece_error(
    confidence: Float[np.ndarray, " rows"], is_right: Bool[np.ndarray, " rows"]
) -> float:
    """The standard error over rows of the expected calibration error.

    Args:
        confidence: of the guessed class.
        is_right: whether that is the class.
    """
    bins = bins_of(confidence)
    gaps = confidence - is_right
    signs = np.sign(np.bincount(bins, weights=gaps, minlength=NUM_BINS))
    return mean_and_error(signs[bins] * gaps)[1]


def bins_of(confidence: Float[np.ndarray, " rows"]) -> np.ndarray:
    """The bin of equal width of each row, as in `metrics.reliability`.

    Args:
        confidence: of the guessed class.
    """
    return np.clip(np.ceil(confidence * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)


def quantile_error(
    cdf: Float[np.ndarray, "rows ..."], mask: Bool[np.ndarray, "rows ..."] | None = None
) -> float:
    """The standard error over rows of `metrics.regression_calibration_error`.

    Args:
        cdf: the predictive distribution function at each target.
        mask: of the targets that were observed; by default all.
    """
    mask = np.ones(cdf.shape, bool) if mask is None else mask
    levels = np.linspace(0, 1, _NUM_LEVELS + 2)[1:-1]
    shares = np.array([np.mean(cdf[mask] <= level) for level in levels])
    signs = np.sign(shares - levels)
    gaps = np.zeros(cdf.shape)
    for level, sign in zip(levels, signs, strict=True):
        gaps += sign * ((cdf <= level) - level)
    axes = tuple(range(1, mask.ndim))
    totals = np.sum(np.where(mask, gaps / _NUM_LEVELS, 0.0), axis=axes)
    return mean_and_error(totals, np.sum(mask, axis=axes))[1]
