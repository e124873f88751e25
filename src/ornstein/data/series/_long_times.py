"""The column of times of a long table: numbers, or dates made numbers."""

import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from ..._sentence import Sentence
from .._clock import Clock
from .._error import DataError, nearest

TIME_UNITS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "weeks": 604800.0,
}
"""Units of times that are dates, in seconds."""

_ACCEPTED = "give numbers, or ISO dates such as 2024-01-31 or 2024-01-31T12:00:00"


class LongTimes(NamedTuple):
    """Times as numbers.

    Attributes:
        ts: one for each row of the table.
        origin: the date that is time 0; `None` where times were numbers.
        notes: what was decided without the user.
        has_zone: whether dates had a time zone; `None` where times were numbers.
    """

    ts: Float[np.ndarray, " cells"]
    origin: str | None
    notes: tuple[str, ...]
    has_zone: bool | None = None


def read_times(
    frame: pa.Table, column: str, path: Path, *, unit: str, origin: str | None
) -> LongTimes:
    """The times of a long table.

    Args:
        frame: the table.
        column: of times.
        path: the table's file, for messages.
        unit: of times that are dates: one of `TIME_UNITS`.
        origin: the date that is time 0, or `None` for the earliest.

    Raises:
        DataError: for an empty cell, or times that are no numbers and no dates.
    """
    if unit not in TIME_UNITS:
        raise DataError(
            f"There is no unit of time {unit!r}{nearest(unit, TIME_UNITS)}: give one "
            f"of {', '.join(TIME_UNITS)}."
        )
    cells = frame[column].combine_chunks()
    if cells.null_count:
        row = cells.is_null().index(True).as_py()
        raise DataError(
            f"{path}: column {column!r} has no time in row {row}, counting from 0: "
            "fill it in or leave that row out."
        )
    kind = cells.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _dates(cells, column, path, unit, origin)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _plain_numbers(cells, column, path, origin)
    raise _no_times(cells, column, path)


def read_times_by(
    clock: Clock, frame: pa.Table, column: str, path: Path, *, unit: str
) -> LongTimes:
    """The times of a long table, as a model that learned from another counts them.

    Args:
        clock: of the data that it learned from.
        frame: the table.
        column: of times.
        path: the table's file, for messages.
        unit: of times that are dates, where the clock does not know it.

    Raises:
        DataError: for what `read_times` refuses, numbers where the clock has dates, and
            dates with a time zone where it has none; or the reverse.
    """
    known = (name for name, seconds in TIME_UNITS.items() if seconds == clock.seconds)
    unit = next(known, unit)
    found = read_times(frame, column, path, unit=unit, origin=None)
    if (clock.origin is None) != (found.origin is None):
        theirs, ours = "numbers", "dates"
        if clock.origin is not None:
            theirs, ours = ours, theirs
        raise DataError(
            f"{path}: the times of column {column!r} are {ours}, and the model learned "
            f"from {theirs}: give {theirs} that count as the training table's do."
        )
    if clock.has_zone is not None and clock.has_zone != found.has_zone:
        theirs, ours = ("a", "no") if clock.has_zone else ("no", "a")
        raise DataError(
            f"{path}: the dates of column {column!r} have {ours} time zone, and the "
            f"model learned from dates with {theirs} time zone: write them likewise."
        )
    if clock.origin is None:
        return found
    return read_times(frame, column, path, unit=unit, origin=clock.origin)


def _plain_numbers(
    cells: pa.Array, column: str, path: Path, origin: str | None
) -> LongTimes:
    if origin is not None:
        raise DataError(
            f"{path}: the times of column {column!r} are numbers, which have no date "
            "of origin: leave `origin` out."
        )
    ts = cells.to_numpy(zero_copy_only=False).astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(ts))
    if bad.size:
        raise DataError(
            f"{path}: column {column!r} has the time {ts[bad[0]]} in row {bad[0]}, "
            "counting from 0: fill it in or leave that row out."
        )
    return LongTimes(ts, None, ())


def _dates(
    cells: pa.Array, column: str, path: Path, unit: str, origin: str | None
) -> LongTimes:
    # Nanoseconds in whole numbers: microseconds apart stay apart.
    try:
        ns = cells.cast(pa.timestamp("ns", tz=getattr(cells.type, "tz", None)))
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: column {column!r} has dates outside the years 1678 to 2262: "
            "correct them, or give times as numbers."
        ) from error
    stamps = ns.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if origin is None:
        start = stamps.min()
        said = np.datetime_as_string(start.view("datetime64[ns]"), unit="auto")
    else:
        start, said = _origin(origin), origin
    ts = (stamps - start) / (1e9 * TIME_UNITS[unit])
    note = Sentence(
        "{}: the times of column {!r} are {} since {}; {time_unit} names another unit.",
        *(str(path), column, unit, str(said)),
    )
    has_zone = getattr(cells.type, "tz", None) is not None
    return LongTimes(ts, str(said), (note,), has_zone)


def _origin(origin: str) -> np.int64:
    try:
        when = datetime.datetime.fromisoformat(origin)
        if when.tzinfo is not None:
            when = when.astimezone(datetime.UTC).replace(tzinfo=None)
    except ValueError as error:
        raise DataError(
            f"`origin` must be an ISO date such as 2024-01-31, got {origin!r}."
        ) from error
    return np.datetime64(when, "ns").astype(np.int64)


def _no_times(cells: pa.Array, column: str, path: Path) -> DataError:
    """What is wrong with a column of text: mixed, or no times at all."""
    texts = [str(cell) for cell in cells.to_pylist()]
    kinds = [_kind(text) for text in texts]
    other = next((row for row, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is None and kinds[0] == "date":
        return DataError(
            f"{path}: column {column!r} has dates of several forms (for instance "
            f"{texts[0]!r}): give ISO dates, all with a time zone or all without."
        )
    if other is None or kinds[0] is None:
        return DataError(
            f"{path}: column {column!r} holds no times (for instance {texts[0]!r}): "
            f"{_ACCEPTED}."
        )
    return DataError(
        f"{path}: column {column!r} has times of mixed type, {texts[0]!r} in row 0 and "
        f"{texts[other]!r} in row {other}, counting from 0: {_ACCEPTED}."
    )


def _kind(text: str) -> str | None:
    for kind, read in (("number", float), ("date", datetime.datetime.fromisoformat)):
        try:
            read(text)
        except ValueError:
            continue
        return kind
    return None
