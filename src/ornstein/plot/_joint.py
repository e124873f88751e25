"""Samples of two numbers over the density that they should have, and their margins."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from .._types import Float
from ._style import BLUE, FAINT, INK, add_legend, clean, new_figure

_SHARES = (0.95, 0.8, 0.5, 0.2)  # of the mass, inside each contour


class Margin(NamedTuple):
    """One number's histogram over its density.

    Attributes:
        edges: of the bins, rising.
        heights: of the histogram, per unit of the number.
        grid: where the density is known.
        density: the density.
    """

    edges: Float[np.ndarray, " edges"]
    heights: Float[np.ndarray, " bins"]
    grid: Float[np.ndarray, " points"]
    density: Float[np.ndarray, " points"]


def joint_samples(
    grid: Float[np.ndarray, " points"],
    density: Float[np.ndarray, "points points"],
    samples: Float[np.ndarray, "samples 2"],
    *,
    labels: tuple[str, str],
    limit: float,
    title: str | None = None,
) -> Figure:
    """Dots over contours that hold 20, 50, 80 and 95 % of the density's mass.

    Args:
        grid: equally spaced values of both numbers.
        density: the first number's along lines, the second's along columns.
        samples: pairs.
        labels: names and units of the two.
        limit: both axes run from minus this to this.
        title: shown above.
    """
    figure = new_figure(4.2, 3.8)
    axes = figure.subplots()
    seen = np.abs(grid) <= limit
    shown = density[np.ix_(seen, seen)].T
    ranked = np.sort(density, axis=None)[::-1]
    within = np.searchsorted(np.cumsum(ranked) / ranked.sum(), _SHARES)
    axes.contour(
        grid[seen], grid[seen], shown, levels=ranked[within], colors=INK, linewidths=0.8
    )
    axes.plot(*np.asarray(samples).T, ".", color=BLUE, markersize=2, alpha=0.3)
    axes.set_xlim(-limit, limit)
    axes.set_ylim(-limit, limit)
    clean(axes, xlabel=labels[0], ylabel=labels[1], title=title)
    return figure


def margin_panels(panels: Mapping[str, Margin], *, xlabel: str) -> Figure:
    """A row of panels, each a histogram (line) over its density (shaded).

    Args:
        panels: by title.
        xlabel: name and unit of the number.
    """
    figure = new_figure(2.1 * len(panels) + 0.9, 2.3)
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, margin) in zip(all_axes, panels.items(), strict=True):
        axes.fill_between(
            margin.grid, margin.density, color=FAINT, linewidth=0, label="quadrature"
        )
        axes.stairs(
            margin.heights,
            margin.edges,
            baseline=None,
            color=BLUE,
            linewidth=1.2,
            label="samples",
        )
        axes.set_xlim(margin.edges[0], margin.edges[-1])
        axes.set_ylim(bottom=0)
        first = axes is all_axes[0]
        clean(axes, xlabel=xlabel, ylabel="density" if first else "", title=title)
    add_legend(all_axes[-1], loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
