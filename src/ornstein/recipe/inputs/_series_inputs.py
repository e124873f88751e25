"""New sequences for a trained model, from a table like the one that it learned from."""

import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._types import Bool, Float, Int
from ...data import (
    Data,
    DataError,
    LongTable,
    Series,
    read_long_csv,
    read_names,
    read_table,
    unescaped,
)
from .._recipe import Recipe


class SeriesInputs(NamedTuple):
    """Sequences as the model takes them, and as the file has them.

    Attributes:
        x: all of them, on the model's time and scale.
        is_own: which times are in the file, and not padding.
        names: of the series; `("",)` where no column names them.
        cells: row of the file and column of the table's times: by series, then time.
        columns: of the file that a prediction repeats: the series' name, if there is
            a column of it, and the time, as they are written; in the file's order.
    """

    x: Series
    is_own: Bool[np.ndarray, "rows times"]
    names: tuple[str, ...]
    cells: Int[np.ndarray, " cells"]
    columns: dict[str, list]

    def in_file_order(
        self, values: Float[np.ndarray, "rows times features"]
    ) -> Float[np.ndarray, "cells features"]:
        """What belongs to each row of the file."""
        ordered = np.empty((len(self.cells), values.shape[-1]))
        ordered[self.cells] = values[self.is_own]
        return ordered


def read_series(path: str | Path, recipe: Recipe, data: Data) -> SeriesInputs:
    """Read sequences to predict.

    Columns are named as in the training table. Of a run on a built-in set they are
    `time`, `series` (if there are several) and the features', or `value`, or `value0`,
    `value1`, ... where they have no names.

    Args:
        path: a `.csv` or `.parquet` file, a row for each time; an empty cell is a
            value to predict.
        recipe: of the run.
        data: what the model learned from.

    Raises:
        DataError: if it cannot be used: see `read_long_csv`; or if its times are dates
            and those of training were numbers, or the reverse.
    """
    path = Path(path).expanduser()
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(
            f"{path} holds no sequences: give a .csv or .parquet file with a row for "
            "each time."
        )
    frame = read_table(path)
    time = recipe.series.time or "time"
    series = recipe.series.series
    if recipe.series.time is None and "series" in frame.column_names:
        series = "series"
    values = data.feature_names or _default_names(data.num_outputs)
    columns = {"time": time, "series": series, "value": list(values)}
    table = _on_training_dates(path, columns, recipe, data)
    clock = data.clock
    ts = table.ts if clock is None else clock.apply(table.ts)
    x = table._replace(ts=ts).to_series(data.x_scaling)
    codes = np.zeros(frame.num_rows, int)
    if series is not None:
        _, codes = read_names(frame, series, path)
    names = [name for name in (series, time) if name is not None]
    written = read_table(path, as_text=True)  # a date in its own form, 007 with zeros
    return SeriesInputs(
        x,
        table.is_own,
        table.names,
        np.argsort(codes, kind="stable"),
        {name: [_written(c) for c in written[name].to_pylist()] for name in names},
    )


def _on_training_dates(
    path: Path, columns: dict, recipe: Recipe, data: Data
) -> LongTable:
    """Times are counted from the origin that those of training have."""
    unit = recipe.series.time_unit
    table = read_long_csv(path, **columns, time_unit=unit)
    origin = None if data.clock is None else data.clock.origin
    if (origin is None) != (table.origin is None):
        theirs, ours = ("numbers", "dates") if origin is None else ("dates", "numbers")
        raise DataError(
            f"{path}: the times of column {columns['time']!r} are {ours}, and the "
            f"model learned from {theirs}: give {theirs} that count as the training "
            "table's do."
        )
    if origin is None or origin == table.origin:
        return table
    return read_long_csv(path, **columns, time_unit=unit, origin=origin)


def _default_names(num_features: int) -> tuple[str, ...]:
    if num_features == 1:
        return ("value",)
    return tuple(f"value{i}" for i in range(num_features))


def _written(cell: object) -> object:
    if isinstance(cell, str):
        return unescaped(cell)
    is_date = isinstance(cell, datetime.date | datetime.datetime)
    return cell.isoformat() if is_date else cell
