"""The user's own sequences: a long table, a row for each time of each series."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ..._sentence import Sentence
from .._clock import Clock
from .._error import DataError
from .._series import Series, later_times
from .._source import expanded
from .._standardise import Standardisation
from ..tables import read_table
from ._advice import Advice
from ._assemble_series import Sequences, scaled_series
from ._long_times import LongTimes, read_times, read_times_by
from ._long_values import read_names, read_values


class LongTable(NamedTuple):
    """A long table, with its series side by side.

    A shorter series is padded with later times: see `Series.padded`.

    Attributes:
        ts: times, in double precision.
        values: NaN where the cell was empty, and after a series' own times.
        lengths: how many times each series has of its own.
        names: of the series, in the order of the file; `("",)` where no column names
            them.
        feature_names: of the value columns.
        origin: the date that is time 0; `None` where times are numbers.
        notes: what was decided without the user.
        has_zone: whether dates had a time zone; `None` where times are numbers.
        num_columns: of the file, with those that were left out.
    """

    ts: Float[np.ndarray, "rows times"]
    values: Float[np.ndarray, "rows times features"]
    lengths: Int[np.ndarray, " rows"]
    names: tuple[str, ...]
    feature_names: tuple[str, ...]
    origin: str | None
    notes: tuple[str, ...]
    has_zone: bool | None = None
    num_columns: int | None = None

    @property
    def is_own(self) -> Bool[np.ndarray, "rows times"]:
        """Which times are the series' own, and not padding."""
        return np.arange(self.ts.shape[1]) < self.lengths[:, None]

    def rows(self, indices: Int[np.ndarray, " picked"]) -> Sequences:
        """Some of the series, as they were observed."""
        return Sequences(self.ts[indices], self.values[indices])

    def to_series(self, scaling: Standardisation | None = None) -> Series:
        """All of them for a model.

        Args:
            scaling: of the data that the model learned from.
        """
        return scaled_series(self.ts, self.values, scaling)


def read_long_csv(
    path: str | Path,
    *,
    time: str,
    value: str | Sequence[str],
    series: str | None = None,
    time_unit: str = "days",
    origin: str | None = None,
    clock: Clock | None = None,
) -> LongTable:
    """Read a long table, checked.

    Rows of different series may be mixed; those of one series must be in the order of
    time. An empty cell of a value column (or NaN, NA, null) means that this value was
    not observed at this time. Other columns are left out, and a note says so.

    Args:
        path: `.csv` (a header, then rows) or `.parquet`.
        time: the column of times: numbers, which stay as they are, or ISO dates.
        value: the column of values, or several: the features of one series.
        series: the column that says which series a row belongs to, by a name that is
            read as it is written; `None` if there is only one.
        time_unit: of times that are dates: `"seconds"`, `"minutes"`, `"hours"`,
            `"days"` or `"weeks"`, counted from `origin`.
        origin: the date that is time 0, where times are dates; `None` takes the
            earliest of the file.
        clock: of the data that a model learned from, to continue these: it says unit
            and origin, in the place of the two above.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: for a column that is not there, times that are no numbers and no
            dates, of mixed type, unsorted or repeated within a series, a series of one
            point or without any value, and values that are no finite numbers; with
            a clock, also for times of another kind than its own.
    """
    path = expanded(path)
    frame = read_table(path, text_columns=[series] if series else [])
    values = [value] if isinstance(value, str) else list(value)
    advice = Advice(is_asked=clock is not None, has_names=series is not None)
    wanted = [("time", time), ("series", series), *(("value", v) for v in values)]
    _check_columns(path, frame.column_names, wanted, advice)
    if clock is None:
        times = read_times(frame, time, path, unit=time_unit, origin=origin)
    else:
        times = read_times_by(clock, frame, time, path, unit=time_unit)
    features = np.stack([read_values(frame, name, path) for name in values], axis=1)
    if series is None:
        names, codes = ("",), np.zeros(frame.num_rows, int)
    else:
        names, codes = read_names(frame, series, path)
    table = _side_by_side(path, times, features, names, codes, advice)
    used = {time, series, *values}
    unused = [name for name in frame.column_names if name not in used]
    notes = list(times.notes)
    if unused:
        notes.append(
            Sentence(
                "{}: the columns {} were left out; {value} names the columns to learn.",
                *(str(path), ", ".join(unused)),
            )
        )
    return table._replace(
        feature_names=tuple(values),
        notes=tuple(notes),
        num_columns=frame.num_columns,
    )


