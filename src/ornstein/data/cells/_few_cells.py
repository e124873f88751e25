"""A column of few cells, read without pandas: for services that predict row by row.

The same numbers as `Cells` gives, bit for bit, for cells that are plain; of others they
are asked.
"""

import datetime
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .._formulas import unescaped
from ._cells import EMPTY, Reading, is_empty_text

if TYPE_CHECKING:
    import pandas as pd

FEW = 64
"""Rows: of more, pandas' time for a cell is less than Python's."""

_ISO = re.compile(r"(1[789]|20|21)\d\d-\d\d-\d\d")
_EPOCH = datetime.date(1970, 1, 1)


def few_values(cells: "pd.Series", kind: str, reading: Reading) -> Any | None:
    """Numbers, or texts of a category; `None` for cells that are not plain.

    Plain are numbers of NumPy's that can be of the kind, texts of printable ASCII, and
    dates such as 2024-01-31.

    Args:
        cells: of the column.
        kind: of the column in training.
        reading: of its text in training.
    """
    is_numpy = isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iufb"
    if kind in ("number", "boolean"):
        return _numbers(cells.to_numpy(), kind) if is_numpy else None
    listed = [] if is_numpy else cells.tolist()
    if is_numpy or not all(map(_is_plain, listed)):
        return None
    texts = [text.strip(" ") for text in listed]
    if kind == "category":
        read = (EMPTY if is_empty_text(text) else unescaped(text) for text in texts)
        return np.array(list(read), object)
    is_iso = reading.date_format is None and not reading.has_zone
    if not is_iso or not all(map(_ISO.fullmatch, texts)):
        return None
    try:
        days = [(datetime.date.fromisoformat(text) - _EPOCH).days for text in texts]
    except ValueError:  # no such day
        return None
    return np.array(days, np.float64)


def few_written(cells: "pd.Series") -> list | None:
    """Cells as objects of Python's, `None` where one is empty; for plain cells.

    Args:
        cells: of a column.
    """
    dtype = cells.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        return cells.tolist()
    if dtype == np.float64:
        return [None if value != value else value for value in cells.tolist()]
    listed = cells.tolist()
    is_text = all(map(_is_plain, listed))
    return [unescaped(text) for text in listed] if is_text else None


def _numbers(values: np.ndarray, kind: str) -> np.ndarray | None:
    found = values.astype(np.float64)
    known = found[~np.isnan(found)]
    if not np.isfinite(known).all():
        return None
    if kind == "boolean" and not np.isin(known, (0.0, 1.0)).all():
        return None
    return found


def _is_plain(cell: object) -> bool:
    return isinstance(cell, str) and cell.isascii() and cell.isprintable()
