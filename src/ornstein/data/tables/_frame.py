"""The user's own tables as they lie on disk: CSV or parquet."""

import itertools
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.csv as pacsv

from ..._files import UnreadableError, check_fits_memory
from ..._sentence import Sentence
from .._error import DataError, DataNotFoundError
from .._formulas import unescaped
from ..images import read_parquet

if TYPE_CHECKING:
    import pandas as pd

_MAX_COLUMNS = 100_000  # of a table: the parser takes a minute for ten times as many
_MAX_HEADER = 2**27  # bytes
_MAX_BLANK = 2**20  # bytes
_SEPARATORS = ",;\t|"
_SEPARATOR_LINE = re.compile(rb'(\xef\xbb\xbf)?"?sep=(?P<separator>[,;\t|:])"?\s*')
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_table(
    path: Path,
    separator: str | None = None,
    *,
    as_text: bool = False,
    text_columns: Collection[str] = (),
) -> pa.Table:
    """Read a `.csv` or `.parquet` file; text that says that a cell is empty stays text.

    Columns without name and values are left out. Decimals of Parquet are floats.

    Args:
        path: the file.
        separator: between cells of a `.csv`; seen from its header by default.
        as_text: leave all cells as they are written.
        text_columns: leave those of these columns, whichever there are.

    Raises:
        DataNotFoundError: if there is none.
        DataError: if it is empty, cut short or something else.
    """
    found = _read(path, separator, is_text=as_text, text_columns=text_columns)
    if as_text:
        return found
    for place, field in enumerate(found.schema):
        if pa.types.is_decimal(field.type) and field.name not in text_columns:
            numbers = found.column(place).cast(pa.float64())
            found = found.set_column(place, field.name, numbers)
    return found


def read_frame(path: Path, separator: str | None = None) -> "pd.DataFrame":
    """Read a `.csv` file, all of it as text, or a `.parquet` file.

    Text, so that a cell is the same whatever stands above and below it. Spaces around
    names are not among them; columns without name and values are left out.

    Args:
        path: the file.
        separator: between cells of a `.csv`; seen from its header by default.

    Raises:
        DataNotFoundError: if there is none.
        DataError: if it is empty, cut short or something else.
    """
    found = _read(path, separator, is_text=True)
    ints = {
        name: "UInt64" if pa.types.is_unsigned_integer(column.type) else "Int64"
        for name, column in zip(found.column_names, found.columns, strict=True)
        if pa.types.is_integer(column.type) and column.null_count
    }
    # Not doubles: whole numbers may be classes, and names of rows.
    others = [name for name in found.column_names if name not in ints]
    frame = found.select(others).to_pandas(date_as_object=False)
    import pandas as pd

    for name, dtype in ints.items():
        frame[name] = pd.array(found[name].to_pylist(), dtype=dtype)
    frame = frame[found.column_names]
    if path.suffix.lower() != ".parquet":
        frame.attrs["separator"] = separator or _top(path).separator
    return frame


def _read(
    path: Path,
    separator: str | None,
    *,
    is_text: bool,
    text_columns: Collection[str] = (),
) -> pa.Table:
    if path.suffix.lower() == ".parquet":
        if separator is not None:
            raise DataError(
                Sentence("{} has no {separator}: leave it out, or give a .csv.", path)
            )
        frame = read_parquet(path)
    else:
        is_left = lambda name: is_text or _called(name) in text_columns
        frame = _read_csv(path, separator, is_left)
    frame = _without_unnamed(frame)
    names = list(map(_called, frame.column_names))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path} has two columns of one name, {twice!r}: rename one.")
    if frame.num_rows == 0:
        raise DataError(f"{path} has a header and no rows: give at least one.")
    return frame.rename_columns(names)


def _called(name: str) -> str:
    """What a column is called, by the name that its file has."""
    return unescaped(name.strip())


def _without_unnamed(frame: pa.Table) -> pa.Table:
    """Without what separators at the ends of lines make."""
    is_blank = lambda column: all(cell.as_py() in (None, "") for cell in column)
    return frame.select(
        [
            place
            for place, name in enumerate(frame.column_names)
            if name.strip() or not is_blank(frame.column(place))
        ]
    )


