"""Whether confidence, and quantiles, hold what they say."""

import numpy as np

from .._errors import NUM_BINS, bins_of
from ..page import Html, figure, figures, number, percent
from ..rows import JudgedRows
from ..svg import Axis, Chart, axis_of
from ._base import Section, Sheet

_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LEVELS = np.linspace(0, 1, 21)[1:-1]
_INTERVALS = (0.5, 0.8, 0.9, 0.95, 0.99)
_MOST_DOTS = 400


def calibration(sheet: Sheet) -> Section | None:
    """Reliability of classes, or of quantiles.

    Args:
        sheet: of the run.
    """
    rows = sheet.rows
    if rows is None:
        return None
    if rows.kind == "classes":
        parts = figures(_reliability(sheet, rows), _confidences(sheet, rows))
        return Section("Calibration", parts)
    if rows.kind == "numbers" and len(rows.cdf):
        parts = figures(_quantiles(sheet, rows), _scatter(sheet, rows))
        return Section("Calibration", parts)
    return None


def binned(rows: JudgedRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, mean confidences and shares of right guesses of each bin.

    Args:
        rows: of classes.
    """
    confidence = rows.columns["confidence"].astype(float)
    is_right = rows.columns["guess"] == rows.columns["y"]
    bins = bins_of(confidence)
    counts = np.bincount(bins, minlength=NUM_BINS)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(bins, weights=confidence, minlength=NUM_BINS) / counts
        right = np.bincount(bins, weights=is_right, minlength=NUM_BINS) / counts
    return counts, mean, right


def _reliability(sheet: Sheet, rows: JudgedRows) -> Html:
    counts, mean, right = binned(rows)
    there = counts > 0
    counts, mean, right = counts[there], mean[there], right[there]
    smoothed = (right * counts + 1) / (counts + 2)  # no bin of one row is certain
    errors = np.sqrt(smoothed * (1 - smoothed) / counts)
    title = "Reliability"
    apart = int(np.argmax(np.abs(mean - right) * counts))
    words = (
        "The bin that weighs most in the ECE: confidence "
        f"{percent(float(mean[apart]))}, right {percent(float(right[apart]))} of "
        f"{counts[apart]:,} rows."
    )
    chart = Chart(
        sheet.ids,
        title,
        f"Share of right guesses against confidence in {len(counts)} bins. {words}",
        x=Axis(0, 1, "confidence", _SHARES),
        y=Axis(0, 1, "share right", _SHARES),
    )
    chart.guide([0, 1], [0, 1], label="as it should be")
    chart.line(mean, right)
    chart.dots(mean, right, errors=errors, label="bins, one standard error")
    table = [
        [percent(float(m)), percent(float(r)), percent(float(e)), f"{c:,}"]
        for m, r, e, c in zip(mean, right, errors, counts, strict=True)
    ]
    return figure(
        title,
        chart.html(),
        f"{sheet.of_rows} in {NUM_BINS} bins of confidence. Below the diagonal, "
        "guesses are right less often than they say. Errors are those of shares, with "
        f"one right and one wrong guess added to each bin. {words}",
        columns=["mean confidence", "right", "\N{PLUS-MINUS SIGN}", "rows"],
        rows=table,
    )


def _confidences(sheet: Sheet, rows: JudgedRows) -> Html:
    counts, _, _ = binned(rows)
    edges = np.linspace(0, 1, NUM_BINS + 1)
    shares = counts / counts.sum()
    title = "Confidence"
    most = int(np.argmax(counts))
    words = (
        f"Most rows, {percent(float(shares[most]))}, have a confidence of "
        f"{percent(float(edges[most]), 0)} to {percent(float(edges[most + 1]), 0)}."
    )
    chart = Chart(
        sheet.ids,
        title,
        f"How many rows have which confidence. {words}",
        x=Axis(0, 1, "confidence", _SHARES),
        y=axis_of([shares], "share of rows", low=0.0),
    )
    chart.bars(edges, shares)
    table = [
        [f"{percent(float(a), 0)} to {percent(float(b), 0)}", f"{c:,}"]
        for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True)
        if c
    ]
    caption = f"{words} Bins of few rows say little in the diagram beside it."
    columns = ["confidence", "rows"]
    return figure(title, chart.html(), caption, columns=columns, rows=table)


def _quantiles(sheet: Sheet, rows: JudgedRows) -> Html:
    cdf = rows.cdf.astype(float)
    shares = np.array([np.mean(cdf <= level) for level in _LEVELS])
    errors = np.sqrt(_LEVELS * (1 - _LEVELS) / len(cdf))
    title = "Calibration of quantiles"
    furthest = int(np.argmax(np.abs(shares - _LEVELS)))
    words = (
        f"Furthest off: below the {percent(float(_LEVELS[furthest]), 0)} quantile lie "
        f"{percent(float(shares[furthest]))} of targets."
    )
    chart = Chart(
        sheet.ids,
        title,
        f"Share of targets below each predicted quantile. {words}",
        x=Axis(0, 1, "level of the quantile", _SHARES),
        y=Axis(0, 1, "share of targets below", _SHARES),
    )
    chart.band(_LEVELS, _LEVELS - 2 * errors, _LEVELS + 2 * errors)
    chart.guide([0, 1], [0, 1], label="as it should be, \N{PLUS-MINUS SIGN} 2 errors")
    chart.line(_LEVELS, shares, style=1, label="seen")
    inside = [np.mean(np.abs(cdf - 0.5) <= level / 2) for level in _INTERVALS]
    table = [
        [
            percent(level, 0),
            percent(float(share)),
            percent(float(np.sqrt(share * (1 - share) / len(cdf)))),
        ]
        for level, share in zip(_INTERVALS, inside, strict=True)
    ]
    dependent = ""
    if len(cdf) > len(rows.index):
        dependent = " Values of one row depend on each other: true errors are larger."
    return figure(
        title,
        chart.html(),
        f"{len(cdf):,} targets of {sheet.of_rows}. A line above the diagonal on "
        "the left and below it on the right has intervals that are too narrow; the "
        f"other way round they are too wide. {words}{dependent} The table has central "
        "intervals.",
        columns=["interval", "targets in it", "\N{PLUS-MINUS SIGN}"],
        rows=table,
    )


def _scatter(sheet: Sheet, rows: JudgedRows) -> Html | None:
    if "median" not in rows.columns:
        return None
    truth = rows.columns["y"].astype(float)
    guess = rows.columns["median"].astype(float)
    spaced = np.linspace(0, len(truth) - 1, min(len(truth), _MOST_DOTS))
    kept = np.unique(spaced.round().astype(int))
    title = "Predicted and true"
    names = () if sheet.record.known is None else sheet.record.known.target_names
    name = str(names[0])[:24] if names else "target"
    axis = axis_of([truth, guess], "")
    line = [float(axis.low), float(axis.high)]
    rho = np.corrcoef(truth, guess)[0, 1] if np.ptp(truth) and np.ptp(guess) else np.nan
    words = f"Their correlation is {number(float(rho), 2)}."
    chart = Chart(
        sheet.ids,
        title,
        f"Predicted median against the true value of {len(kept)} test rows. {words}",
        x=axis._replace(label=f"true {name}"),
        y=axis._replace(label="predicted median"),
    )
    chart.guide(line, line, label="the same")
    chart.dots(truth[kept], guess[kept], radius=2.2)
    caption = f"{len(kept):,} of {rows.num_rows:,} test rows. {words}"
    if len(names) > 1:
        caption += f" Of {len(names)} targets this is the first."
    return figure(title, chart.html(), caption)
