"""What `ornstein evaluate` found last: corruptions, strangers, noise, the audit."""

from typing import Any

import numpy as np

from ..page import Html, figure, figures, joined, number, percent, table, tag
from ..svg import Axis, Chart, axis_of
from ._base import Section, Sheet, note


def evaluated(sheet: Sheet) -> Section | None:
    """All of evaluation.json that is of more than the test rows as they are.

    Args:
        sheet: of the run.
    """
    found = sheet.record.evaluation
    if found is None:
        return None
    parts: list[Html] = []
    for name, draw in (
        ("corruptions", _corruptions),
        ("ood", _ood),
        ("noise_sweep", _noise),
        ("audit", _audit),
        ("dial", _dial),
    ):
        if found.get(name):
            parts += draw(sheet, found[name])
    if not parts:
        return None
    origin = found.get("provenance") or {}
    command = tag("code", str(origin.get("command", "ornstein evaluate")))
    draws = f", with {found['num_draws']} draws" if "num_draws" in found else ""
    parts.append(tag("p", "From ", command, f"{draws}.", class_="note"))
    return Section("Beyond the test rows", joined(parts))


def _corruptions(sheet: Sheet, found: dict[str, Any]) -> list[Html]:
    severities = found["per_severity"]
    drawn = []
    for name, unit in (("error", "share wrong"), ("ece", "ECE"), ("nll", "nats a row")):
        xs = np.array([0.0, *(row["severity"] for row in severities)])
        means = np.array([found["clean"][name], *(row[name] for row in severities)])
        spreads = [_number(row.get(f"{name}_std")) for row in severities]
        spread = np.array([0.0, *spreads])
        title = (
            f"{ {'error': 'Error', 'ece': 'ECE', 'nll': 'NLL'}[name] } under corruption"
        )
        words = f"From {number(means[0])} without to {number(means[-1])} at severity 5."
        chart = Chart(
            sheet.ids,
            title,
            words,
            x=Axis(0, float(xs[-1]), "severity (0: as they are)", tuple(xs)),
            y=axis_of([means, means + np.nan_to_num(spread)], unit, low=0.0),
        )
        chart.band(xs, means - spread, means + spread)
        chart.line(xs, means)
        chart.dots(xs, means)
        rows = [
            [number(x), number(m), number(s)]
            for x, m, s in zip(xs, means, spread, strict=True)
        ]
        caption = f"{words} The band is one standard deviation over corruptions."
        columns = ["severity", "mean", "deviation"]
        drawn.append(figure(title, chart.html(), caption, columns=columns, rows=rows))
    scores = ("error", "nll", "ece")
    rows = [
        [str(row["corruption"]), *(number(row[name]) for name in scores)]
        for row in [{"corruption": "none", **found["clean"]}, *found["per_corruption"]]
    ]
    caption = "Means over five severities"
    by_name = table(caption, ["corruption", "error", "NLL", "ECE"], rows)
    details = tag("details", tag("summary", "Each corruption"), by_name)
    said = f"{found['num_rows']:,} test rows. {found.get('note', '')}"
    return [sheet.heading("Corruptions"), figures(*drawn), details, note(said)]


def _ood(sheet: Sheet, found: dict[str, dict[str, float]]) -> list[Html]:
    rows = [
        [name, *(number(scores.get(s)) for s in ("auroc", "aupr", "fpr95"))]
        for name, scores in found.items()
    ]
    caption = "How well uncertainty tells these from test rows"
    columns = ["inputs", "AUROC", "AUPR", "FPR at 95 %"]
    return [
        sheet.heading("Inputs unlike the training rows"),
        table(caption, columns, rows),
        note("AUROC 0.5 is chance, 1 is perfect; FPR is better when lower."),
    ]


def _noise(sheet: Sheet, found: dict[str, Any]) -> list[Html]:
    drawn = []
    rows = found["rows"]
    for kind in dict.fromkeys(row["noise"] for row in rows):
        own = [row for row in rows if row["noise"] == kind]
        xs = np.array([_number(row["intensity"]) for row in own])
        entropy = np.array([_number(row["entropy"]) for row in own])
        expected = np.array([_number(row["aleatoric"]) for row in own])
        title = f"Entropy as rows turn into {kind} noise"
        words = f"From {number(entropy[0])} to {number(entropy[-1])} nats."
        chart = Chart(
            sheet.ids,
            title,
            words,
            x=axis_of([xs], "intensity"),
            y=axis_of([entropy, expected], "nats", low=0.0),
        )
        chart.line(xs, entropy, label="total")
        chart.line(xs, expected, style=1, label="expected")
        table_rows = [
            [number(x), number(e), number(a), percent(_number(row["accuracy"]))]
            for x, e, a, row in zip(xs, entropy, expected, own, strict=True)
        ]
        columns = ["intensity", "total", "expected", "accuracy"]
        drawn.append(
            figure(title, chart.html(), words, columns=columns, rows=table_rows)
        )
    return [sheet.heading("Noise"), figures(*drawn)]


def _audit(sheet: Sheet, found: dict[str, Any]) -> list[Html]:
    rows = [
        [
            str(one["name"]),
            number(_number(one["scores"].get("nll"))),
            number(_number(one.get("gain"))),
            number(_number(one.get("gain_se")), 2),
        ]
        for one in found.get("relatives", [])
    ]
    columns = ["what", "NLL", "worse than the run by", "\N{PLUS-MINUS SIGN}"]
    caption = "The run, parts of it put back to the prior, and its twins"
    return [
        sheet.heading("Audit: does this posterior do anything?"),
        tag("p", str(found.get("sentence", ""))),
        table(caption, columns, rows),
    ]


def _dial(sheet: Sheet, found: list[dict[str, Any]]) -> list[Html]:
    names = list(dict.fromkeys(name for row in found for name in row))
    rows = [
        [_cell(row.get(name)) for name in names]
        for row in found
        if isinstance(row, dict)
    ]
    columns = [name.replace("_", " ") for name in names]
    caption = "The same weights, solved with other steps or tolerances"
    return [sheet.heading("The solver's dial"), table(caption, columns, rows)]


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        return str(value)
    return number(value)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
