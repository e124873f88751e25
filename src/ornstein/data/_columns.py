"""A table's columns as numbers, as training rows showed them: kinds, gaps, categories.

Text, dates and empty cells are read by pandas and encoded by scikit-learn's
transformers, whose learned parts are kept here as plain numbers and names, so that they
are saved as JSON and put together again without pickle.
"""

import collections
import dataclasses
import functools
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from .._sentence import Sentence
from ._column import PANDAS_INDEX, Column, column_of, count_of, read_column
from ._constant import on_constant, on_other_values
from ._error import DataError, nearest
from .cells import (
    EMPTY,
    FEW,
    Cells,
    Problem,
    as_code,
    bad_cells,
    few_values,
    has_no_decimals,
    kind_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.compose import ColumnTransformer

_OF_INDEX = "it is the index of a table of pandas', which names rows"


@dataclasses.dataclass(frozen=True)
class TableEncoding:
    """From a table's cells to numbers, before standardisation.

    Features are the columns of numbers, booleans and dates; one for each of these that
    had gaps; and one for each category.

    Attributes:
        columns: in the table's order.
        targets: the columns to predict: their kind, and how their text is read.
    """

    columns: tuple[Column, ...]
    targets: tuple[Column, ...] = ()

    @classmethod
    def learned(
        cls,
        frame: "pd.DataFrame",
        names: Sequence[str],
        rows: np.ndarray,
        where: str,
        *,
        is_asked: bool = False,
        weights: Float[np.ndarray, " rows"] | None = None,
        remedy: str = Sentence("{features} names the columns to use"),
    ) -> tuple["TableEncoding", list[str]]:
        """Kinds from all rows, so that each is read alike; the rest from some.

        Args:
            frame: the table.
            names: of the columns to learn from.
            rows: numbers of the training rows.
            where: the table's name, for messages.
            is_asked: whether the user named these columns: then none is left out but
                for want of values.
            weights: of the training rows: one of 2 counts as two such rows; by default
                each is 1.
            remedy: what keeps a column that is left out, for notes.

        Returns:
            The encoding, and notes on columns that are left out, which are texts that
            are names rather than categories and columns without a value; and on columns
            of one value.

        Raises:
            DataError: for cells that are not like the rest of their column: all such
                columns in one message.
        """
        columns, notes, problems = [], [], []
        undecided: set[str] = set()
        for name in names:
            if name.startswith(PANDAS_INDEX) and not is_asked:
                # It may name rows in an order that says what the target is.
                notes.append(_left_out(where, name, _OF_INDEX, remedy))
                continue
            cells = Cells(with_separator(frame, name))
            found = kind_of(cells)
            if isinstance(found, Problem):
                problems.append(found)
                continue
            reason = found.reason_to_leave_out
            if reason is None and not name.strip() and not is_asked:
                raise DataError(_without_name(where, frame, name))
            if reason is None or (is_asked and cells.given.any()):
                own = {"kind": found.kind, **found.reading._asdict()}
                column = column_of(name, cells, rows, own, weights)
                if column.kind != "category" or column.categories:
                    columns.append(column)
                    notes += _on_code(name, found.code, where)
                    if column.kind == "number" and has_no_decimals(cells):
                        undecided.add(name)
                    continue
                reason = "no text in it is in two of the training rows"
                if found.code is not None:
                    reason += f" ({as_code(found.code)})"
            notes.append(_left_out(where, name, reason, remedy))
        if problems:
            raise DataError(_said(where, problems))
        if any(column.decimal == "," for column in columns):
            # A table has one mark: another file may have decimals where this has none.
            for number, column in enumerate(columns):
                if column.name in undecided:
                    own = {"kind": "number", "decimal": ",", "date_format": None}
                    cells = Cells(with_separator(frame, column.name))
                    columns[number] = column_of(column.name, cells, rows, own, weights)
        return cls(tuple(columns)), notes + on_constant(columns, where)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the numbers, in their order."""
        numbers = [c for c in self.columns if c.kind != "category"]
        gaps = [f"{c.name} is empty" for c in numbers if c.has_gaps]
        of_categories = [f"{c.name} = {v}" for c in self.columns for v in c.categories]
        return (*(c.name for c in numbers), *gaps, *of_categories)

    def apply(
        self, frame: "pd.DataFrame", where: str
    ) -> tuple[Float[np.ndarray, "rows features"], list[str]]:
        """A table's rows as numbers.

        Args:
            frame: with these columns among its own, in any order.
            where: its name, for messages.

        Returns:
            The numbers, and notes on cells that training rows had not: unknown
            categories, gaps in columns that had none, and another value than the one
            that all had.

        Raises:
            DataError: for columns that are not there, and cells that are not of their
                column's kind: all of them in one message.
        """
        import pandas as pd

        check_columns(frame, [column.name for column in self.columns], where)
        parts, notes, problems = {}, [], []
        is_few = len(frame) <= FEW
        for column in self.columns:
            cells = Cells(frame[column.name])
            if is_few:
                found = few_values(cells.column, column.kind, column.reading)
                if found is not None:
                    parts[column.name] = found
                    notes += _strange(found, column, where)
                    continue
            bad = bad_cells(cells, column.kind, column.reading)
            if bad is not None:
                problems.append(bad)
                continue
            parts[column.name] = _as_encoded(cells, column)
            notes += _strange(parts[column.name], column, where)
        if problems:
            each = "; ".join(problem.said for problem in problems)
            raise DataError(
                f"{where}: {each}: correct these cells, or empty them (an empty cell "
                "counts as the training rows' median)."
            )
        notes += on_other_values(self.columns, parts, where)
        if is_few:
            return self._transformed(parts, len(frame)), notes
        encoded = pd.DataFrame(parts, index=frame.index)
        values = _transformer(self).transform(encoded)
        return np.asarray(values, np.float64), notes

    def _transformed(
        self, parts: Mapping[str, Any], num_rows: int
    ) -> Float[np.ndarray, "rows features"]:
        """What `transformer` makes of columns, in a hundredth of its milliseconds."""
        numbers = [c for c in self.columns if c.kind != "category"]
        values = [parts[c.name] for c in numbers]
        gaps = [np.isnan(v) for v in values]
        known = [
            np.where(gap, column.fill, value)
            for column, value, gap in zip(numbers, values, gaps, strict=True)
        ]
        known += [g for c, g in zip(numbers, gaps, strict=True) if c.has_gaps]
        known += [
            parts[c.name] == category for c in self.columns for category in c.categories
        ]
        empty = np.empty((num_rows, 0))
        return np.stack(known, axis=1, dtype=np.float64) if known else empty

    def transformer(self) -> "ColumnTransformer":
        """What `apply` uses of scikit-learn's, as if fitted to the training rows.

        It takes columns of floats, and of texts for categories.
        """
        import pandas as pd
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder

        numbers = [c for c in self.columns if c.kind != "category"]
        texts = [c for c in self.columns if c.kind == "category"]
        # Two rows from which each learns what it learned from the training rows.
        shown = {c.name: [c.fill, np.nan if c.has_gaps else c.fill] for c in numbers}
        shown |= {c.name: [EMPTY, EMPTY] for c in texts}
        known: Any = [np.array(c.categories, object) for c in texts]
        found = ColumnTransformer(
            [
                (
                    "numbers",
                    SimpleImputer(strategy="median", add_indicator=True),
                    [c.name for c in numbers],
                ),
                (
                    "categories",
                    OneHotEncoder(
                        categories=known,
                        handle_unknown="ignore",
                        sparse_output=False,
                    ),
                    [c.name for c in texts],
                ),
            ]
        )
        return found.fit(pd.DataFrame(shown))

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "TableEncoding":
        """From what `dataclasses.asdict` gives, by way of JSON."""
        parts = (saved["columns"], saved["targets"])
        return cls(*(tuple(map(read_column, part)) for part in parts))


@functools.lru_cache(maxsize=16)
def _transformer(encoding: TableEncoding) -> "ColumnTransformer":
    return encoding.transformer()


def _as_encoded(cells: Cells, column: Column) -> Any:
    if column.kind == "category":
        return cells.categories().to_numpy(object)
    return cells.values(column.kind, column.reading)


def with_separator(frame: "pd.DataFrame", name: str) -> "pd.Series":
    """A column that knows by what its file parts cells: it says what a comma means.

    Args:
        frame: as `read_frame` gives it.
        name: of the column.
    """
    cells = frame[name]
    cells.attrs = dict(frame.attrs)
    return cells


def _strange(values: np.ndarray, column: Column, where: str) -> list[str]:
    """Notes on what training rows did not show."""
    if column.kind != "category":
        num_empty = int(np.isnan(values).sum())
        if num_empty == 0 or column.has_gaps:
            return []
        cells = "1 empty cell" if num_empty == 1 else f"{num_empty} empty cells"
        return [
            f"{where}: column {column.name!r} has {cells}, and the training rows had "
            f"none: they count as their median, {column.said(column.fill)}."
        ]
    is_known = np.isin(values.astype(str), column.categories)
    others = sorted(set(values[~is_known]))
    if not others:
        return []
    some = ", ".join(repr(str(name)) for name in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    rows = count_of(int((~is_known).sum()), "row")
    return [
        f"{where}: column {column.name!r} has {some}{more} in {rows}"
        f", not among the {len(column.categories)} categories that are common in "
        "the training rows: they count as none of these."
    ]


def check_columns(frame: "pd.DataFrame", names: Sequence[str], where: str) -> None:
    """Refuse a table that lacks columns, naming all of them.

    Args:
        frame: the table.
        names: of the columns that it must have.
        where: its name, for messages.

    Raises:
        DataError: if one is not there.
    """
    there = collections.Counter(map(str, frame.columns))
    twice = [name for name in names if there[name] > 1]
    if twice:
        raise DataError(
            f"{where} has two columns of one name, {twice[0]!r}: rename one."
        )
    absent = [name for name in names if name not in there]
    if absent:
        raise DataError(
            f"{where} has no column {', '.join(map(repr, absent))}"
            f"{nearest(absent[0], there)}: its columns are {', '.join(there)}."
        )


def _on_code(name: str, code: str | None, where: str) -> list[str]:
    """A note on numbers that became categories."""
    if code is None:
        return []
    return [
        f"{where}: column {name!r} was taken for categories, for {as_code(code)}: "
        "write numbers without."
    ]


def _left_out(where: str, name: str, reason: str, remedy: str) -> Sentence:
    text = "{}: column {!r} is left out: {}; {}."
    return Sentence(text, where, name, reason, remedy)


def _without_name(where: str, frame: "pd.DataFrame", name: str) -> Sentence:
    """What is said of a column that nobody can name."""
    place = list(frame.columns).index(name) + 1
    text = "{}: the header has no name for column {}: give it one, or {drop} ''."
    return Sentence(text, where, place)


def _said(where: str, problems: Sequence[Problem]) -> Sentence:
    """All columns that cannot be read, in one sentence."""
    each = "; ".join(problem.said for problem in problems)
    names = " ".join(shlex.quote(problem.column) for problem in problems)
    what = "the column" if len(problems) == 1 else "the columns"
    text = "{}: {}: correct the cells, or leave {} out with {drop} {}."
    return Sentence(text, where, each, what, names)
