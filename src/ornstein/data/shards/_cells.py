"""Cells of Arrow's columns as numbers, or as texts by number."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from ..cells import EMPTY, Cells

_DAY = 86_400e6  # microseconds


class Texts(NamedTuple):
    """A column of texts.

    Attributes:
        codes: of each row, the number of its text.
        texts: which there are; `EMPTY` of an empty cell.
    """

    codes: Int[np.ndarray, " rows"]
    texts: list[str]

    @property
    def given(self) -> Bool[np.ndarray, " rows"]:
        """Whether there is any text."""
        return np.array([text != EMPTY for text in self.texts], bool)[self.codes]


def as_numbers(column: pa.ChunkedArray, kind: str) -> Float[np.ndarray, " rows"]:
    """As doubles, NaN for what is empty: dates as days since 1970, truths as 0 and 1.

    Args:
        column: of this kind, or without cells.
        kind: `"number"`, `"boolean"` or `"date"`.
    """
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if kind == "date":
        moments = pc.cast(column, pa.timestamp("us"), safe=False)
        column = pc.cast(pc.cast(moments, pa.int64()), pa.float64(), safe=False)
        return _plain(column) / _DAY
    return _plain(pc.cast(column, pa.float64(), safe=False))


def as_texts(column: pa.ChunkedArray) -> Texts:
    """As texts, read as those of a table in memory are.

    Values that no row has may be among them.

    Args:
        column: of texts, or without cells.
    """
    import pandas as pd

    found = by_number(column)
    stored = pd.Series(found.values, dtype="object")
    return Texts(found.codes, list(map(str, Cells(stored).categories())))


class Numbered(NamedTuple):
    """A column's different values.

    Attributes:
        codes: of each row, the number of its value.
        values: which there are, the last of them `None`: of empty cells.
    """

    codes: Int[np.ndarray, " rows"]
    values: list[Any]


def by_number(column: pa.ChunkedArray) -> Numbered:
    """The different values of a column, and which of them each row has.

    Args:
        column: of texts, truths or numbers, or without cells.
    """
    if pa.types.is_null(column.type) or len(column) == 0:
        return Numbered(np.zeros(len(column), np.int64), [None])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.num_chunks > 1:
        column = column.unify_dictionaries()
    values = column.chunk(0).dictionary.to_pylist()
    empty = pa.scalar(len(values), pa.int64())
    codes = [
        pc.fill_null(pc.cast(chunk.indices, pa.int64()), empty).to_numpy(
            zero_copy_only=False
        )
        for chunk in column.chunks
    ]
    return Numbered(np.concatenate(codes), [*values, None])


def _plain(column: pa.ChunkedArray) -> Float[np.ndarray, " rows"]:
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    return column.to_numpy()
