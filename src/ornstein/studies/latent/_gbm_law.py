r"""What is known of `toy/gbm`: its evidence and its future, by quadrature.

Of a path, $u = \log X$ has Gaussian steps, $u(t + s) = u(t) + N(7s/8, s/4)$, from
$X(0) \sim N(1, 0.3^2)$, and is seen as $y = X + N(0, 0.1^2)$. Its density lives on a
grid of u; an observation multiplies it, and time convolves it. Starts below 0, one in
2,300, are left out: no path of the set has one.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ..._types import Float

_START, _START_SCALE = 1.0, 0.3
_VOLATILITY = 0.5
_GROWTH = 1.0 - _VOLATILITY**2 / 2  # of log X
_NOISE = 0.1
_STEP = 0.02
_LOG_X = np.arange(-4.0, 4.0 + _STEP / 2, _STEP)
_X = np.exp(_LOG_X)
_Y = np.linspace(-1.0, 30.0, 1241)  # where the distribution of a value is tabulated


class Known(NamedTuple):
    """The exact answers for series of one feature.

    Attributes:
        evidence: log p(observed), nats, of each series.
        density: p(u | observed) at each time asked for.
    """

    evidence: Float[np.ndarray, " rows"]
    density: Float[np.ndarray, "rows times grid"]

    @property
    def mean(self) -> Float[np.ndarray, "rows times"]:
        """Of the value at each time."""
        return self.density @ _X * _STEP

    def cdf(
        self, y: Float[np.ndarray, "rows times"]
    ) -> Float[np.ndarray, "rows times"]:
        """P(value ≤ y)."""
        below = ndtr((y[..., None] - _X) / _NOISE)
        return np.sum(self.density * below, axis=-1) * _STEP

    def log_prob(
        self, y: Float[np.ndarray, "rows times"]
    ) -> Float[np.ndarray, "rows times"]:
        """Of each value by itself, nats."""
        return np.log(np.sum(self.density * _normal(y[..., None], _X, _NOISE), -1)) + (
            np.log(_STEP)
        )

    def quantiles(
        self, levels: tuple[float, ...]
    ) -> Float[np.ndarray, "levels rows times"]:
        """Of each value, from a table of its distribution function."""
        below = ndtr((_Y - _X[:, None]) / _NOISE)
        cdf = self.density @ below * _STEP
        find = lambda row: np.interp(levels, row, _Y)
        return np.moveaxis(np.apply_along_axis(find, -1, cdf), -1, 0)


def known(
    ts: Float[np.ndarray, " times"],
    values: Float[np.ndarray, "rows times"],
    future: Float[np.ndarray, " asked"],
) -> Known:
    """Filter, then look ahead.

    Args:
        ts: increasing, from 0, the start of the paths.
        values: observed then.
        future: later times.
    """
    density = np.tile(_normal(_X, _START, _START_SCALE) * _X, (len(values), 1))
    evidence = np.zeros(len(values))
    for i, (t, y) in enumerate(zip(ts, values.T, strict=True)):
        if i:
            density = _after(density, t - ts[i - 1])
        density = density * _normal(y[:, None], _X, _NOISE)
        mass = np.sum(density, axis=1) * _STEP
        evidence += np.log(mass)
        density /= mass[:, None]
    ahead = [_after(density, t - ts[-1]) for t in future]
    return Known(evidence, np.stack(ahead, axis=1))


def _after(
    density: Float[np.ndarray, "rows grid"], time: float
) -> Float[np.ndarray, "rows grid"]:
    moved = _LOG_X[:, None] + _GROWTH * time
    kernel = _normal(_LOG_X, moved, _VOLATILITY * np.sqrt(time))
    return density @ kernel * _STEP


def _normal(
    x: np.ndarray, mean: np.ndarray | float, scale: float
) -> Float[np.ndarray, "..."]:
    return np.exp(-(((x - mean) / scale) ** 2) / 2) / (scale * np.sqrt(2 * np.pi))
