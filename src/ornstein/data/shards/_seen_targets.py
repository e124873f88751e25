"""What one pass shows of the columns to predict, and how their cells become targets."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Shaped

from .._column import Column
from .._error import DataError
from ..cells import is_empty_text
from ..tables import MOST_CLASSES, own_labels, own_targets
from ._cells import as_numbers, by_number
from ._moments import Moments
from ._parquet import NO_KIND, ParquetFiles, RowGroup


@dataclasses.dataclass(frozen=True)
class TargetCodec:
    """From cells to class numbers, or to numbers.

    Attributes:
        columns: what the targets' columns are.
        class_names: in the order of their numbers; empty for numbers.
        numbers: of each class, by the value that files have; empty for numbers.
        notes: what was decided without the user.
    """

    columns: tuple[Column, ...]
    class_names: tuple[str, ...]
    numbers: Mapping[Any, int]
    notes: tuple[str, ...]

    def read(self, found: pa.Table, where: str) -> Shaped[np.ndarray, "rows ..."]:
        """Targets in raw units.

        Args:
            found: rows that have a target.
            where: they are from, for messages.

        Raises:
            DataError: for a class that was not there when classes were counted.
        """
        if not self.class_names:
            return _matrix(found, self.columns)
        encoded = by_number(found.column(self.columns[0].name))
        numbers = np.array([self.numbers.get(v, -1) for v in encoded.values], np.int32)
        y = numbers[encoded.codes]
        unknown = [encoded.values[code] for code in np.unique(encoded.codes[y < 0])]
        if unknown:
            raise DataError(
                f"{where}: target {self.columns[0].name} has {str(unknown[0])!r}, "
                "which was not among its classes when these were counted "
                f"({', '.join(self.class_names[:10])}): give it rows enough that some "
                "are for training, or put changed files back as they were."
            )
        return y


class SeenTargets:
    """The columns to predict, of which blocks are shown one after the other.

    Args:
        names: of the columns.
        files: that they are in.
        task: `"classification"` or `"regression"`, or `None` to decide by the cells.
        where: the files' name, for messages.
    """

    def __init__(
        self, names: Sequence[str], files: ParquetFiles, task: str | None, where: str
    ):
        self.names, self.task, self.where = list(names), task, where
        self.kinds = {name: files.kinds[name] for name in names}
        if NO_KIND in self.kinds.values():
            raise self._without_values()
        other = [n for n, k in self.kinds.items() if k not in _KINDS]
        if other:
            raise DataError(
                f"{where}: target {other[0]} holds {self.kinds[other[0]]}, which is "
                "neither numbers nor classes: name another column."
            )
        is_number = self.kinds[self.names[0]] == "number"
        is_whole = self.names[0] in files.whole
        is_class = task == "classification" or not is_number or is_whole
        self.values: set[Any] | None = set() if is_class and len(names) == 1 else None
        self.moments = Moments.none((len(names),))

    def _without_values(self) -> DataError:
        names = " or ".join(self.names)
        return DataError(f"{self.where}: every cell of {names} is empty: give values.")

    def given(self, found: pa.Table, group: RowGroup) -> Bool[np.ndarray, " rows"]:
        """Which rows have all targets.

        Args:
            found: a row group.
            group: which.

        Raises:
            DataError: for an infinite one.
        """
        has_all = np.ones(found.num_rows, bool)
        for name, kind in self.kinds.items():
            column = found.column(name)
            if kind == "category":
                texts = by_number(column)
                is_given = [
                    text is not None and not is_empty_text(text.strip())
                    for text in texts.values
                ]
                has_all &= np.array(is_given, bool)[texts.codes]
            else:
                values = as_numbers(column, kind)
                is_bad = np.isinf(values)
                if is_bad.any():
                    row = int(np.flatnonzero(is_bad)[0])
                    raise DataError(
                        f"{self.where}: target {name} has {values[row]} in "
                        f"{group.where(row)}, which is no finite number: correct it, "
                        "or empty it."
                    )
                has_all &= ~np.isnan(values)
        return has_all

    def add(self, found: pa.Table) -> None:
        """Look at training rows, all of which have a target.

        Args:
            found: the rows.
        """
        if self.values is not None:
            met = by_number(found.column(self.names[0]))
            room = MOST_CLASSES + 1 - len(self.values)
            there = (met.values[code] for code in np.unique(met.codes))
            new = [v for v in there if v not in self.values]
            self.values.update(new[: max(room, 0)])
        if "category" not in self.kinds.values():
            values = _matrix(found, [Column(n, "number") for n in self.names])
            self.moments = self.moments.with_more(Moments.of(values))

    def codec(self) -> TargetCodec:
        """How cells become targets, as of a table in memory.

        Raises:
            DataError: for a target that is not what the task says, or unusable.
        """
        import pandas as pd

        where, values = self.where, self.values
        task = self.task
        if values is None:
            shown = np.stack([self.moments.lowest, self.moments.highest])
            if not np.isfinite(shown).all():
                raise self._without_values()
            frame = pd.DataFrame(dict(zip(self.names, shown.T, strict=True)))
            target, columns = own_targets(frame, self.names, task, where)
            return TargetCodec(columns, (), {}, tuple(target.notes))
        (name,) = self.names
        if not values:
            raise self._without_values()
        if self.kinds[name] == "category" and task is None:
            task = "classification"
        met = sorted(values)
        frame = pd.DataFrame({name: met})
        target, columns = own_targets(frame, [name], task, where)
        if target.class_names is None:
            return TargetCodec(columns, (), {}, tuple(target.notes))
        if len(values) > MOST_CLASSES:
            raise DataError(
                f"{where}: target {name} has more than {MOST_CLASSES:,} different "
                "values, which are no classes: name another column, or give "
                "task='regression' if they are numbers."
            )
        numbers = own_labels(frame, columns, target.class_names, where)
        known = dict(zip(met, numbers.tolist(), strict=True))
        return TargetCodec(
            columns, tuple(target.class_names), known, tuple(target.notes)
        )


_KINDS = ("number", "boolean", "category")


def _matrix(
    found: pa.Table, columns: Sequence[Column]
) -> Float[np.ndarray, "rows out"]:
    kind = lambda c: "boolean" if c.kind == "boolean" else "number"
    parts = [as_numbers(found.column(c.name), kind(c)) for c in columns]
    return np.stack(parts, axis=1)
