"""A mean over values, whose error is that of the rows which hold them."""

import math

import numpy as np
from numpy.typing import ArrayLike


def mean_and_error(
    totals: ArrayLike, counts: ArrayLike | None = None
) -> tuple[float, float]:
    r"""A mean over values and its standard error over rows.

    $R = \sum_i t_i / \sum_i n_i$ for a row $i$ of $n_i$ values that add up to $t_i$.
    Values of one row depend on each other, so that rows are what the error counts: of
    this ratio of two means it is, to first order,
    $\frac{1}{\bar n} \sqrt{\frac{\sum_i (t_i - R n_i)^2}{N (N - 1)}}$. With a value a
    row it is the mean's own, and exact. Rows without values say nothing, and are left
    out of $N$.

    Args:
        totals: $t_i$, the sum of each row's values.
        counts: $n_i$, how many they are; 1 by default.

    Returns:
        $R$ and its standard error, which is NaN for a single row of values.

    Raises:
        ValueError: if no row holds a value.

    References:
        Cochran (1977), "Sampling Techniques", equation 2.46.
    """
    totals = np.asarray(totals, np.float64)
    counts = np.ones_like(totals) if counts is None else np.asarray(counts, np.float64)
    totals, counts = totals[counts > 0], counts[counts > 0]
    if totals.size == 0:
        raise ValueError("There is no value to average: give rows that hold some.")
    num_rows, mean = totals.size, totals.sum() / counts.sum()
    if num_rows < 2:
        return float(mean), math.nan
    squares = np.sum((totals - mean * counts) ** 2)
    error = math.sqrt(squares / (num_rows * (num_rows - 1))) / counts.mean()
    return float(mean), float(error)
