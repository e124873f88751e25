"""Sequences as a recipe learns them: loaded, on the model's time, and half hidden."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..._sentence import Option, OptionError, Sentence
from ..._types import Bool
from ...data import (
    Data,
    DataError,
    Series,
    Split,
    at_tempos,
    load_series_csv,
    of_lengths,
    read_table,
    windows,
)
from ..options import DataOptions, SeriesOptions

_SUFFIXES = (".csv", ".parquet")
_GAP = 0.1
"""The median gap between times, on the model's: networks and their drifts are of order
1, and so are the motion capture (0.1) and toys (0.02 to 0.1) of the papers."""

_OF_ALL = ("test_seen", "start_every", "tempos", "lengths", "input_noise")
"""Options that sequences have which are no table too."""

_WHOLE_NOTE = "The test series are judged by values that the model was shown."


def is_table(data: str) -> bool:
    """Whether `--data` names a table of the user's own."""
    return Path(data).suffix.lower() in _SUFFIXES


def load_sequences(options: DataOptions, series: SeriesOptions, *, seed: int) -> Data:
    """Load the user's own sequences, in raw times.

    Args:
        options: the file, and the rows held out for choosing.
        series: the columns and the test rows; `time` is given.
        seed: decides which series are held out.

    Raises:
        ValueError: for options of other data, and whatever `load_series_csv` refuses.
    """
    name = options.data
    if not is_table(name):
        raise OptionError(
            "{time} names a column of a .csv or .parquet file, and {data} {} is none: "
            "leave {time} out.",
            name,
        )
    if options.target:
        raise OptionError(
            "{target} is for tables with a row for each example: with {time}, name "
            "the columns to learn with {value}."
        )
    if options.task is not None or options.split != 0:
        raise OptionError(
            "{task} and {split} are not for sequences: leave them out, and hold out "
            "by {hold_out_by} and {test_fraction}."
        )
    assert series.time is not None
    path = Path(name).expanduser()
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


def check_without_time(data: Data, series: SeriesOptions) -> None:
    """Refuse options that only a table with times reads."""
    default = SeriesOptions()
    for field in dataclasses.fields(series):
        if getattr(series, field.name) == getattr(default, field.name):
            continue
        if field.name in _OF_ALL and data.task == "series":
            continue
        raise OptionError(
            "{} is for sequences in a table of your own, whose column of times {time} "
            "names: add it, or leave {} out.",
            Option(field.name),
            Option(field.name),
        )


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
        # Padding repeats the last gap of a short series, and is no measurement.
        observed = data.train.x.mask.any(-1)
        is_known = np.flip(np.cumsum(np.flip(observed, 1), axis=1), 1) > 0
        gaps = np.diff(ts, axis=1)[is_known[:, 1:]]
        unit = float(np.median(gaps)) / _GAP if gaps.size else 1.0
    clock = data.clock.turned(start=float(ts.min()), unit=unit)

    def turned(series: Series) -> Series:
        ts = clock.apply(series.ts).astype(np.float32)
        return Series(ts, series.values, series.mask)

    def split(part: Split) -> Split:
        return Split(turned(part.x), turned(part.y))

    return dataclasses.replace(
        data,
        train=split(data.train),
        test=split(data.test),
        validation=None if data.validation is None else split(data.validation),
        clock=clock,
    )


def with_later_starts(data: Data, every: int) -> Data:
    """Each training series again from later points, up to two thirds of it.

    Args:
        data: sequences.
        every: points from one start to the next; 0 leaves the data as they are.

    Raises:
        ValueError: for a number that is negative, or past two thirds of the points.
    """
    if every == 0:
        return data
    furthest = 2 * data.train.x.num_times // 3
    if not 0 < every <= furthest:
        raise OptionError(
            "{start_every} {} is not among the points where a series of {} begins "
            "again: give a number from 1 to {}, or 0 for its first alone.",
            every,
            data.train.x.num_times,
            furthest,
        )
    starts = range(0, furthest + 1, every)
    note = (
        f"Each training series is learned from {len(starts)} of its points on, every "
        f"{every}."
    )
    return _learned_as(data, lambda series: windows(series, starts), note)


