"""Several runs side by side, and their paired differences on the same test rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...metrics import mean_and_error
from ..page import Html, figure, figures, joined, number, percent, table, with_error
from ..rows import JudgedRows
from ..svg import Axis, Chart
from ._base import Section, Sheet, note
from ._calibration import binned
from ._risk import risk_figure
from ._scores import SCORES, error_of, label_of

_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_DATA_OPTIONS = ("data", "split", "test", "test_rows", "target")
_SERIES_OPTIONS = (
    *("time", "series", "hold_out_by"),
    *("test_fraction", "test_seen", "lengths"),
)
_ORDER = (
    "accuracy",
    "rmse_in_target_units",
    "rmse",
    "nll_in_target_units",
    "nll",
    "ece",
    "brier",
    "crps",
    "coverage_90",
    "calibration_error",
    "epistemic_share",
    "r_hat",
    "elbo",
)
_MOST_CURVES = 6


def comparison(sheets: Sequence[Sheet], names: Sequence[str]) -> Section:
    """The table of scores, the differences, and curves of runs of one kind.

    Args:
        sheets: of the runs.
        names: of the runs, each once.
    """
    parts: list[Html] = [_scores(sheets, names), _differences(sheets, names)]
    parts.append(
        note(
            "\N{PLUS-MINUS SIGN} is one standard error over test rows, for these "
            "trainings and draws. A paired difference is the mean over the same test "
            "rows of one run's less the first run's, with the standard error of that "
            "mean: it is smaller than errors of the scores add up to. It does not "
            "cover another seed or split; nor is it corrected for the number of runs."
        )
    )
    known = {
        name: sheet.rows
        for name, sheet in zip(names, sheets, strict=True)
        if sheet.rows is not None and sheet.rows.kind != "other"
    }
    kinds = {rows.kind for rows in known.values()}
    if len(kinds) == 1 and 1 < len(known) <= _MOST_CURVES:
        drawn = [risk_figure(sheets[0].ids, known)]
        if kinds == {"classes"}:
            drawn.append(_reliability(sheets[0], known))
        parts.append(figures(*drawn))
    return Section("Side by side", joined(parts))


def _scores(sheets: Sequence[Sheet], names: Sequence[str]) -> Html:
    shown = [
        name
        for name in _ORDER
        if any(isinstance(s.record.result.get(name), int | float) for s in sheets)
    ]
    if "nll_in_target_units" in shown:
        shown.remove("nll")
    if "rmse_in_target_units" in shown:
        shown.remove("rmse")
    rows: list[list[Any]] = []
    for name, sheet in zip(names, sheets, strict=True):
        result = sheet.record.result
        cells = [_score(sheet, score) for score in shown]
        weight = result.get("kl_weight")
        rows.append([name, str(result.get("kernel") or result.get("model")), *cells])
        rows[-1] += ["none" if weight is None else number(weight)]
        rows[-1] += [number(result.get("train_seconds"), 3)]
    columns = ["run", "model"]
    columns += [
        label_of(SCORES[n], sheets[0]) if n in SCORES else _plain(n) for n in shown
    ]
    columns += ["KL weight", "seconds"]
    return table("Scores of each run on its test rows", columns, rows, is_text=[1])


def _plain(name: str) -> str:
    return {"r_hat": "R-hat"}.get(name, name.replace("_", " "))


def _score(sheet: Sheet, name: str) -> str:
    value = sheet.record.result.get(name)
    if not isinstance(value, int | float):
        return "\N{EN DASH}"
    error = None
    if name in SCORES:
        error = error_of(sheet, name, value)
    elif sheet.rows is not None:
        error = sheet.rows.errors.get(name)
    shown, said = with_error(value, error)
    return f"{shown} \N{PLUS-MINUS SIGN} {said}" if said else shown


def _differences(sheets: Sequence[Sheet], names: Sequence[str]) -> Html:
    first, rows = sheets[0], []
    for name, sheet in zip(names[1:], sheets[1:], strict=True):
        reason = why_not_paired(first, sheet)
        if reason:
            rows.append([name, reason, "", "", ""])
            continue
        ours, theirs = _rows(sheet), _rows(first)
        nll = theirs.columns["log_prob"].astype(float) - ours.columns["log_prob"]
        loss = losses(ours) - losses(theirs)
        pairs = [with_error(*paired(each, ours)) for each in (nll, loss)]
        rows.append([name, *pairs[0], *pairs[1]])
    is_classes = first.rows is not None and first.rows.kind == "classes"
    what = "share wrong" if is_classes else "squared error"
    columns = ["run", f"NLL, nats a {unit_of(first)}", "\N{PLUS-MINUS SIGN}", what]
    columns.append("\N{PLUS-MINUS SIGN}")
    caption = f"Less {names[0]}, row by row: below 0 is better than {names[0]}"
    return table(caption, columns, rows)


def _rows(sheet: Sheet) -> JudgedRows:
    assert sheet.rows is not None
    return sheet.rows


def losses(rows: JudgedRows) -> np.ndarray:
    """What the guess of each row costs: 1 if it is wrong, or the squared error.

    Args:
        rows: of classes or numbers.
    """
    if rows.kind == "classes":
        return (rows.columns["guess"] != rows.columns["y"]).astype(float)
    return rows.columns["squared_error"].astype(float)


def paired(difference: np.ndarray, rows: JudgedRows) -> tuple[float, float]:
    """The mean of a difference, and its standard error over rows.

    Args:
        difference: of each row; of a series, the mean of its values.
        rows: those rows, of which series count by their values.
    """
    counts = rows.columns.get("num_values", np.ones(len(difference))).astype(float)
    return mean_and_error(difference * counts, counts)


def unit_of(sheet: Sheet) -> str:
    """What scores are means over.

    Args:
        sheet: of a run.
    """
    return "value" if sheet.record.task == "series" else "row"


def why_not_paired(first: Sheet, other: Sheet) -> str:
    """Why two runs' test rows are not known to be the same; empty if they are.

    Args:
        first: a run.
        other: another one.
    """
    one, two = first.rows, other.rows
    if one is None or two is None:
        return "not paired: test rows are not known"
    if one.kind != two.kind:
        return "not paired: another kind of target"
    if one.kind == "other":
        return "not paired: only densities are known"
    if one.num_rows != two.num_rows:
        return f"not paired: {one.num_rows:,} and {two.num_rows:,} test rows"
    theirs = [s.record.known and s.record.known.source for s in (first, other)]
    if all(theirs):
        if theirs[0].sha256 != theirs[1].sha256:  # type: ignore[union-attr]
            return "not paired: another file"
        names = _DATA_OPTIONS[1:]  # a file may have been moved
    else:
        names = _DATA_OPTIONS
    options = [("data", name) for name in names]
    options += [("series", name) for name in _SERIES_OPTIONS]
    for part, name in options:
        if first.record.option(part, name) != other.record.option(part, name):
            return f"not paired: another {name.replace('_', ' ')}"
    columns = [s.record.known and s.record.known.target_names for s in (first, other)]
    if all(columns) and columns[0] != columns[1]:  # of series, whose y is not kept
        return "not paired: another target"
    scalings = [s.record.known and s.record.known.y_scaling for s in (first, other)]
    if all(scalings) and np.size(scalings[0].scale) > 1:  # type: ignore[union-attr]
        scales = [np.asarray(scaling.scale) for scaling in scalings]  # type: ignore[union-attr]
        if scales[0].shape != scales[1].shape or not np.allclose(*scales, rtol=1e-5):
            return "not paired: targets in other units"
    if "num_values" in one.columns and "num_values" in two.columns:
        if np.any(one.columns["num_values"] != two.columns["num_values"]):
            return "not paired: other targets"
    if "y" in one.columns:
        ys = [rows.columns["y"].astype(float) for rows in (one, two)]
        if not np.allclose(ys[0], ys[1], rtol=1e-4, atol=1e-4 * np.std(ys[0])):
            return "not paired: other targets"
    return ""


def _reliability(sheet: Sheet, known: dict[str, JudgedRows]) -> Html:
    title = "Reliability of the runs"
    words = "Share of right guesses against confidence, in 15 bins of each run."
    chart = Chart(
        sheet.ids,
        title,
        words,
        x=Axis(0, 1, "confidence", _SHARES),
        y=Axis(0, 1, "share right", _SHARES),
    )
    chart.guide([0, 1], [0, 1], label="as it should be")
    rows = []
    for style, (name, one) in enumerate(known.items()):
        counts, mean, right = binned(one)
        there = counts > 0
        chart.line(mean[there], right[there], style=style, label=name)
        chart.dots(mean[there], right[there], style=style, radius=2.4)
        rows += [
            [name, percent(float(m)), percent(float(r)), f"{c:,}"]
            for m, r, c in zip(mean[there], right[there], counts[there], strict=True)
        ]
    columns = ["run", "mean confidence", "right", "rows"]
    return figure(title, chart.html(), words, columns=columns, rows=rows)
