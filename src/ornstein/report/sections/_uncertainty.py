"""Where uncertainty comes from: total = expected + mutual information."""

import numpy as np

from ..page import (
    Html,
    figure,
    figures,
    joined,
    number,
    percent,
    table as page_table,
    with_error,
)
from ..rows import JudgedRows
from ..svg import Axis, Chart, axis_of
from ._base import Section, Sheet, note

_NUM_GROUPS = 20
_NUM_BARS = 20


def uncertainty(sheet: Sheet) -> Section | None:
    """The split of uncertainty, over rows from certain to uncertain.

    Args:
        sheet: of the run.
    """
    rows = sheet.rows
    if rows is None or "epistemic" not in rows.columns:
        return None
    is_classes = rows.kind == "classes"
    parts = [_table(sheet, is_classes)]
    drawn = [_split(sheet, rows, is_classes)]
    if is_classes:
        drawn.append(_histogram(sheet, rows))
    parts += [figures(*drawn), note(_words(is_classes))]
    return Section("Uncertainty", joined(parts))


def _words(is_classes: bool) -> str:
    if is_classes:
        return (
            "Total is the entropy of the averaged probabilities. Expected is the mean "
            "entropy of each draw's own: it would remain with the network known. What "
            "is left is the mutual information of class and network: that which "
            "draws disagree on, and more data could remove."
        )
    return (
        "Total is the predictive variance, of standardised targets. Expected is the "
        "mean variance of the noise; the rest is the variance of the draws' means: "
        "what draws disagree on, and more data could remove."
    )


def _table(sheet: Sheet, is_classes: bool) -> Html:
    result, rows = sheet.record.result, sheet.rows
    assert rows is not None
    names = (
        ("aleatoric", "expected (aleatoric)"),
        (
            "epistemic",
            "mutual information (epistemic)"
            if is_classes
            else "of draws' means (epistemic)",
        ),
        ("epistemic_share", "epistemic share of the total"),
    )
    lines = []
    if is_classes and "entropy" in result:
        lines.append(
            ["total", *with_error(result["entropy"], rows.errors.get("entropy"))]
        )
    for name, label in names:
        if result.get(name) is not None:
            lines.append([label, *with_error(result[name], rows.errors.get(name))])
    unit = "nats" if is_classes else "variance"
    caption = f"Means over test rows, {unit}"
    return page_table(caption, ["part", "mean", "\N{PLUS-MINUS SIGN}"], lines)


def _split(sheet: Sheet, rows: JudgedRows, is_classes: bool) -> Html:
    expected = rows.columns["aleatoric"].astype(float)
    total = expected + rows.columns["epistemic"].astype(float)
    order = np.argsort(total, kind="stable")
    groups = np.array_split(order, min(_NUM_GROUPS, len(order)))
    middle = np.cumsum([len(g) for g in groups]) - [len(g) / 2 for g in groups]
    xs = middle / len(order)
    lower = np.array([expected[g].mean() for g in groups])
    upper = np.array([total[g].mean() for g in groups])
    unit = "nats" if is_classes else "variance"
    title = "Total = expected + mutual information"
    title = title if is_classes else "Variance = noise + draws' means"
    share = float((upper[-1] - lower[-1]) / upper[-1]) if upper[-1] > 0 else 0.0
    words = f"Of the least certain group, draws' disagreement is {percent(share)}."
    chart = Chart(
        sheet.ids,
        title,
        f"Mean parts of {len(groups)} groups of rows, certain ones first. {words}",
        x=Axis(0, 1, "share of rows, the most certain first"),
        y=axis_of([upper], unit, low=0.0),
    )
    chart.band(xs, np.zeros(len(xs)), lower, style=0)
    chart.band(xs, lower, upper, style=1)
    chart.line(xs, lower, style=0, label="expected")
    chart.line(xs, upper, style=1, label="total")
    shown = range(0, len(groups), max(1, len(groups) // 5))
    lines = [
        [
            percent(float(xs[i]), 0),
            number(upper[i]),
            number(lower[i]),
            number(upper[i] - lower[i]),
        ]
        for i in shown
    ]
    return figure(
        title,
        chart.html(),
        f"{sheet.of_rows} in {len(groups)} groups; between the lines lies what draws "
        f"disagree on. {words}",
        columns=["at share of rows", "total", "expected", "difference"],
        rows=lines,
    )


def _histogram(sheet: Sheet, rows: JudgedRows) -> Html:
    entropy = rows.columns["entropy"].astype(float)
    is_right = rows.columns["guess"] == rows.columns["y"]
    top = max(float(entropy.max()), 1e-3)
    edges = np.linspace(0, top, _NUM_BARS + 1)
    curves = {}
    for name, chosen in (("right guesses", is_right), ("wrong guesses", ~is_right)):
        if chosen.any():
            counts, _ = np.histogram(entropy[chosen], edges)
            curves[name] = counts / counts.sum()
    means = ", ".join(
        f"{name} {number(float(entropy[chosen].mean()))}"
        for name, chosen in (("right", is_right), ("wrong", ~is_right))
        if chosen.any()
    )
    title = "Entropy of right and wrong guesses"
    words = f"Mean entropy, nats: {means}."
    chart = Chart(
        sheet.ids,
        title,
        words,
        x=axis_of([edges], "entropy, nats", low=0.0),
        y=axis_of(list(curves.values()), "share of them", low=0.0),
    )
    for style, (name, shares) in enumerate(curves.items()):
        steps = np.repeat(edges, 2)[1:-1]
        chart.line(steps, np.repeat(shares, 2), style=style, label=name)
    caption = f"{words} Uncertainty is of use where wrong guesses lie to the right."
    return figure(title, chart.html(), caption)
