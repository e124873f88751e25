"""A column's cells as text, numbers, days or categories, read by pandas."""

import functools
import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._formulas import unescaped

if TYPE_CHECKING:
    import pandas as pd

EMPTY = "(empty)"
"""The category of an empty cell."""

_EMPTY_TEXTS = frozenset(
    " ? #N/A #NA <NA> N/A NA NULL NaN NaT None -NaN -nan n/a nan null".split(" ")
)
_PLAIN_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_NUMBER = rf"{_PLAIN_NUMBER}|[+-]?inf(inity)?"
_PERHAPS_NUMBER = r"(?i)\d|inf"
COMMA_THOUSANDS = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"
DOT_THOUSANDS = r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"
_SPACES = "[ \u00a0\u2009\u202f](?=\\d{3}(\\D|$))"
_WITH_ZONE = r"[T ]\d.*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
TRUTHS = {"true": 1.0, "false": 0.0}


class Reading(NamedTuple):
    """How the text of a column is read.

    Attributes:
        decimal: what stands before a number's decimals, `"."` or `","`.
        date_format: of dates; `None` for ISO's.
        has_zone: whether dates have a time zone; `None` if some have, or it is not
            known.
    """

    decimal: str = "."
    date_format: str | None = None
    has_zone: bool | None = None


class Cells:
    """A column, whose text and numbers are read once, whoever asks for them.

    Attributes:
        column: the cells as the table has them.
    """

    def __init__(self, column: "pd.Series"):
        self.column = column
        self._numbers: dict[str, Float[np.ndarray, " rows"]] = {}

    @functools.cached_property
    def texts(self) -> "pd.Series":
        """Cells as text without spaces around it."""
        import pandas as pd

        cells = self.column
        if not isinstance(cells.dtype, np.dtype) or cells.dtype.kind in "Of":
            # Whole numbers as whole ones, whatever stands beside them.
            if not isinstance(cells.dtype, pd.StringDtype):
                cells = cells.astype(object).map(_plain)
        return pd.Series(cells.astype("str").str.strip(), cells.index)

    @functools.cached_property
    def given(self) -> Bool[np.ndarray, " rows"]:
        """Whether there is any text."""
        given = self.column.notna() & ~self.texts.isin(_EMPTY_TEXTS)
        return given.to_numpy(bool)

    def numbers(self, reading: Reading) -> Float[np.ndarray, " rows"]:
        """As doubles: NaN for what is empty, or no number.

        Args:
            reading: of its text.
        """
        if reading.decimal not in self._numbers:
            self._numbers[reading.decimal] = _numbers(self, reading.decimal)
        return self._numbers[reading.decimal]

    def values(self, kind: str, reading: Reading) -> Float[np.ndarray, " rows"]:
        """Numbers, truths or dates as doubles: NaN for what is empty, or none.

        Args:
            kind: `"number"`, `"boolean"` or `"date"`.
            reading: of its text.
        """
        if kind == "date":
            return days_of(self, reading.date_format)
        return self.numbers(reading)

    @functools.cached_property
    def zoned(self) -> Bool[np.ndarray, " rows"]:
        """Which cells, if they are dates, have a time zone."""
        if is_date_like(self.column):
            dtype: Any = getattr(self.column.dtype, "pyarrow_dtype", self.column.dtype)
            return np.full(len(self.column), getattr(dtype, "tz", None) is not None)
        return self.texts.str.contains(_WITH_ZONE).to_numpy(bool) & self.given

    def categories(self) -> "pd.Series":
        """Categories as text, `EMPTY` where there is none."""
        cells = self.texts.where(self.given, EMPTY)
        plain = {text: unescaped(text) for text in cells.unique()}
        if all(text == its for text, its in plain.items()):
            return cells
        return cells.map(plain)


def is_empty_text(text: str) -> bool:
    """Whether a cell with this text, without spaces around it, is empty.

    Args:
        text: of the cell.
    """
    return not text or text in _EMPTY_TEXTS


def is_date_like(cells: "pd.Series") -> bool:
    """Whether cells are dates, and not text that says so.

    Args:
        cells: of the column.
    """
    import pandas as pd

    is_arrow = str(cells.dtype) in ("date32[pyarrow]", "date64[pyarrow]")
    return is_arrow or bool(pd.api.types.is_datetime64_any_dtype(cells))


def _numbers(whole: Cells, decimal: str) -> Float[np.ndarray, " rows"]:
    """See `Cells.numbers`: a cell that is a number is read as no text."""
    values = _of_texts(whole, decimal).copy()
    if decimal != "." and whole.column.dtype == object:
        for row, cell in enumerate(whole.column):
            if isinstance(cell, numbers.Real | Decimal) and not isinstance(cell, bool):
                values[row] = float(cell)
    return values


def _of_texts(whole: Cells, decimal: str) -> Float[np.ndarray, " rows"]:
    import pandas as pd

    cells = whole.column

    if pd.api.types.is_complex_dtype(cells) or is_date_like(cells):
        return np.full(len(cells), np.nan)
    if pd.api.types.is_numeric_dtype(cells):  # booleans are
        return cells.to_numpy(np.float64, na_value=np.nan)
    texts = whole.texts
    if decimal == ".":
        is_plain = texts.str.fullmatch(_PLAIN_NUMBER)
        if is_plain[whole.given].all():
            found = pd.to_numeric(texts.where(is_plain, None), errors="coerce")
            return found.to_numpy(np.float64, na_value=np.nan)
    truths = texts.str.lower().map(TRUTHS)
    if not texts.str.contains(_PERHAPS_NUMBER).any():  # what follows takes a while
        return truths.to_numpy(np.float64, na_value=np.nan)
    texts = texts.str.replace("\u2212", "-").str.replace(_SPACES, "", regex=True)
    if decimal == ",":
        is_thousand = texts.str.fullmatch(DOT_THOUSANDS)
        texts = texts.where(~is_thousand, texts.str.replace(".", ""))
        texts = texts.where(~texts.str.contains(".", regex=False), "no number")
        texts = texts.str.replace(",", ".")
    else:
        is_thousand = texts.str.fullmatch(COMMA_THOUSANDS)
        texts = texts.where(~is_thousand, texts.str.replace(",", ""))
    texts = texts.where(texts.str.lower().str.fullmatch(_NUMBER), None)
    found = pd.to_numeric(texts, errors="coerce")
    return found.fillna(truths).to_numpy(np.float64, na_value=np.nan)


def _plain(cell: object) -> object:
    is_whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return int(cell) if is_whole else cell  # type: ignore[call-overload]


def days_of(whole: Cells, date_format: str | None) -> Float[np.ndarray, " rows"]:
    """Days since 1970: NaN for what is empty, or no date.

    Args:
        whole: the column.
        date_format: of its text; `None` for ISO's.
    """
    import pandas as pd

    cells = whole.column

    if pd.api.types.is_numeric_dtype(cells):
        return np.full(len(cells), np.nan)
    if is_date_like(cells):
        found = pd.Series(pd.to_datetime(cells.astype(object), utc=True))
    else:
        form = date_format or "ISO8601"
        texts = whole.texts.where(whole.given, None)
        found = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
    seconds = found.dt.as_unit("us") - pd.Timestamp(0, tz="UTC").as_unit("us")
    return seconds.dt.total_seconds().to_numpy(np.float64, na_value=np.nan) / 86_400
