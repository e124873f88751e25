"""New sequences for a trained model, from a table like the one that it learned from."""

import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._sentence import Sentence
from ..._types import Bool, Float, Int
from ...data import (
    Clock,
    Data,
    DataError,
    LongTable,
    Series,
    Span,
    expanded,
    read_long_csv,
    read_names,
    read_table,
    unescaped,
)
from .._recipe import Recipe
from ..models import BY_FRAMES, recognition_kind
from ._series_steps import is_near, with_steps
from ._series_table import MEDIAN_GAP

_FEW = 5
"""Median gaps that a gap is taken to have at most, where the longest is not known."""


class SeriesInputs(NamedTuple):
    """Sequences as the model takes them, and as the file has them.

    Attributes:
        x: all of them, on the model's time and scale; with times between, so that none
            is further from the one before than those that the model learned from.
        given: what is to be predicted from. It is `x`; but of a run that learned a
            single path, that is observed as it was in training: up to its last time.
        is_own: which times are in the file, and neither between nor padding.
        names: of the series; `("",)` where no column names them.
        cells: row of the file and column of the table's times: by series, then time.
        columns: of the file that a prediction repeats: the series' name, if there is
            a column of it, and the time, as they are written; in the file's order.
    """

    x: Series
    given: Series
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
        DataError: if it cannot be used: see `read_long_csv`; if its times lie too far
            apart; or before the beginning of the single path that the run learned.
    """
    path = expanded(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(
            f"{path} holds no sequences: give a .csv or .parquet file with a row for "
            "each time."
        )
    written = read_table(path, as_text=True)  # a date in its own form, 007 with zeros
    time = recipe.series.time or "time"
    series = recipe.series.series
    if recipe.series.time is None and "series" in written.column_names:
        series = "series"
    values = data.feature_names or _default_names(data.num_outputs)
    columns = {"time": time, "series": series, "value": list(values)}
    clock = data.clock
    table = read_long_csv(
        path,
        **columns,  # type: ignore[arg-type]
        time_unit=recipe.series.time_unit,
        clock=clock or Clock(time),
    )
    ts = table.ts if clock is None else clock.apply(table.ts)
    span, also = learned_span(recipe, data), ()
    if span is not None:
        assert span.first is not None
        also = (span.first, span.last)
        _check_begins(table, ts, span, path, data)
    by_frames = recognition_kind(recipe.latent, data) in BY_FRAMES
    stepped = with_steps(
        table._replace(ts=ts),
        path,
        longest=_longest_gap(recipe, data),
        num_kept=recipe.latent.frames if by_frames else 1,
        also=also,
    )
    x = stepped.table.to_series(data.x_scaling)
    codes = np.zeros(written.num_rows, int)
    if series is not None:
        _, codes = read_names(written, series, path)
    names = [name for name in (series, time) if name is not None]
    return SeriesInputs(
        x,
        x if span is None else _observed_until(x, span),
        stepped.is_own,
        table.names,
        np.argsort(codes, kind="stable"),
        {name: [_written(c) for c in written[name].to_pylist()] for name in names},
    )


def learned_span(recipe: Recipe, data: Data) -> Span | None:
    """When the single path was observed that a run learned.

    Args:
        recipe: of the run.
        data: what it learned from.

    Returns:
        `None` of a run that recognises series, and of one that does not know.
    """
    is_single = recognition_kind(recipe.latent, data) == "none"
    is_known = data.span is not None and data.span.first is not None
    return data.span if is_single and is_known else None


def _check_begins(
    table: LongTable,
    ts: Float[np.ndarray, "rows times"],
    span: Span,
    path: Path,
    data: Data,
) -> None:
    """Refuse times before the path begins."""
    assert span.first is not None
    first, clock = span.first, data.clock
    early = np.flatnonzero((ts[:, 0] < first) & ~is_near(ts[:, 0], first, span.gap))
    if early.size:
        name = table.names[early[0]]
        where = f"{path}: series {name!r}" if name else str(path)
        begins = first if clock is None else float(clock.undo(np.array([first]))[0])
        raise DataError(
            Sentence(
                "{} begins at {}, and the single path that the run learned "
                "({recognition} none) at {}: leave earlier times out.",
                where,
                _said(table.ts[early[0], 0], clock),
                _said(begins, clock),
            )
        )


def _said(raw: float, clock: Clock | None) -> str:
    if clock is None or not clock.has_dates:
        return f"{raw:.10g}"
    return str(np.datetime_as_string(clock.dates(np.array([raw]))[0], unit="auto"))


def _longest_gap(recipe: Recipe, data: Data) -> float | None:
    """Between times of training; runs of before know no more than the median."""
    if data.span is not None:
        return data.span.gap
    is_median_known = data.clock is not None and recipe.series.time_scale is None
    return _FEW * MEDIAN_GAP if is_median_known else None


def _observed_until(x: Series, span: Span) -> Series:
    """As in training, for what ends the posterior's path; values are not read."""
    ts = np.asarray(x.ts)
    is_until = (ts <= span.last) | is_near(ts, span.last, span.gap)
    mask = np.broadcast_to(is_until[..., None], x.mask.shape)
    return Series(x.ts, x.values, mask)


def _default_names(num_features: int) -> tuple[str, ...]:
    if num_features == 1:
        return ("value",)
    return tuple(f"value{i}" for i in range(num_features))


def _written(cell: object) -> object:
    if isinstance(cell, str):
        return unescaped(cell)
    is_date = isinstance(cell, datetime.date | datetime.datetime)
    return cell.isoformat() if is_date else cell
