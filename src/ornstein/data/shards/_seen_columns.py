"""What one pass shows of the columns of a table.

As `column_of` learns of a table in memory, but for what would take all values at once:
the median that fills gaps is that of every k-th value, where k leaves at most 2^16, and
texts are counted until there are 100,000 different ones, which are names then.
"""

import abc
import collections
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from .._column import Column, common_categories
from .._error import DataError
from ..cells import EMPTY, reason_of_name
from ._cells import as_numbers, as_texts
from ._moments import Moments
from ._parquet import NO_KIND, RowGroup

MOST_LOOKED_AT = 2**16
_MOST_TEXTS = 100_000
_LEAST_ROWS = 2
_FEWEST_NAMES = 20
_DISTINCT = 0.5


class AbstractSeen(abc.ABC):
    """A column, of which blocks are shown one after the other.

    Attributes:
        name: of the column.
    """

    name: str

    @abc.abstractmethod
    def add(self, column: pa.ChunkedArray, group: RowGroup, rows: np.ndarray) -> None:
        """Look at the training rows of a block.

        Args:
            column: its cells.
            group: where they are from.
            rows: numbers of the training rows in the group.
        """

    @property
    @abc.abstractmethod
    def reason_to_leave_out(self) -> str | None:
        """If it is of no use, unless it is asked for."""

    @abc.abstractmethod
    def column(self) -> Column:
        """What was learned."""

    @property
    @abc.abstractmethod
    def is_empty(self) -> bool:
        """Whether there was no cell."""

    @abc.abstractmethod
    def moments(self, column: Column) -> list[Moments]:
        """Of its features: its numbers, then whether it is empty; or its categories.

        Args:
            column: what was learned.
        """


class SeenNumbers(AbstractSeen):
    """Numbers, truths or dates.

    Args:
        name: of the column.
        kind: of its cells.
        is_whole: whether files store whole numbers.
        every: of so many training rows one is kept for the median.
    """

    def __init__(self, name: str, kind: str, *, is_whole: bool, every: int):
        self.name, self.kind, self.every = name, kind, every
        self.is_whole = is_whole
        self.given = Moments.none()
        self.num_rows = 0
        self.looked_at: list[Float[np.ndarray, " some"]] = []
        self.zoned: set[bool] = set()

    def add(self, column: pa.ChunkedArray, group: RowGroup, rows: np.ndarray) -> None:
        """See `AbstractSeen.add`."""
        values = as_finite(column, self.kind, self.name, group, rows)
        if self.kind == "date":
            self.zoned.add(getattr(column.type, "tz", None) is not None)
        self.given = self.given.with_more(Moments.of(values))
        first = -self.num_rows % self.every
        self.looked_at.append(values[first :: self.every].copy())
        self.num_rows += len(values)

    @property
    def is_empty(self) -> bool:
        """See `AbstractSeen.is_empty`."""
        return bool(self.given.count == 0)

    @property
    def reason_to_leave_out(self) -> str | None:
        """See `AbstractSeen.reason_to_leave_out`."""
        if self.is_empty:
            return "all of its cells are empty"
        reason = reason_of_name(self.name) if self.is_whole else None
        if reason is None:
            return None
        values = np.concatenate(self.looked_at)
        return reason if len(np.unique(values)) == len(values) else None

    def column(self) -> Column:
        """See `AbstractSeen.column`."""
        values = np.concatenate(self.looked_at)
        if np.isnan(values).all():  # of a column that is nearly empty
            fill = float(self.given.mean)
        else:
            fill = float(np.nanmedian(values))
        has_gaps = bool(self.given.count < self.num_rows)
        kind: Any = self.kind
        has_zone = next(iter(self.zoned)) if len(self.zoned) == 1 else None
        is_constant = bool(self.given.lowest == self.given.highest)
        return Column(
            self.name,
            kind,
            fill,
            has_gaps,
            has_zone=has_zone,
            is_constant=is_constant,
        )

    def moments(self, column: Column) -> list[Moments]:
        """See `AbstractSeen.moments`."""
        num_gaps = self.num_rows - int(self.given.count)
        filled = self.given.with_more(Moments.repeated(column.fill, num_gaps))
        if not column.has_gaps:
            return [filled]
        return [filled, _of_share(num_gaps, self.num_rows)]


