"""Selective prediction: what remains wrong when the least certain rows are refused."""

import numpy as np

from .._types import Float, Shaped
from ._arrays import AnyArray


def risk_coverage(
    uncertainty: Float[AnyArray, " rows"], loss: Shaped[AnyArray, " rows"]
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """Coverage, and the mean loss of the rows that are kept at it.

    Geifman & El-Yaniv, "Selective classification for deep neural networks" (NeurIPS
    2017). Equally uncertain rows are kept in random order: their mean loss counts.

    Args:
        uncertainty: the most uncertain rows are refused first.
        loss: of each row: 1 for a wrong answer, a squared error, any number.

    Returns:
        Coverages 1/rows, 2/rows, ..., 1, and the risk at each.
    """
    uncertainty, loss = np.asarray(uncertainty), np.asarray(loss, np.float64)
    _, groups, sizes = np.unique(uncertainty, return_inverse=True, return_counts=True)
    mean_loss = np.bincount(groups, weights=loss) / sizes
    num_kept = np.arange(1, loss.size + 1)
    return num_kept / loss.size, np.cumsum(np.repeat(mean_loss, sizes)) / num_kept


def aurc(
    uncertainty: Float[AnyArray, " rows"], loss: Shaped[AnyArray, " rows"]
) -> float:
    """The area under the risk-coverage curve: mean risk over coverages.

    Args:
        uncertainty: the most uncertain rows are refused first.
        loss: of each row.
    """
    return float(np.mean(risk_coverage(uncertainty, loss)[1]))