def _check_columns(
    path: Path,
    columns: Sequence[str],
    wanted: Sequence[tuple[str, str | None]],
    advice: Advice,
) -> None:
    if not any(role == "value" for role, _ in wanted):
        raise DataError(
            Sentence(
                "{} needs a value: name the column to learn with {value}; "
                "the columns are {}.",
                path,
                ", ".join(columns),
            )
        )
    seen: dict[str, str] = {}
    for role, name in wanted:
        if name is None:
            continue
        if name not in columns:
            raise DataError(f"{path} {advice.on_column(name, role, columns)}")
        if name in seen:
            raise DataError(
                f"{path}: column {name!r} was named for {seen[name]} and for {role}: "
                "name a column once."
            )
        seen[name] = role


def _side_by_side(
    path: Path,
    times: LongTimes,
    features: Float[np.ndarray, "cells features"],
    names: tuple[str, ...],
    codes: Int[np.ndarray, " cells"],
    advice: Advice,
) -> LongTable:
    """Put the series side by side, each checked."""
    lengths = np.bincount(codes, minlength=len(names))
    order = np.split(np.argsort(codes, kind="stable"), np.cumsum(lengths)[:-1])
    shape = (len(names), int(lengths.max()))
    ts = np.zeros(shape)
    values = np.full((*shape, features.shape[1]), np.nan)
    for row, cells in enumerate(order):
        where = f"{path}: series {names[row]!r}" if names[row] else str(path)
        own, length = times.ts[cells], len(cells)
        _check_times(own, cells, where, advice, start=float(times.ts.min()))
        if np.isnan(features[cells]).all():
            raise DataError(
                f"{where} has no observed value: {advice.on_nothing_observed}."
            )
        ts[row, :length] = own
        values[row, :length] = features[cells]
        start = own[0]  # large times would be rounded as the model's are not
        ts[row, length:] = start + later_times(own - start, shape[1] - length)
    return LongTable(ts, values, lengths, names, (), times.origin, (), times.has_zone)


def _check_times(
    ts: Float[np.ndarray, " times"],
    cells: Int[np.ndarray, " times"],
    where: str,
    advice: Advice,
    *,
    start: float,
) -> None:
    if len(ts) < 2:
        raise DataError(
            f"{where} has one point, in row {cells[0]}, counting from 0: a series has "
            f"at least two times; {advice.on_one_point}."
        )
    bad = np.flatnonzero(np.diff(ts) <= 0)
    if bad.size:
        first, second = cells[bad[0]], cells[bad[0] + 1]
        if ts[bad[0]] == ts[bad[0] + 1]:
            raise DataError(
                Sentence(
                    "{} has one time twice, in rows {} and {}, counting from 0: keep "
                    "one of them{}.",
                    where,
                    first,
                    second,
                    advice.on_other_series,
                )
            )
        raise DataError(
            Sentence(
                "{} is not in the order of time: row {}, counting from 0, is earlier "
                "than row {}; {}{}.",
                where,
                second,
                first,
                advice.on_order,
                advice.on_other_series,
            )
        )
    large = np.flatnonzero(np.abs(ts) > np.finfo(np.float32).max)
    if large.size:
        raise DataError(
            f"{where}: the time {ts[large[0]]:g} of row {cells[large[0]]}, counting "
            "from 0, is beyond single precision: correct it, or give times in a larger "
            "unit."
        )
    # They count from the first of the table, where they are large.
    close = np.flatnonzero(np.diff((ts - start).astype(np.float32)) <= 0)
    if close.size:
        first, second = cells[close[0]], cells[close[0] + 1]
        raise DataError(
            f"{where}: the times of rows {first} and {second}, counting from 0, are "
            "one number in single precision: count time from the start of the series, "
            "or in a larger unit."
        )
