"""Predictive bands of several models side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from .._types import Array, Float
from ._bands import BAND_QUANTILES, fill_bands
from ._style import BLUE, RED, add_legend, clean, new_figure


def band_panels(
    x: Float[Array | np.ndarray, " points"],
    panels: Mapping[str, Mapping[str, Float[Array | np.ndarray, "quantiles points"]]],
    *,
    data: tuple[np.ndarray | Array, np.ndarray | Array] | None = None,
    xlabel: str = "x",
    ylabel: str = "y",
    ylim: tuple[float, float] | None = None,
) -> Figure:
    """Central 50, 80 and 95 % intervals and the median, a panel for each model.

    Args:
        x: inputs, rising.
        panels: a row's name to (a panel's title to its quantiles at `BAND_QUANTILES`);
            rows have equally many panels.
        data: observed inputs and targets, in every panel.
        xlabel: name and unit of the input.
        ylabel: name and unit of the target.
        ylim: the lowest and highest value shown.

    Raises:
        ValueError: for other quantiles, or rows of different lengths.
    """
    lengths = {len(row) for row in panels.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"Rows have {sorted(lengths)} panels, but all need the same number, at "
            "least 1: give every row the same models."
        )
    grid, num_columns = np.asarray(x), lengths.pop()
    figure = new_figure(1.9 * num_columns + 1.3, 1.9 * len(panels) + 0.3)
    all_axes = figure.subplots(
        len(panels), num_columns, sharex=True, sharey=True, squeeze=False
    )
    last = len(panels) - 1
    for number, (name, row) in enumerate(panels.items()):
        line = all_axes[number]
        for axes, (title, values) in zip(line, row.items(), strict=True):
            quantiles = np.asarray(values)
            if len(quantiles) != len(BAND_QUANTILES):
                raise ValueError(
                    f"{name}, {title} has {len(quantiles)} quantiles: give those at "
                    "`BAND_QUANTILES`, in its order."
                )
            fill_bands(axes, grid, quantiles)
            median = quantiles[len(quantiles) // 2]
            axes.plot(grid, median, color=BLUE, linewidth=1.4, label="median")
            if data is not None:
                points = (np.ravel(data[0]), np.ravel(data[1]))
                axes.plot(*points, "o", color=RED, markersize=2, label="data")
            is_first, is_last = axes is line[0], number == last
            clean(
                axes,
                xlabel=xlabel if is_last else "",
                ylabel=f"{name}: {ylabel}" if is_first else "",
                title=title,
            )
    axes = all_axes[0, 0]
    axes.set_xlim(grid[0], grid[-1])
    if ylim is not None:
        axes.set_ylim(*ylim)
    add_legend(all_axes[0, -1], loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
