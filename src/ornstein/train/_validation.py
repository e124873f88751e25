"""Held-out rows by which epochs are judged."""

from typing import Any

import equinox as eqx

from .._kinds import check_kind
from .._types import PyTree
from ._check import check_data, check_positive
from ._early_stopping import EarlyStopping


class Validation(eqx.Module):
    """Rows that epochs are judged by and never trained on, and what follows from it.

    Attributes:
        split: the rows: has `x` and `y`. Never the test split.
        num_draws: averaged over; rounded up to a multiple of the model's strata.
        every: epochs from one validation to the next.
        early_stopping: when to stop, by validation NLL; `fit` then returns the best
            epoch after the KL weight's warm-up, and the running mean as it was there,
            instead of the last.
    """

    split: Any
    num_draws: int = 8
    every: int = 1
    early_stopping: EarlyStopping | None = None

    def __check_init__(self) -> None:
        check_data(self.split, "validation")
        rule, remedy = self.early_stopping, "`EarlyStopping(patience=10)`"
        if rule is not None:
            check_kind("Validation.early_stopping", rule, EarlyStopping, remedy)
        check_positive(
            **{
                "Validation.num_draws": self.num_draws,
                "Validation.every": self.every,
            }
        )

    @property
    def data(self) -> tuple[PyTree, PyTree]:
        """The inputs and the targets."""
        return self.split.x, self.split.y
