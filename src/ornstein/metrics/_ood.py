"""Telling out-of-distribution inputs apart by an uncertainty score.

The positive class is "out of distribution", and a higher score means "more unlike the
training data" (Hendrycks & Gimpel, ICLR 2017). In NumPy and double precision: sums of
ranks are beyond single precision.
"""

import math

import numpy as np
import scipy

from .._types import Float
from ._arrays import AnyArray


def auroc(
    scores_in: Float[AnyArray, " rows_in"], scores_out: Float[AnyArray, " rows_out"]
) -> float:
    """The chance that a random outside row scores above a random inside one.

    Ties count half. 0.5 is a coin's, 1 is perfect, whatever the numbers of rows.

    Args:
        scores_in: scores of rows like the training data.
        scores_out: scores of rows unlike it.
    """
    inside, outside = _check(scores_in), _check(scores_out)
    ranks = scipy.stats.rankdata(np.concatenate([inside, outside]))[inside.size :]
    num_won = ranks.sum() - outside.size * (outside.size + 1) / 2
    return float(num_won / (inside.size * outside.size))


def aupr(
    scores_in: Float[AnyArray, " rows_in"], scores_out: Float[AnyArray, " rows_out"]
) -> float:
    r"""Average precision: $\sum_t (R_t - R_{t-1}) P_t$ over thresholds.

    A coin's value is the share of outside rows, so that it depends on their number.

    Args:
        scores_in: scores of rows like the training data.
        scores_out: scores of rows unlike it.
    """
    inside, outside = np.sort(_check(scores_in)), np.sort(_check(scores_out))
    thresholds, counts = np.unique(outside, return_counts=True)
    num_hits = outside.size - np.searchsorted(outside, thresholds)
    num_false = inside.size - np.searchsorted(inside, thresholds)
    precision = num_hits / (num_hits + num_false)
    return float(np.sum(counts * precision) / outside.size)


def fpr95(
    scores_in: Float[AnyArray, " rows_in"], scores_out: Float[AnyArray, " rows_out"]
) -> float:
    """The share of inside rows flagged where at least 95 % of outside rows are.

    Args:
        scores_in: scores of rows like the training data.
        scores_out: scores of rows unlike it.
    """
    inside, outside = _check(scores_in), np.sort(_check(scores_out))
    # In whole rows: 0.95 * 20 must round up to 19, not to 20.
    num_flagged = math.ceil(95 * outside.size / 100)
    return float(np.mean(inside >= outside[outside.size - num_flagged]))


def _check(scores: Float[AnyArray, " rows"]) -> np.ndarray:
    values = np.asarray(scores, np.float64)
    if values.size == 0 or np.any(np.isnan(values)):
        raise ValueError(
            f"Got {values.size} scores, {np.sum(np.isnan(values))} of them NaN, but "
            "need at least one and no NaN: score each row by an entropy or a variance."
        )
    return values
