"""The user's own sequences, split: by series, or by time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from .._base import Data
from .._clock import Clock
from .._error import DataError
from .._hold_out import hold_out
from .._source import Source, expanded
from ._assemble_series import Sequences, assemble_series
from ._long_csv import LongTable, read_long_csv
from ._long_times import TIME_UNITS

_HOLD_OUT = ("series", "time")
_MAX_NAMED = 10


def load_series_csv(
    path: str | Path,
    *,
    time: str,
    value: str | Sequence[str],
    series: str | None = None,
    time_unit: str = "days",
    hold_out_by: str | None = None,
    test_fraction: float = 0.2,
    validation_fraction: float = 0.0,
    seed: int = 0,
    standardise: bool = True,
) -> Data:
    """Load the user's own sequences from a long table, a row for each time.

    Held out *by series*, some series are for the test, whole. Held out *by time*, a
    test row is a whole series of which a model sees the first part as x and is asked
    for the last part as y; training rows end before it.

    Args:
        path: `.csv` or `.parquet`, as `read_long_csv` takes it.
        time: the column of times.
        value: the column of values, or several.
        series: the column that tells series apart; `None` if there is only one.
        time_unit: of times that are dates.
        hold_out_by: `"series"` or `"time"`; `None` holds out series where there are
            several, and time where there is one.
        test_fraction: of the series, or of each series' times, for the test.
        validation_fraction: of those that are left (by time: of all times) for
            choosing, 0 for none.
        seed: decides which series; by time, nothing.
        standardise: scale each value column by what was observed in training.

    Returns:
        Data of the task `"series"`. Times are never scaled; the `clock` says what they
        count, and from where: from the first one, where single precision would blur
        them. The `source` is the file.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used or split: see `read_long_csv`.
    """
    table = read_long_csv(
        path, time=time, value=value, series=series, time_unit=time_unit
    )
    if hold_out_by is None:
        hold_out_by = "series" if len(table.names) > 1 else "time"
    if hold_out_by not in _HOLD_OUT:
        raise DataError(
            f"`hold_out_by` must be 'series' or 'time', got {hold_out_by!r}."
        )
    start = 0.0
    if table.origin is None and _is_blurred(table.ts):
        start = float(table.ts.min())
        table = table._replace(ts=table.ts - start)
    counted = time if table.origin is None else f"{time_unit} since {table.origin}"
    seconds = None if table.origin is None else TIME_UNITS[time_unit]
    options = {
        "standardise": standardise,
        "source": Source.of(
            [expanded(path)],
            num_rows=int(table.lengths.sum()),
            num_columns=table.num_columns,
        ),
        "feature_names": table.feature_names,
        "clock": Clock(
            counted,
            table.origin,
            start,
            column=time,
            seconds=seconds,
            has_zone=table.has_zone,
        ),
    }
    if hold_out_by == "time":
        train, validation, test = _by_time(table, test_fraction, validation_fraction)
        notes = [
            *table.notes,
            f"{path}: the last {test_fraction:.0%} of each series is for the test.",
        ]
        return assemble_series(
            str(path),
            train,
            test,
            validation=validation,
            notes=notes,
            test_names=_names(table, np.arange(len(table.names))),
            **options,
        )
    kept, held = hold_out(len(table.names), test_fraction, seed=seed)
    notes = [*table.notes, f"{path}: for the test, series {_named(table, held)}."]
    data = assemble_series(
        str(path),
        table.rows(kept),
        table.rows(held),
        notes=notes,
        test_names=_names(table, held),
        **options,
    )
    if validation_fraction == 0:
        return data
    return data.with_validation(validation_fraction, seed=seed)


def _is_blurred(ts: Float[np.ndarray, "rows times"]) -> bool:
    """Whether single precision moves a time by a thousandth of the least gap."""
    gap = np.diff(ts, axis=1).min(initial=np.inf)
    return bool(np.abs(ts - ts.astype(np.float32)).max() > 1e-3 * gap)


def _names(table: LongTable, rows: Int[np.ndarray, " rows"]) -> tuple[str, ...]:
    """What the file calls these series; nothing where no column names them."""
    return tuple(table.names[row] for row in rows) if any(table.names) else ()


def _named(table: LongTable, rows: Int[np.ndarray, " held"]) -> str:
    names = [table.names[row] for row in rows[:_MAX_NAMED]]
    more = len(rows) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _by_time(
    table: LongTable, test_fraction: float, validation_fraction: float
) -> tuple[Sequences, Sequences | None, Sequences]:
    """The first times for training, then those for validation, then for the test."""
    for name, fraction in (
        ("test_fraction", test_fraction),
        ("validation_fraction", validation_fraction),
    ):
        if not (0 < fraction < 1 or (fraction == 0 and name != "test_fraction")):
            raise DataError(
                f"`{name}` must lie between 0 and 1, got {fraction}: 0.2 is usual for "
                "a test."
            )
    until_test = table.lengths - np.ceil(test_fraction * table.lengths).astype(int)
    held = np.ceil(validation_fraction * table.lengths).astype(int)
    until_validation = until_test - held
    at = np.arange(table.ts.shape[1])
    before = at < until_validation[:, None]
    between = (at < until_test[:, None]) & ~before
    after = table.is_own & ~before & ~between
    _check_parts(table, until_validation, before, after)
    seen = _where(table, before)
    end = int(until_validation.max())
    train = Sequences(table.ts[:, :end], seen[:, :end])
    validation = None
    if validation_fraction:
        _check_parts(table, until_validation, before, between)
        end = int(until_test.max())
        asked = _where(table, between)
        validation = Sequences(table.ts[:, :end], seen[:, :end], asked[:, :end])
    test = Sequences(table.ts, _where(table, before | between), _where(table, after))
    return train, validation, test


def _where(table: LongTable, keep: np.ndarray) -> np.ndarray:
    return np.where(keep[..., None], table.values, np.nan)


def _check_parts(
    table: LongTable, num_seen: np.ndarray, seen: np.ndarray, asked: np.ndarray
) -> None:
    """Two times to learn from, and a value on each side."""
    is_observed = ~np.isnan(table.values).all(axis=-1)
    enough = (is_observed & seen).any(axis=1) & (is_observed & asked).any(axis=1)
    bad = np.flatnonzero((num_seen < 2) | ~enough)
    if bad.size:
        name, length = table.names[bad[0]], table.lengths[bad[0]]
        which = f"Series {name!r}" if name else "The series"
        raise DataError(
            f"{which} has {length} times: holding out its end leaves a part without "
            "an observed value, or fewer than two times to learn from; give a longer "
            "series, or another fraction."
        )
