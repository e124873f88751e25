"""How far two distributions over the same bins are apart."""

import numpy as np

from .._types import Float


def total_variation(
    first: Float[np.ndarray, " bins"], second: Float[np.ndarray, " bins"]
) -> float:
    r"""$\frac12 \sum_k |p_k - q_k|$: 0 for equal masses, 1 for disjoint ones.

    Args:
        first: masses of one distribution, which sum to 1.
        second: the other's masses of the same places, which sum to 1.
    """
    return 0.5 * float(np.sum(abs(first - second)))
