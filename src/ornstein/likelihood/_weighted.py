"""Rows that count more or less than one: a likelihood raised to each row's weight."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._types import Array, Float, PyTree, Shaped
from ._base import AbstractLikelihood


class WeightedTargets(eqx.Module):
    """Targets, and how much each row counts.

    Attributes:
        y: as the likelihood takes them, rows first.
        weight: of each row: 2 counts as two such rows, 0 as none.
    """

    y: Shaped[Array | np.ndarray, "rows *columns"]
    weight: Float[Array | np.ndarray, " rows"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the targets."""
        return self.y.shape

    def __len__(self) -> int:
        return self.y.shape[0]

    def __getitem__(self, rows: Any) -> "WeightedTargets":
        """Some of the rows."""
        return WeightedTargets(self.y[rows], self.weight[rows])


class Weighted(AbstractLikelihood):
    r"""A likelihood of weighted rows: $\prod_i p(y_i | f_i)^{w_i}$.

    With whole numbers this is the likelihood of rows repeated as often; with others it
    is no distribution of the targets, and `base` predicts.

    Args:
        base: of a row that counts once.
    """

    base: AbstractLikelihood

    def distribution(self, output: Float[Array, "*lead outputs"]) -> Any:
        """That of a row that counts once."""
        return self.base.distribution(output)

    def log_prob(
        self, output: Float[Array, "*lead outputs"], y: WeightedTargets
    ) -> Float[Array, "*lead"]:
        """Log likelihood of each row in nats, times its weight."""
        log_prob = self.base.log_prob(output, y.y)
        weight = jax.numpy.broadcast_to(y.weight, log_prob.shape)
        return weight.astype(log_prob.dtype) * log_prob

    def check_targets(self, y: WeightedTargets, num_outputs: int):
        """Targets that the base takes, and weights that count at least one row.

        Raises:
            ValueError: for these, or weights that are negative or all zero.
        """
        weight = np.asarray(y.weight)
        if not (np.all(np.isfinite(weight)) and np.all(weight >= 0) and weight.any()):
            raise ValueError(
                f"Weights of rows run from {weight.min()} to {weight.max()}, but must "
                "be finite and not negative, and one of them positive."
            )
        self.base.check_targets(np.asarray(y.y), num_outputs)

    def labels(self) -> PyTree[str]:
        """Those of the base."""
        return eqx.tree_at(lambda own: own.base, self, self.base.labels())


def of_unweighted(likelihood: AbstractLikelihood) -> AbstractLikelihood:
    """What a likelihood says of a row that counts once: the base, or itself."""
    return likelihood.base if isinstance(likelihood, Weighted) else likelihood
