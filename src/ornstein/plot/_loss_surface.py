"""Losses over a plane, with points in it."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from .._types import Array, Float
from ._style import ORANGE, RED, add_legend, clean, new_figure

_NUM_LEVELS = 13


def loss_surfaces(
    xs: Float[Array | np.ndarray, " columns"],
    ys: Float[Array | np.ndarray, " lines"],
    surfaces: Mapping[str, Float[Array | np.ndarray, "lines columns"]],
    *,
    points: Float[Array | np.ndarray, "points 2"],
    labels: Sequence[str] = ("first direction", "second direction"),
    names: Sequence[str] = ("U", "components"),
) -> Figure:
    """A panel of contours for each loss; its levels are quantiles of its values.

    Args:
        xs: coordinates of the grid along the first direction.
        ys: along the second.
        surfaces: title, with the unit, to the loss on the grid.
        points: drawn in each panel, around the origin, which is a star.
        labels: names of the two directions.
        names: of the origin and of the points.
    """
    num_columns = min(2, len(surfaces))
    num_lines = -(-len(surfaces) // num_columns)
    figure = new_figure(3.7 * num_columns, 3.1 * num_lines)
    panels = figure.subplots(
        num_lines, num_columns, sharex=True, sharey=True, squeeze=False
    )
    dots = np.asarray(points)
    for axes, (title, values) in zip(panels.ravel(), surfaces.items(), strict=False):
        levels = _levels(np.asarray(values, float))
        contours = axes.contourf(
            np.asarray(xs),
            np.asarray(ys),
            np.asarray(values),
            levels=levels,
            norm=BoundaryNorm(levels, 256),
            cmap="viridis",
        )
        bar = figure.colorbar(contours, ax=axes, format="%.3g")
        bar.ax.tick_params(labelsize=7)
        axes.plot(*dots.T, "o", color=ORANGE, markersize=5, label=names[1])
        axes.plot([0], [0], "*", color=RED, markersize=11, label=names[0])
        clean(axes, xlabel=labels[0], ylabel=labels[1], title=title)
        axes.label_outer()
    for axes in panels.ravel()[len(surfaces) :]:
        axes.set_axis_off()
    add_legend(panels[0, 0], loc="upper right")
    return figure


def _levels(values: np.ndarray) -> np.ndarray:
    levels = np.unique(np.quantile(values, np.linspace(0, 1, _NUM_LEVELS)))
    if len(levels) > 1:
        return levels
    return levels[0] + np.array([-0.5, 0.5])
