"""Methods side by side: how good, and how long they take."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ._style import BLUE, FAINT, INK, ORANGE, clean, new_figure


class ComparedMethod(NamedTuple):
    """A line of the picture.

    Attributes:
        name: of the method.
        is_own: whether it is this library's.
        behind: its mean NLL less the best method's, nats.
        error: the standard error of that, row by row.
        seconds: of a fit and its predictions.
    """

    name: str
    is_own: bool
    behind: float
    error: float
    seconds: float


def method_comparison(methods: Sequence[ComparedMethod], *, title: str) -> Figure:
    """How far each method is behind the best, and its time.

    Args:
        methods: the best first.
        title: above the picture.
    """
    figure = new_figure(7.0, 1.3 + 0.28 * len(methods))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for place, method in enumerate(methods):
        color = BLUE if method.is_own else ORANGE
        marker = "o" if method.is_own else "s"
        left.errorbar(
            method.behind,
            place,
            xerr=method.error,
            color=color,
            marker=marker,
            markersize=5,
            linewidth=1.2,
        )
        right.plot(method.seconds, place, marker, color=color, markersize=5)
    left.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    left.set_yticks(range(len(methods)), [method.name for method in methods])
    left.set_ylim(len(methods) - 0.5, -0.5)
    clean(left, xlabel="NLL behind the best, nats a row (± standard error)", ylabel="")
    clean(right, xlabel="seconds a fit", ylabel="")
    right.set_xscale("log")
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    right.xaxis.set_minor_formatter(NullFormatter())
    times = [method.seconds for method in methods]
    right.set_xlim(
        10 ** math.floor(math.log10(min(times))),
        10 ** math.ceil(math.log10(max(times)) + 1e-9),
    )
    right.tick_params(axis="y", length=0)
    widest = max(method.behind for method in methods)
    shown = sorted(method.behind for method in methods)[: max(3, len(methods) * 3 // 4)]
    if widest > 4 * max(shown[-1], 1e-9):  # one bad method hides the others
        left.set_xlim(-0.1 * shown[-1], 1.6 * shown[-1])
        for place, method in enumerate(methods):
            if method.behind > 1.6 * shown[-1]:
                left.annotate(
                    f"{method.behind:.2g} →",
                    (1.55 * shown[-1], place),
                    ha="right",
                    va="center",
                    fontsize=8,
                    color=INK,
                )
    for color, marker, name in ((BLUE, "o", "ornstein"), (ORANGE, "s", "scikit-learn")):
        right.plot([], [], marker, color=color, label=name, markersize=5)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure
