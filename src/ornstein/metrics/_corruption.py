"""Errors under corruptions of the inputs, relative to a reference.

Hendrycks & Dietterich, "Benchmarking neural network robustness to common corruptions
and perturbations" (ICLR 2019), section 4.
"""

import numpy as np

from .._types import Float
from ._arrays import AnyArray


def mean_corruption_error(
    errors: Float[AnyArray, "corruptions severities"],
    reference: float | Float[AnyArray, "corruptions severities"],
) -> float:
    r"""mCE: the mean over corruptions $c$ of $\sum_s E_{cs} / \sum_s R_{cs}$.

    Args:
        errors: $E$, the error rate at each severity $s$ of each corruption.
        reference: $R$, a baseline's error rates; or one number, such as the model's own
            error on clean inputs.
    """
    errors = np.asarray(errors, np.float64)
    reference = np.broadcast_to(np.asarray(reference, np.float64), errors.shape)
    return float(np.mean(errors.sum(1) / reference.sum(1)))


def relative_corruption_error(
    errors: Float[AnyArray, "corruptions severities"],
    reference: Float[AnyArray, "corruptions severities"],
    *,
    clean_error: float,
    clean_reference: float,
) -> float:
    """Relative mCE: `mean_corruption_error` of what corruption adds to the clean error.

    Args:
        errors: the error rate at each severity of each corruption.
        reference: a baseline's error rates.
        clean_error: the error rate on clean inputs.
        clean_reference: the baseline's.
    """
    return mean_corruption_error(
        np.asarray(errors, np.float64) - clean_error,
        np.asarray(reference, np.float64) - clean_reference,
    )
