"""Learning curves."""

import numpy as np

from ..page import Html, Number, figure, figures, joined, number
from ..svg import Axis, Chart, axis_of
from ._base import Section, Sheet, note

_PANELS = (
    ("ELBO", "nats of all training rows", ("elbo",)),
    (
        "KL of posterior and prior",
        "nats",
        ("kl", "kl_path", "kl_initial", "kl_weights"),
    ),
    ("NLL of validation rows", "nats", ("val_nll",)),
    ("Log likelihood of training rows", "nats", ("log_likelihood",)),
    ("Accuracy", "share right", ("accuracy", "val_accuracy")),
    ("ECE", "expected calibration error", ("ece", "val_ece")),
    ("Gradient norm", "before clipping", ("grad_norm",)),
    ("Learning rate", "per step", ("learning_rate",)),
)
_NUM_SHOWN = 6
_BEGINNING = 0.1


def training(sheet: Sheet) -> Section | None:
    """What was recorded over epochs.

    Args:
        sheet: of the run.
    """
    history = sheet.record.history
    if not history:
        return None
    epochs = np.array([_value(record, "epoch") for record in history])
    drawn = []
    has_bound = sheet.record.climbed_bound
    for title, unit, names in _PANELS:
        if title == "ELBO" and not has_bound:  # of points it would be none
            continue
        if "kl" in names and not has_bound:
            title, names = "Energy of the prior", ("kl",)
        curves = {n: np.array([_value(r, n) for r in history]) for n in names}
        if title == "Energy of the prior":
            curves = {"energy": curves["kl"]}
        curves = {n: c for n, c in curves.items() if _says(c)}
        if curves and len(drawn) < _NUM_SHOWN:
            drawn.append(_panel(sheet, title, unit, epochs, curves))
    if not drawn:
        return None
    words = (
        "Means over the steps of each epoch, with the training draws; the learning "
        "rate is the epoch's last. No curve but a validation one says anything of "
        "other rows than the training's."
    )
    if len(history) == 1:
        words = f"The run has one epoch, and so one point of each curve. {words}"
    return Section("Training", joined([figures(*drawn), note(words)]))


def _says(curve: np.ndarray) -> bool:
    finite = curve[np.isfinite(curve)]
    return bool(finite.size) and bool(np.any(finite != 0))


def _panel(
    sheet: Sheet,
    title: str,
    unit: str,
    epochs: np.ndarray,
    curves: dict[str, np.ndarray],
) -> Html:
    x = axis_of([epochs], "epoch") if len(epochs) > 1 else _around(epochs[0])
    first = int(len(epochs) * _BEGINNING)
    y = axis_of([curve[first:] for curve in curves.values()], unit)
    ends = ", ".join(
        f"{_said(n)} ends at {number(_last(c))}" for n, c in curves.items()
    )
    chart = Chart(
        sheet.ids, title, f"{title} over {len(epochs)} epochs: {ends}.", x=x, y=y
    )
    for style, (name, curve) in enumerate(curves.items()):
        label = _said(name) if len(curves) > 1 else None
        there = np.isfinite(curve)  # validation rows are not judged at each epoch
        chart.line(epochs[there], curve[there], style=style, label=label)
    beyond = any(_leaves(curve, y) for curve in curves.values())
    caption = f"{ends[0].upper()}{ends[1:]}."
    caption += " Its first epochs lie beyond the axis." if beyond else ""
    known = np.flatnonzero(np.all([np.isfinite(c) for c in curves.values()], axis=0))
    shown = known if known.size else np.arange(len(epochs))
    shown = shown[_spread(len(shown))]
    rows = [
        [number(float(epochs[i])), *(number(float(c[i])) for c in curves.values())]
        for i in shown
    ]
    columns = ["epoch", *map(_said, curves)]
    return figure(title, chart.html(), caption, columns=columns, rows=rows)


def _leaves(curve: np.ndarray, y: Axis) -> bool:
    finite = curve[np.isfinite(curve)]
    return bool(np.any((finite < y.low) | (finite > y.high)))


def _around(epoch: Number) -> Axis:
    return Axis(epoch - 1, epoch + 1, "epoch", (epoch,))


def _last(curve: np.ndarray) -> float:
    return float(curve[np.isfinite(curve)][-1])


def _spread(number: int) -> np.ndarray:
    return np.unique(np.linspace(0, number - 1, min(number, 10)).round().astype(int))


def _said(name: str) -> str:
    words = {
        "elbo": "ELBO",
        "kl": "KL",
        "ece": "ECE",
        "val": "validation",
        "nll": "NLL",
    }
    parts = name.split("_")
    return " ".join([words.get(part, part) for part in parts])


def _value(record: dict, name: str) -> float:
    value = record.get(name)
    return float(value) if isinstance(value, int | float) else float("nan")
