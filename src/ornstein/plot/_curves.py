"""One curve for each of several methods."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ._style import PALETTE, add_legend, clean, new_figure

_DASHES = ("-", "--", "-.", ":")


def method_curves(
    curves: Mapping[str, Sequence[float]],
    *,
    xs: Sequence[float] | None = None,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    ylim: tuple[float, float] | None = None,
    has_log_x: bool = False,
    has_log_y: bool = False,
) -> Figure:
    """The curves of several methods in one panel.

    Args:
        curves: values by the method's name; at 1, 2, … unless there are `xs`.
        xs: where, for all of them.
        xlabel: what they are over, with its unit.
        ylabel: what they are, with its unit.
        title: above the panel.
        ylim: the lowest and highest value shown.
        has_log_x: `xs` lie on a logarithmic axis.
        has_log_y: values lie on a logarithmic axis.
    """
    figure = new_figure(4.8, 3.2)
    axes = figure.subplots()
    for i, (name, values) in enumerate(curves.items()):
        where = np.arange(1, len(values) + 1) if xs is None else np.asarray(xs)
        look = {"color": PALETTE[i % len(PALETTE)], "linewidth": 1.5}
        dashes = _DASHES[i // len(PALETTE) % len(_DASHES)]
        axes.plot(where, values, linestyle=dashes, label=name, **look)
    if has_log_x:
        axes.set_xscale("log")
    if has_log_y:
        axes.set_yscale("log")
    if ylim is not None:
        axes.set_ylim(*ylim)
    clean(axes, xlabel=xlabel, ylabel=ylabel, title=title)
    add_legend(axes)
    return figure
