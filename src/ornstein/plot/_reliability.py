"""The reliability diagram."""

import numpy as np
from matplotlib.figure import Figure

from ..metrics import Reliability
from ._style import BLUE, FAINT, INK, RED, add_legend, clean, new_figure


def reliability_diagram(bins: Reliability, *, title: str | None = None) -> Figure:
    """Accuracy against confidence above, and how many rows each bin has below.

    Bars end at the accuracy. From there to the mean confidence it is hatched: above the
    bar where the model is too sure, inside it where it is not sure enough.

    Args:
        bins: what `ornstein.metrics.reliability` returned.
        title: shown above, before the ECE of these bins.
    """
    edges, counts = np.asarray(bins.edges), np.asarray(bins.counts)
    confidence, accuracy = np.asarray(bins.confidence), np.asarray(bins.accuracy)
    filled = counts > 0
    left, width = edges[:-1][filled], np.diff(edges)[filled]
    gap = confidence[filled] - accuracy[filled]
    error = np.sum(counts[filled] * np.abs(gap)) / counts.sum()

    figure = new_figure(3.8, 4.4)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    style = {"width": width, "align": "edge", "edgecolor": "white", "linewidth": 0.8}
    top.bar(left, accuracy[filled], color=BLUE, label="accuracy", **style)
    gap_style = style | {"edgecolor": RED, "color": "none", "hatch": "////"}
    top.bar(left, gap, bottom=accuracy[filled], label="gap to confidence", **gap_style)
    top.plot([0, 1], [0, 1], color=INK, linewidth=0.9, linestyle="--")
    top.set_xlim(0, 1)
    top.set_ylim(0, 1.02)
    headline = f"ECE {error:.3f}" if title is None else f"{title}: ECE {error:.3f}"
    clean(top, xlabel="", ylabel="accuracy", title=headline)
    add_legend(top, loc="upper left")
    bottom.bar(left, counts[filled] / counts.sum(), color=FAINT, **style)
    clean(bottom, xlabel="confidence", ylabel="share of rows")
    return figure
