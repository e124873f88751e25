"""Risk against coverage: what remains wrong when uncertain rows are handed on."""

import numpy as np

from ...metrics import risk_coverage
from ..page import Html, Ids, Number, figure, figures, number, percent
from ..rows import JudgedRows
from ..svg import Axis, Chart, axis_of
from ._base import Section, Sheet

_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_LEAST_ROWS = 10


def risk(sheet: Sheet) -> Section | None:
    """The curve of one run.

    Args:
        sheet: of the run.
    """
    rows = sheet.rows
    if rows is None or rows.kind == "other" or len(rows.index) < _LEAST_ROWS:
        return None
    name = sheet.record.name
    return Section(
        "Risk against coverage", figures(risk_figure(sheet.ids, {name: rows}))
    )


def risk_figure(ids: Ids, runs: dict[str, JudgedRows]) -> Html:
    """The curves of one run, or of several of one kind.

    Args:
        ids: of the page.
        runs: their test rows by name.
    """
    curves = {name: _curve(rows) for name, rows in runs.items()}
    kind = next(iter(runs.values())).kind
    what = "share wrong" if kind == "classes" else "RMSE"
    title = "Error of the rows that are kept"
    table, words = [], []
    for name, (coverage, error) in curves.items():
        at = [error[np.searchsorted(coverage, c - 1e-9)] for c in _COVERAGES]
        table.append([name, *(_shown(e, kind) for e in at)])
        words.append(
            f"{name}: {_shown(at[-1], kind)} on all rows, {_shown(at[2], kind)} on the "
            "most certain 80 %"
        )
    said = "; ".join(words) + "."
    seen = [error[coverage >= 0.05] for coverage, error in curves.values()]
    chart = Chart(
        ids,
        title,
        said,
        x=Axis(0, 1, "coverage: share of rows kept", _SHARES),
        y=axis_of(seen, what, low=0.0),
    )
    for style, (name, (coverage, error)) in enumerate(curves.items()):
        label = name if len(curves) > 1 else None
        chart.line(coverage, error, style=style, label=label)
    if len(curves) == 1:
        whole = next(iter(curves.values()))[1][-1]
        chart.guide([0, 1], [whole, whole], label="rows handed on at random")
    order = "entropy" if kind == "classes" else "width of the 90 % interval"
    caption = (
        f"Rows are handed on by {order}, the least certain first. {said} A curve that "
        "falls to the left says that uncertainty knows where errors are."
    )
    if any("num_values" in rows.columns for rows in runs.values()):
        caption += " Each series counts once, however many values it has."
    columns = ["run", *(f"at {percent(c, 0)}" for c in _COVERAGES)]
    return figure(title, chart.html(), caption, columns=columns, rows=table)


def _curve(rows: JudgedRows) -> tuple[np.ndarray, np.ndarray]:
    if rows.kind == "classes":
        wrong = rows.columns["guess"] != rows.columns["y"]
        return risk_coverage(rows.columns["entropy"], wrong)
    squares = rows.columns["squared_error"].astype(float)
    coverage, error = risk_coverage(rows.columns["width"], squares)
    return coverage, np.sqrt(error)


def _shown(error: Number, kind: str) -> str:
    return percent(float(error)) if kind == "classes" else number(float(error), 3)
