"""What a column's cells are: numbers, booleans, dates, or categories, by pandas.

How a column's text is read is decided once, by the training rows: the same text then is
the same number in any other table.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._cells import (
    COMMA_THOUSANDS,
    DOT_THOUSANDS,
    TRUTHS,
    Cells,
    Reading,
    days_of,
    is_date_like,
)

if TYPE_CHECKING:
    pass

_FORMATS = (
    *("ISO8601", "%d.%m.%Y", "%d.%m.%y"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
)
_DAY_OR_MONTH = ({"%d/%m/%Y", "%m/%d/%Y"}, {"%d-%m-%Y", "%m-%d-%Y"})
_UNNAMED = re.compile(r"(unnamed: \d+)?")  # as pandas calls what has no name
_PERHAPS_DATE = r"\d\D*\d\D*\d\D*\d"  # all formats have four digits, and more
_WITH_COMMA = r"[+-]?\d*,\d+([eE][+-]?\d+)?"
_CODE = r"[+-]?0\d+"  # a zero that no whole number has
_WITH_MARK = r"[+-]?[\d.,]*[.,][\d.,]*|[+-]?\d+[eE][+-]?\d+"
_MOST_MIXED = 20  # texts, numbers among them, that are categories all the same
_FEW_BAD = 0.05  # of the cells: more that are no numbers make a column of texts
_DISTINCT = 0.5  # of the rows: texts that differ as often are names
_FEWEST_NAMES = 20


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
        code: a number with a zero before it, for which numbers are categories.
    """

    kind: str
    reading: Reading = Reading()
    reason_to_leave_out: str | None = None
    code: str | None = None


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
        return Kind("date", Reading(has_zone=_has_zone(cells)))
    is_truth = str(texts[given].iloc[0]).lower() in TRUTHS
    if is_truth and set(texts[given].str.lower()) <= set(TRUTHS):
        return Kind("boolean")
    if _is_category(cells.column):
        return _refused_nul(cells) or _category(cells)
    reading = Reading(decimal_of(cells))
    values = cells.numbers(reading)[given]
    share = np.mean(~np.isnan(values))
    code = _code_in(cells) if share > 0.5 else None
    if code is not None and not 0 < 1 - share <= _FEW_BAD:
        return _refused_nul(cells) or _category(cells, code)
    if share == 1:
        return _number(cells, reading)
    found = _date(cells) if share <= 0.5 else None  # 1850 is a year to ISO, too
    if found is not None:
        return found
    nul = _refused_nul(cells)
    if nul is not None:
        return nul
    num_distinct = texts[given].nunique()
    if 1 - share <= _FEW_BAD or (share > 0.5 and num_distinct > _MOST_MIXED):
        return bad_cells(cells, "number", reading) or Kind("number", reading)
    return _category(cells)


def _code_in(cells: Cells) -> str | None:
    """A whole number with a zero before it, as 01, where no number has decimals.

    One among many different numbers of several lengths is a number, too.
    """
    texts = cells.texts[cells.given]
    is_code = texts.str.fullmatch(_CODE)
    if not is_code.any() or texts.str.fullmatch(_WITH_MARK).any():
        return None
    is_stray = is_code.mean() <= _FEW_BAD and texts.nunique() > _MOST_MIXED
    if is_stray and texts.str.len().nunique() > 1:
        return None
    return str(texts[is_code].iloc[0])


def as_code(code: str) -> str:
    """Why numbers are categories."""
    return f"{code!r} has a zero before it, as a code"


def _is_category(column: "pd.Series") -> bool:
    """Whether pandas, or Arrow, has its texts for categories."""
    import pandas as pd

    if not isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.infer_dtype(column.cat.categories) == "string"


def _category(cells: Cells, code: str | None = None) -> Kind:
    num_given, num_distinct = int(cells.given.sum()), cells.texts[cells.given].nunique()
    reason = None
    if num_distinct >= max(_FEWEST_NAMES, _DISTINCT * num_given):
        zero = "" if code is None else f" ({as_code(code)})"
        reason = (
            f"it has {num_distinct:,} different texts in {num_given:,} rows, which are "
            f"names rather than categories{zero}"
        )
    return Kind("category", reason_to_leave_out=reason, code=code)


def _refused_nul(cells: Cells) -> Problem | None:
    has_nul = cells.texts.str.contains("\x00", regex=False).to_numpy(bool)
    if not has_nul.any():
        return None
    row, name = int(np.flatnonzero(has_nul)[0]), str(cells.column.name)
    said = f"column {name!r} has a NUL byte in row {row}, counting from 0"
    return Problem(name, said)


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
    if kind == "date" and reading.has_zone is not None:
        is_bad |= given & (cells.zoned != reading.has_zone)
    if not is_bad.any():
        return None
    row = int(np.flatnonzero(is_bad)[0])
    is_date = np.isfinite(values[row])
    theirs, ours = ("a", "no") if reading.has_zone else ("no", "a")
    what = {
        "date": f"a date with {ours} time zone, where training's have {theirs}"
        if is_date
        else f"no date like {_shown(reading.date_format)}",
        "boolean": "neither true nor false",
        "number": "no finite number" if np.isinf(values).any() else "no number",
    }[kind]
    name, cell = str(cells.column.name), cells.column.iloc[row]
    cell = repr(cell) if isinstance(cell, str) else f"{cell}"
    more = int(is_bad.sum()) - 1
    others = f" ({more} more after it)" if more else ""
    said = f"column {name!r} has {cell} in row {row}, counting from 0, which is "
    return Problem(name, f"{said}{what}{others}")


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
    if not texts.str.fullmatch(f"{_WITH_COMMA}|{DOT_THOUSANDS}").all():
        return "."
    is_thousand = texts.str.fullmatch(COMMA_THOUSANDS)
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
    return bool(texts.str.fullmatch(rf"[+-]?\d+|{DOT_THOUSANDS}").all())


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
    unread = {form: np.isnan(days_of(cells, form))[given] for form in _FORMATS}
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
        zoned = reading._replace(has_zone=_has_zone(cells))
        return bad_cells(cells, "date", reading) or Kind("date", zoned)
    return None


def _has_zone(cells: Cells) -> bool | None:
    zoned = cells.zoned[cells.given]
    return bool(zoned[0]) if len(set(zoned)) == 1 else None


def _shown(date_format: str | None) -> str:
    """A date as the format writes it."""
    example = {"%d": "31", "%m": "01", "%Y": "2024", "%y": "24"}
    text = date_format or "%Y-%m-%d"
    for part, shown in example.items():
        text = text.replace(part, shown)
    return text
