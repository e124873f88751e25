"""Sequences of the user's own, a row for each time: loaded, and on the model's time."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..._sentence import OptionError, Sentence
from ...data import (
    PANDAS_INDEX,
    Data,
    DataError,
    Series,
    Split,
    expanded,
    load_series_csv,
    observed_gaps,
    read_table,
)
from ..options import DataOptions, SeriesOptions

MEDIAN_GAP = 0.1
"""The median gap between times, on the model's: networks and their drifts are of order
1, and so are the motion capture (0.1) and toys (0.02 to 0.1) of the papers."""


def load_sequences(options: DataOptions, series: SeriesOptions, *, seed: int) -> Data:
    """Load the user's own sequences, in raw times.

    Args:
        options: the file, and the rows held out for choosing.
        series: the columns and the test rows; `time` is given.
        seed: decides which series are held out.

    Raises:
        ValueError: for whatever `load_series_csv` refuses.
    """
    name = options.data
    assert series.time is not None
    path = expanded(name)
    values, notes = series.value, []
    if not values:
        values = _number_columns(path, series)
        notes = [
            Sentence(
                "{}: the values are {}; {value} names others.", name, ", ".join(values)
            )
        ]
    data = load_series_csv(
        path,
        time=series.time,
        value=values,
        series=series.series,
        time_unit=series.time_unit,
        hold_out_by=series.hold_out_by,
        test_fraction=series.test_fraction,
        validation_fraction=options.validation_fraction,
        seed=seed,
    )
    return dataclasses.replace(data, notes=(*notes, *data.notes))


def on_model_time(data: Data, unit: float | None) -> Data:
    """Count time from the first training time, in units that suit a network.

    Args:
        data: the user's own sequences, in raw times.
        unit: the model's unit, in raw ones; `None` for ten median gaps.

    Raises:
        ValueError: for a unit that is not positive.
    """
    assert data.clock is not None
    if unit is not None and not (np.isfinite(unit) and unit > 0):
        raise OptionError(
            "{time_scale} must be positive, got {}: it is the model's unit of time, "
            "in units of the column of times.",
            unit,
        )
    ts = np.asarray(data.train.x.ts, np.float64)
    if unit is None:
        gaps = observed_gaps(data.train.in_memory().x)
        unit = float(np.median(gaps)) / MEDIAN_GAP if gaps.size else 1.0
    first = float(ts.min())
    clock = data.clock.turned(
        start=first * data.clock.unit + data.clock.start, unit=unit
    )

    def turned(series: Series) -> Series:
        ts = (np.asarray(series.ts, np.float64) - first) / unit
        ts = ts.astype(np.float32)
        return Series(ts, series.values, series.mask)

    def split(part: Split) -> Split:
        return Split(turned(part.x), turned(part.y))

    return dataclasses.replace(
        data,
        train=split(data.train.in_memory()),
        test=split(data.test),
        validation=None if data.validation is None else split(data.validation),
        clock=clock,
    )


def _number_columns(path: Path, series: SeriesOptions) -> tuple[str, ...]:
    """All columns of numbers but those of times and of the series' names."""
    frame = read_table(path)
    is_number = lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind)
    rest = [
        name
        for name in frame.column_names
        if name not in _named(series) and not name.startswith(PANDAS_INDEX)
    ]
    found = tuple(name for name in rest if is_number(frame[name].type))
    if not found:
        raise DataError(
            Sentence(
                "{} has no column of numbers to learn beside {}: name one with "
                "{value}; the columns are {}.",
                path,
                " and ".join(map(repr, _named(series))),
                ", ".join(frame.column_names),
            )
        )
    return found


def _named(series: SeriesOptions) -> list[str]:
    return [name for name in (series.time, series.series) if name is not None]
