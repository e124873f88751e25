"""What a column's cells are: numbers, booleans, dates, or categories, by pandas.

How a column's text is read is decided once, by the training rows: the same text then is
the same number in any other table.
"""

import functools
import numbers
import re
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ._formulas import unescaped

if TYPE_CHECKING:
    import pandas as pd

EMPTY = "(empty)"
"""The category of an empty cell."""

_EMPTY_TEXTS = frozenset(
    " ? #N/A #NA <NA> N/A NA NULL NaN NaT None -NaN -nan n/a nan null".split(" ")
)
_FORMATS = (
    *("ISO8601", "%d.%m.%Y", "%d.%m.%y"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
)
_DAY_OR_MONTH = ({"%d/%m/%Y", "%m/%d/%Y"}, {"%d-%m-%Y", "%m-%d-%Y"})
_PLAIN_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_NUMBER = rf"{_PLAIN_NUMBER}|[+-]?inf(inity)?"
_UNNAMED = re.compile(r"(unnamed: \d+)?")  # as pandas calls what has no name
_PERHAPS_NUMBER = r"(?i)\d|inf"
_PERHAPS_DATE = r"\d\D*\d\D*\d\D*\d"  # all formats have four digits, and more
_COMMA_THOUSANDS = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"
_DOT_THOUSANDS = r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"
_WITH_COMMA = r"[+-]?\d*,\d+([eE][+-]?\d+)?"
_SPACES = "[ \u00a0\u2009\u202f](?=\\d{3}(\\D|$))"
_MOST_MIXED = 20  # texts, numbers among them, that are categories all the same
_FEW_BAD = 0.05  # of the cells: more that are no numbers make a column of texts
_DISTINCT = 0.5  # of the rows: texts that differ as often are names
_FEWEST_NAMES = 20
_TRUTHS = {"true": 1.0, "false": 0.0}


class Reading(NamedTuple):
    """How the text of a column is read.

    Attributes:
        decimal: what stands before a number's decimals, `"."` or `","`.
        date_format: of dates; `None` for ISO's.
    """

    decimal: str = "."
    date_format: str | None = None


class Problem(NamedTuple):
    """A column with cells that are not like the others.

    Attributes:
        column: its name.
        said: the column, the first such row and cell, and how many there are.
    """

    column: str
    said: str


class Kind(NamedTuple):
    """What a column holds.

    Attributes:
        kind: of its cells.
        reading: of their text.
        reason_to_leave_out: if it is of no use, unless it is asked for.
    """

    kind: str
    reading: Reading = Reading()
    reason_to_leave_out: str | None = None


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
            return _days(self, reading.date_format)
        return self.numbers(reading)

    def categories(self) -> "pd.Series":
        """Categories as text, `EMPTY` where there is none."""
        cells = self.texts.where(self.given, EMPTY)
        plain = {text: unescaped(text) for text in cells.unique()}
        if all(text == its for text, its in plain.items()):
            return cells
        return cells.map(plain)


def kind_of(cells: Cells) -> Kind | Problem:
    """What a column holds, or the cells for which that cannot be said.

    Args:
        cells: of the column.
    """
    import pandas as pd

    texts, given = cells.texts, cells.given
    if not given.any():
        return Kind("number", reason_to_leave_out="all of its cells are empty")
    if pd.api.types.is_bool_dtype(cells.column):
        return Kind("boolean")
    if pd.api.types.is_numeric_dtype(cells.column):
        return _number(cells, Reading())
    if is_date_like(cells.column):
        return Kind("date")
    is_truth = str(texts[given].iloc[0]).lower() in _TRUTHS
    if is_truth and set(texts[given].str.lower()) <= set(_TRUTHS):
        return Kind("boolean")
    reading = Reading(decimal_of(cells))
    values = cells.numbers(reading)[given]
    share = np.mean(~np.isnan(values))
    if share == 1:
        return _number(cells, reading)
    found = _date(cells) if share <= 0.5 else None  # 1850 is a year to ISO, too
    if found is not None:
        return found
    has_nul = texts.str.contains("\x00", regex=False).to_numpy(bool)
    if has_nul.any():
        row = int(np.flatnonzero(has_nul)[0])
        said = (
            f"column {str(cells.column.name)!r} has a NUL byte in row {row}, counting"
        )
        return Problem(str(cells.column.name), f"{said} from 0")
    num_distinct = texts[given].nunique()
    if 1 - share <= _FEW_BAD or (share > 0.5 and num_distinct > _MOST_MIXED):
        return bad_cells(cells, "number", reading) or Kind("number", reading)
    if num_distinct >= max(_FEWEST_NAMES, _DISTINCT * given.sum()):
        return Kind(
            "category",
            reason_to_leave_out=f"it has {num_distinct:,} different texts in "
            f"{int(given.sum()):,} rows, which are names rather than categories",
        )
    return Kind("category")


def bad_cells(cells: Cells, kind: str, reading: Reading) -> Problem | None:
    """The cells of a column that are not of its kind; `None` if all are.

    Args:
        cells: of the column.
        kind: of the column in training.
        reading: of its text in training.
    """
    if kind == "category":
        return None
    given, values = cells.given, cells.values(kind, reading)
    is_bad = given & ~np.isfinite(values)
    if kind == "boolean":
        is_bad |= given & ~np.isin(values, (0.0, 1.0))
    if not is_bad.any():
        return None
    row = int(np.flatnonzero(is_bad)[0])
    what = {
        "date": f"no date like {_shown(reading.date_format)}",
        "boolean": "neither true nor false",
        "number": "no finite number" if np.isinf(values).any() else "no number",
    }[kind]
    name, cell = str(cells.column.name), cells.column.iloc[row]
    cell = repr(cell) if isinstance(cell, str) else f"{cell}"
    more = int(is_bad.sum()) - 1
    others = f" ({more} more after it)" if more else ""
    said = f"column {name!r} has {cell} in row {row}, counting from 0, which is "
    return Problem(name, f"{said}{what}{others}")


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
    truths = texts.str.lower().map(_TRUTHS)
    if not texts.str.contains(_PERHAPS_NUMBER).any():  # what follows takes a while
        return truths.to_numpy(np.float64, na_value=np.nan)
    texts = texts.str.replace("\u2212", "-").str.replace(_SPACES, "", regex=True)
    if decimal == ",":
        is_thousand = texts.str.fullmatch(_DOT_THOUSANDS)
        texts = texts.where(~is_thousand, texts.str.replace(".", ""))
        texts = texts.where(~texts.str.contains(".", regex=False), "no number")
        texts = texts.str.replace(",", ".")
    else:
        is_thousand = texts.str.fullmatch(_COMMA_THOUSANDS)
        texts = texts.where(~is_thousand, texts.str.replace(",", ""))
    texts = texts.where(texts.str.lower().str.fullmatch(_NUMBER), None)
    found = pd.to_numeric(texts, errors="coerce")
    return found.fillna(truths).to_numpy(np.float64, na_value=np.nan)


def _plain(cell: object) -> object:
    is_whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return int(cell) if is_whole else cell  # type: ignore[call-overload]


def _days(whole: Cells, date_format: str | None) -> Float[np.ndarray, " rows"]:
    """Days since 1970: NaN for what is empty, or no date."""
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


def decimal_of(cells: Cells) -> str:
    """What stands before decimals, by all of a column's text.

    Where only numbers like 1,234 have a comma, a table whose cells commas part has
    thousands, and one with decimal points; another one decimals.

    Args:
        cells: of the column.
    """
    mark = cells.column.attrs.get("decimal")
    has_comma = cells.texts.str.contains(",", regex=False)
    if not has_comma.any():
        # Another column may say what the points of 2.320 are.
        has_point = cells.texts[cells.given].str.contains(".", regex=False).any()
        return mark or "." if has_point and has_no_decimals(cells) else "."
    texts = cells.texts[has_comma]
    if not texts.str.fullmatch(f"{_WITH_COMMA}|{_DOT_THOUSANDS}").all():
        return "."
    is_thousand = texts.str.fullmatch(_COMMA_THOUSANDS)
    has_other = mark == "." or cells.column.attrs.get("separator", ",") == ","
    return "." if is_thousand.all() and has_other else ","


def has_no_decimals(cells: Cells) -> bool:
    """Whether text has whole numbers alone, or what could be thousands: `2.320`.

    Args:
        cells: of a column of numbers.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells.column):
        return False
    texts = cells.texts[cells.given].str.strip()
    return bool(texts.str.fullmatch(rf"[+-]?\d+|{_DOT_THOUSANDS}").all())


def _number(cells: Cells, reading: Reading) -> Kind | Problem:
    bad = bad_cells(cells, "number", reading)
    if bad is not None:
        return bad
    values = cells.numbers(reading)
    is_whole = bool(np.all(values == np.round(values)))
    is_other = is_whole and len(np.unique(values)) == len(values)
    reason = reason_of_name(str(cells.column.name)) if is_other else None
    return Kind("number", reading, reason)


def reason_of_name(name: str) -> str | None:
    """Why whole numbers of a name, others in each row, are of no use; or `None`.

    Args:
        name: of the column.
    """
    name = name.strip().lower()
    if _UNNAMED.fullmatch(name):
        return "it has no name, and counts rows, as the index of a table does"
    is_id = name == "id" or name.endswith(("_id", " id", "-id", ".id"))
    return "it is an id, another in each row" if is_id else None


def _date(cells: Cells) -> Kind | Problem | None:
    """Of texts that are dates, if most of them are."""
    given, name = cells.given, str(cells.column.name)
    # Each format takes a while to try, and most columns of text are words.
    if (~cells.texts[given].str.contains(_PERHAPS_DATE)).mean() > _FEW_BAD:
        return None
    unread = {form: np.isnan(_days(cells, form))[given] for form in _FORMATS}
    read = [form for form in _FORMATS if not unread[form].any()]
    if any(orders <= set(read) for orders in _DAY_OR_MONTH):
        row = int(np.flatnonzero(given)[0])
        said = f"column {name!r} has dates of which day and month cannot be "
        return Problem(
            name,
            f"{said}told apart, such as {cells.column.iloc[row]!r} in row {row} (write "
            "them as 2024-01-31)",
        )
    nearly = [form for form in _FORMATS if unread[form].mean() <= _FEW_BAD]
    for form in (read or nearly)[:1]:
        reading = Reading(date_format=None if form == "ISO8601" else form)
        return bad_cells(cells, "date", reading) or Kind("date", reading)
    return None


def _shown(date_format: str | None) -> str:
    """A date as the format writes it."""
    example = {"%d": "31", "%m": "01", "%Y": "2024", "%y": "24"}
    text = date_format or "%Y-%m-%d"
    for part, shown in example.items():
        text = text.replace(part, shown)
    return text