def _read_csv(
    path: Path, separator: str | None, is_text: Callable[[str], bool]
) -> pa.Table:
    """See `read_table`: `is_text` says of which columns cells stay as they are."""
    if not path.exists():
        raise DataNotFoundError(f"There is no file {path}: check the path.")
    if separator is not None and (
        len(separator.encode()) != 1 or separator in '"\r\n' or separator.isalnum()
    ):
        raise DataError(
            Sentence(
                "{separator} must be one character that is no letter, digit or quote, "
                "such as ; or a tab, got {}.",
                repr(separator),
            )
        )
    try:
        check_fits_memory(path)
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty: give a header and rows.")
        top = _top(path)
        header, delimiter = top.header, separator or top.separator
        _check_columns(path, header, delimiter)
        # The parser wants the header and any row in one block; 1 MB is its own.
        block_size = min(max(2**20, 16 * len(header)), 2**30)
        read_options = pacsv.ReadOptions(
            block_size=block_size, skip_rows=top.num_before
        )
        parsing = pacsv.ParseOptions(delimiter=delimiter)
        try:
            found = _parsed(path, read_options, parsing, is_text)
        except pa.ArrowInvalid:
            # Perhaps for a line's end between quotes, which takes a slower parser.
            parsing.newlines_in_values = True
            found = _parsed(path, read_options, parsing, is_text)
        blank = _blank_lines(path, top.num_before) if found.num_columns == 1 else None
        if blank is not None:
            # Such a line is an empty cell: without it, rows were others than they are.
            read_options.skip_rows += blank.above
            parsing.ignore_empty_lines = False
            found = _parsed(path, read_options, parsing, is_text)
            found = found.slice(0, found.num_rows - blank.below)
        _check_text(found)
        return found
    except (UnreadableError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(
            Sentence(
                "{} cannot be read as CSV ({}): give UTF-8 text, as many cells in "
                "every row as in the header, and {} between cells, or another "
                "character by {separator}.",
                path,
                reason,
                "commas, semicolons or tabs",
            )
        ) from error


def _parsed(
    path: Path,
    reading: pacsv.ReadOptions,
    parsing: pacsv.ParseOptions,
    is_text: Callable[[str], bool],
) -> pa.Table:
    how = {"read_options": reading, "parse_options": parsing}
    names = filter(is_text, pacsv.open_csv(path, **how).schema.names)
    options = pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return pacsv.read_csv(path, convert_options=options, **how)


def _check_text(found: pa.Table) -> None:
    """Refuse what Arrow leaves as bytes, for it is no UTF-8."""
    for name, column in zip(found.column_names, found.columns, strict=True):
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            raise UnreadableError(f"column {name!r} has bytes that are no UTF-8")


class _Top(NamedTuple):
    """The beginning of a file.

    Attributes:
        header: the line with the names.
        separator: between them.
        num_before: lines before it.
    """

    header: bytes
    separator: str
    num_before: int


def _top(path: Path) -> _Top:
    """The header, which a line `sep=;` may precede, as Excel reads it."""
    with path.open("rb") as file:
        first = file.readline(_MAX_HEADER)
        _check_encoding(path, first)
        told = _SEPARATOR_LINE.fullmatch(first)
        if told is not None:
            header = file.readline(_MAX_HEADER)
            _check_encoding(path, header)
            return _Top(header, told["separator"].decode(), 1)
        separator = _seen_separator(first)
        if first.removeprefix(_BOM).startswith(b"#"):
            lines = itertools.islice(iter(lambda: file.readline(_MAX_HEADER), b""), 100)
            following = next((line for line in lines if line[:1] != b"#"), b"")
            found = _seen_separator(following)
            if first.count(found.encode()) < following.count(found.encode()):
                raise DataError(
                    f"{path} begins with a comment, "
                    f"{first.decode('utf-8', 'replace').strip()[:40]!r}, and its first "
                    "line must be the header: take out the lines above that."
                )
    return _Top(first, separator, 0)


class _BlankLines(NamedTuple):
    """How many lines are blank, and no rows.

    Attributes:
        above: the header.
        below: the last row.
    """

    above: int
    below: int


def _blank_lines(path: Path, num_before: int) -> _BlankLines | None:
    """Blank lines around a table, of which `num_before` lines are above all else.

    `None` where each line has two ends, as Python's `csv` may write on Windows.
    """
    plain = lambda text: text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    with path.open("rb") as file:
        for _ in range(num_before):
            file.readline(_MAX_HEADER)
        first = file.read(_MAX_BLANK).removeprefix(_BOM)
        if b"\r\r\n" in first:
            return None
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MAX_BLANK))
        last = plain(file.read())
    first = plain(first)
    above = len(first) - len(first.lstrip(b"\n"))
    below = len(last) - len(last.rstrip(b"\n")) - 1  # one ends the last row
    return _BlankLines(above, max(below, 0))


def _check_encoding(path: Path, line: bytes) -> None:
    if line.startswith(_UTF_16) or b"\x00" in line:
        share = line.count(b"\x00") / len(line)
        is_wide = line.startswith(_UTF_16) or 0.3 < share < 0.7  # every second byte
        what = "UTF-16" if is_wide else "NUL bytes"
        raise DataError(
            f"{path} has {what} in its first line, and UTF-8 is read: save it again as "
            "CSV in UTF-8."
        )


def _seen_separator(header: bytes) -> str:
    """The most frequent of the usual ones between names, a comma where none is."""
    text = header.decode("utf-8", "replace")
    unquoted = "".join(text.split('"')[::2])
    return max(_SEPARATORS, key=unquoted.count)


def _check_columns(path: Path, header: bytes, separator: str) -> None:
    columns = header.count(separator.encode()) + 1
    if columns > _MAX_COLUMNS or len(header) == _MAX_HEADER:
        raise DataError(
            f"{path} has {columns:,} columns in its first {len(header):,} bytes, and "
            f"at most {_MAX_COLUMNS:,} are read: give arrays instead, written by "
            "numpy.savez(path, x=..., y=...)."
        )