class SeenTexts(AbstractSeen):
    """Texts, as categories.

    Args:
        name: of the column.
    """

    def __init__(self, name: str):
        self.name, self.num_rows = name, 0
        self.counts: collections.Counter[str] = collections.Counter()
        self.has_too_many = False

    def add(self, column: pa.ChunkedArray, group: RowGroup, rows: np.ndarray) -> None:
        """See `AbstractSeen.add`."""
        del group
        self.num_rows += len(rows)
        if self.has_too_many:
            return
        found = as_texts(column.take(pa.array(rows)))
        counts = np.bincount(found.codes, minlength=len(found.texts))
        for text, count in zip(found.texts, counts.tolist(), strict=True):
            if count:
                self.counts[text] += count
        self.has_too_many = len(self.counts) > _MOST_TEXTS

    @property
    def is_empty(self) -> bool:
        """See `AbstractSeen.is_empty`."""
        return set(self.counts) <= {EMPTY}

    @property
    def reason_to_leave_out(self) -> str | None:
        """See `AbstractSeen.reason_to_leave_out`."""
        names = "names rather than categories"
        if self.has_too_many:
            return (
                f"it has more than {_MOST_TEXTS:,} different texts, which are {names}"
            )
        if self.is_empty:
            return "all of its cells are empty"
        num_given = self.num_rows - self.counts[EMPTY]
        num_distinct = len(self.counts) - (EMPTY in self.counts)
        if num_distinct >= max(_FEWEST_NAMES, _DISTINCT * num_given):
            return (
                f"it has {num_distinct:,} different texts in {num_given:,} rows, which "
                f"are {names}"
            )
        if not self.column().categories:
            return "no text in it is in two of the training rows"
        return None

    def column(self) -> Column:
        """See `AbstractSeen.column`.

        Raises:
            DataError: for too many texts to count: their shares would be of the first.
        """
        import pandas as pd

        if self.has_too_many:
            raise DataError(
                f"{self.name} has more than {_MOST_TEXTS:,} different texts, which are "
                "names rather than categories: leave it out of the features, or write "
                "it as numbers."
            )
        repeated = {t: n for t, n in self.counts.items() if n >= _LEAST_ROWS}
        counts = pd.Series(repeated, dtype="int64")
        categories = common_categories(counts, float(self.num_rows))
        return Column(
            self.name,
            "category",
            categories=categories,
            is_constant=len(self.counts) == 1,
        )

    def moments(self, column: Column) -> list[Moments]:
        """See `AbstractSeen.moments`."""
        return [_of_share(self.counts[c], self.num_rows) for c in column.categories]


def as_finite(
    column: pa.ChunkedArray, kind: str, name: str, group: RowGroup, rows: np.ndarray
) -> Float[np.ndarray, " rows"]:
    """Numbers of some rows, NaN for what is empty.

    Args:
        column: cells of a row group.
        kind: of them.
        name: of the column, for messages.
        group: where they are from.
        rows: their numbers in the group.

    Raises:
        DataError: for an infinite one.
    """
    values = as_numbers(column, kind)
    if len(rows) < len(values):
        values = values[rows]
    is_bad = np.isinf(values)
    if is_bad.any():
        row = int(rows[np.flatnonzero(is_bad)[0]])
        raise DataError(
            f"column {name!r} has {values[is_bad][0]} in {group.where(row)}, which is "
            "no finite number: correct it, or empty it."
        )
    return values


def seen_column(name: str, kind: str, *, is_whole: bool, every: int) -> AbstractSeen:
    """How to look at a column of some kind.

    Args:
        name: of the column.
        kind: of its cells.
        is_whole: whether files store whole numbers.
        every: of so many training rows one is kept for the median.
    """
    if kind == "category":
        return SeenTexts(name)
    kind = "number" if kind == NO_KIND else kind
    return SeenNumbers(name, kind, is_whole=is_whole, every=every)


def _of_share(number: int, num_rows: int) -> Moments:
    """Of as many ones, and zeros for the other rows."""
    zeros = Moments.repeated(0.0, num_rows - number)
    return zeros.with_more(Moments.repeated(1.0, number))
