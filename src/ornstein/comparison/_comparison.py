"""The scores of several methods on the same rows, and what they advise."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._types import Float

_MUCH = 3.0
"""Times as long: a method that is level and as much faster is worth naming."""


@dataclasses.dataclass(frozen=True)
class MethodScores:
    """What a method said of rows that it had not seen.

    Attributes:
        name: of the method.
        is_own: whether it is this library's.
        nll: of each row, nats, in the targets' own units; NaN where no fold tested it.
        scores: by name: `accuracy`, `ece` and `auroc`, or `rmse` and `coverage` (of
            the central 90 %).
        seconds: of one fit and its predictions, the median over folds.
    """

    name: str
    is_own: bool
    nll: Float[np.ndarray, " rows"]
    scores: dict[str, float]
    seconds: float

    @property
    def mean_nll(self) -> float:
        """Over the rows."""
        return float(np.mean(self.nll))

    @property
    def error(self) -> float:
        """The standard error of `mean_nll`, over rows."""
        return float(np.std(self.nll, ddof=1) / math.sqrt(len(self.nll)))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Methods on the same folds of one table.

    Attributes:
        task: `"classification"` or `"regression"`.
        num_rows: of the table.
        num_folds: each row was tested once, by what learned from the others.
        methods: in the order in which they ran.
        failed: of methods that did not come to their end, why.
    """

    task: str
    num_rows: int
    num_folds: int
    methods: Sequence[MethodScores]
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """The mean NLL of one less another's, and its standard error, row by row.

        Args:
            name: of a method.
            other: of another.
        """
        found = {method.name: method.nll for method in self.methods}
        each = found[name] - found[other]
        error = float(np.std(each, ddof=1) / math.sqrt(len(each)))
        return float(np.mean(each)), error

    @property
    def best(self) -> MethodScores:
        """The lowest mean NLL."""
        return min(self.methods, key=_rank)

    @property
    def advice(self) -> str:
        """One sentence: which method these rows are for."""
        best = self.best
        if len(self.methods) == 1:
            return f"{best.name} alone was judged: name others to compare it with."
        level = [
            method
            for method in self.methods
            if method is not best and self._is_level(method.name, best.name)
        ]
        said = (
            f"Take {best.name}: its NLL of {best.mean_nll:.3g} ± {best.error:.1g} is "
            f"the lowest of {len(self.methods)} methods"
        )
        if not level:
            others = "the other is" if len(self.methods) == 2 else "the others are"
            return f"{said}; {others} more than a standard error behind."
        names = ", ".join(method.name for method in level)
        said = f"{said}; {names} {'is' if len(level) == 1 else 'are'} level with it"
        fast = min(level, key=lambda method: method.seconds)
        if best.seconds > _MUCH * fast.seconds:
            return (
                f"{said}, of which {fast.name} takes {fast.seconds:.2g} seconds for "
                f"{best.seconds:.2g}."
            )
        return f"{said}."

    def rows(self) -> list[dict[str, Any]]:
        """The table: a method a row, lowest NLL first."""
        ordered = sorted(self.methods, key=_rank)
        return [
            {
                "method": method.name,
                "nll": method.mean_nll,
                "nll ±": method.error,
                "behind": self.difference(method.name, self.best.name)[0],
                "behind ±": self.difference(method.name, self.best.name)[1],
                **method.scores,
                "seconds": method.seconds,
            }
            for method in ordered
        ]

    def _is_level(self, name: str, other: str) -> bool:
        difference, error = self.difference(name, other)
        return difference <= error


def _rank(method: MethodScores) -> float:
    nll = method.mean_nll
    return math.inf if math.isnan(nll) else nll