def with_tempos(data: Data, tempos: Sequence[float]) -> Data:
    """Each training series again, faster and slower.

    Args:
        data: sequences.
        tempos: as `at_tempos` takes them; none leaves the data as they are.

    Raises:
        ValueError: for one that is not positive.
    """
    if not tempos:
        return data
    listed = ", ".join(f"{tempo:g}" for tempo in tempos)
    note = f"Each training series is learned at the tempos {listed}."
    return _learned_as(data, lambda series: at_tempos(series, tempos), note)


def with_lengths(data: Data, lengths: Sequence[int]) -> Data:
    """Each training series again, cut short.

    Args:
        data: sequences.
        lengths: as `of_lengths` takes them; none leaves the data as they are.

    Raises:
        ValueError: for one that no series has.
    """
    if not lengths:
        return data
    listed = ", ".join(map(str, lengths))
    note = f"Each training series is learned up to its points {listed}."
    return _learned_as(data, lambda series: of_lengths(series, lengths), note)


def _learned_as(data: Data, again: Callable[[Series], Series], note: str) -> Data:
    """Sequences with more training rows, and a note that says so."""
    train = Split(again(data.train.x), again(data.train.y))
    return dataclasses.replace(data, train=train, notes=(*data.notes, note))


def ask_for_the_rest(data: Data, *, fraction: float, num_frames: int | None) -> Data:
    """Show a model the beginning of each test series, and judge it by the rest.

    Rows that are asked for other values than they show stay as they are, as do those
    of a split with a series too short to be cut. So do validation rows.

    Args:
        data: sequences.
        fraction: of each series' observed times, to show; 1 shows, and asks for, all.
        num_frames: this many first points instead, which is all that the model reads.

    Raises:
        ValueError: for a fraction that cannot be.
    """
    if not 0 < fraction <= 1:
        raise OptionError(
            "{test_seen} must lie above 0 and be at most 1, got {}: 0.5 shows half of "
            "each test series, and asks for the other half.",
            fraction,
        )
    test = _cut(data.test, fraction, num_frames)
    held = data.validation
    held = None if held is None else _cut(held, fraction, num_frames) or held
    if test is None:
        is_shown = np.array_equal(data.test.x.mask, data.test.y.mask)
        notes = (*data.notes, _WHOLE_NOTE) if is_shown else data.notes
        return dataclasses.replace(data, validation=held, notes=notes)
    shown = f"first {num_frames} points" if num_frames else f"first {fraction:.0%}"
    note = (
        f"Of each test series the {shown} of what was observed is shown to the model, "
        "and it is judged by the rest."
    )
    if num_frames:
        note = note.replace(" of what was observed is", " are")
    return dataclasses.replace(
        data, test=test, validation=held, notes=(*data.notes, note)
    )


def _cut(split: Split, fraction: float, num_frames: int | None) -> Split | None:
    """`None` where there is nothing to cut, or no way to."""
    x, y = split.x, split.y
    if fraction == 1 or not np.array_equal(x.mask, y.mask):
        return None
    is_shown = _first_points(x.mask.any(-1), fraction, num_frames)[..., None]
    seen, asked = x.mask & is_shown, y.mask & ~is_shown
    if not (seen.any((1, 2)) & asked.any((1, 2))).all():
        return None
    hide = lambda values, mask: np.where(mask, values, np.float32(0))
    return Split(
        Series(x.ts, hide(x.values, seen), seen),
        Series(y.ts, hide(y.values, asked), asked),
    )


def _first_points(
    is_observed: Bool[np.ndarray, "rows times"], fraction: float, num_frames: int | None
) -> Bool[np.ndarray, "rows times"]:
    if num_frames is not None:
        at = np.arange(is_observed.shape[1])
        return np.broadcast_to(at < num_frames, is_observed.shape)
    number = np.cumsum(is_observed, axis=1)
    return number <= np.ceil(fraction * number[:, -1:])


def _number_columns(path: Path, series: SeriesOptions) -> tuple[str, ...]:
    """All columns of numbers but those of times and of the series' names."""
    frame = read_table(path)
    is_number = lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind)
    rest = [name for name in frame.column_names if name not in _named(series)]
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
