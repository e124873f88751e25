"""Cells of Arrow's columns as numbers, or as texts by number."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from .._cells import EMPTY, Cells

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

    Args:
        column: of texts, or without cells.
    """
    import pandas as pd

    if pa.types.is_null(column.type):
        return Texts(np.zeros(len(column), np.int64), [EMPTY])
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_large_string(column.type):
        column = pc.cast(column, pa.string())
    found = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    if isinstance(found, pa.ChunkedArray):  # of no rows
        return Texts(np.zeros(0, np.int64), [EMPTY])
    stored = pd.Series(found.dictionary.to_pylist(), dtype="object")
    texts = list(map(str, Cells(stored).categories()))
    return Texts(np.asarray(found.indices).astype(np.int64), texts)


def _plain(column: pa.ChunkedArray) -> Float[np.ndarray, " rows"]:
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    return column.to_numpy()
