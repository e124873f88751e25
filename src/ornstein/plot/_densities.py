"""Histograms of samples over the density that they should have."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from .._types import Array, Float
from ._style import FAINT, PALETTE, add_legend, clean, new_figure


def sampled_densities(
    edges: Float[Array | np.ndarray, " edges"],
    heights: Mapping[str, Float[Array | np.ndarray, " bins"]],
    density: tuple[
        Float[Array | np.ndarray, " points"], Float[Array | np.ndarray, " points"]
    ],
    *,
    xlabel: str = "θ",
    title: str | None = None,
) -> Figure:
    """One line for each sampler, and the true density shaded beneath.

    Args:
        edges: of the bins, ascending, one more than bins.
        heights: name to the histogram's heights, per unit of x.
        density: x and the true density there.
        xlabel: name and unit of x.
        title: shown above.
    """
    edges = np.asarray(edges)
    for name, values in heights.items():
        if len(values) + 1 != len(edges):
            raise ValueError(
                f"{name!r} has {len(values)} bins and there are {len(edges)} edges: "
                "give one edge more than bins."
            )
    figure = new_figure(5.6, 3.4)
    axes = figure.subplots()
    axes.fill_between(*density, color=FAINT, linewidth=0, label="true density")
    for i, (name, values) in enumerate(heights.items()):
        # Dashes, so that lines upon each other are all seen.
        axes.stairs(
            np.asarray(values),
            edges,
            baseline=None,
            color=PALETTE[i % len(PALETTE)],
            linestyle=("-", "--", "-.", ":", (0, (1, 1)))[i % 5],
            linewidth=1.4,
            label=name,
        )
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    clean(axes, xlabel=xlabel, ylabel="density", title=title)
    add_legend(axes, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
