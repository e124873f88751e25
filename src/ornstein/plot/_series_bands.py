"""Predictive bands of sequences, with what was seen and what was asked for."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from .._types import Float, Shaped
from ._bands import BAND_QUANTILES, fill_bands
from ._dates import are_dates, show_dates
from ._style import BLUE, INK, RED, add_legend, clean, new_figure


class SeriesPanel(NamedTuple):
    """One feature of one series.

    Attributes:
        ts: times, rising: numbers, or dates (`datetime64`), as `seen` and `asked`.
        quantiles: of the prediction there, at `BAND_QUANTILES`.
        seen: times and values that the model was shown.
        asked: times and values that it was asked for; `None` if they are not known.
        title: shown above.
        ylabel: name and unit of the value.
    """

    ts: Shaped[np.ndarray, " times"]
    quantiles: Float[np.ndarray, "quantiles times"]
    seen: tuple[Shaped[np.ndarray, " seen"], Float[np.ndarray, " seen"]]
    asked: tuple[Shaped[np.ndarray, " asked"], Float[np.ndarray, " asked"]] | None = (
        None
    )
    title: str = ""
    ylabel: str = ""


def series_bands(
    panels: Sequence[Sequence[SeriesPanel]], *, xlabel: str = "time"
) -> Figure:
    """Central 50, 80 and 95 % intervals and the median over time.

    The bands hold the noise of the likelihood. Each panel has its own axes: series
    need not share times or units.

    Args:
        panels: rows of them, such as a row for each series and one for each of its
            features; equally many in every row.
        xlabel: name and unit of the times.

    Raises:
        ValueError: for other quantiles, or rows of different lengths.
    """
    lengths = {len(row) for row in panels}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"Rows have {sorted(lengths)} panels, but all need the same number, at "
            "least 1: give every series the same features."
        )
    num_columns = lengths.pop()
    figure = new_figure(3.2 * num_columns + 1.3, 1.9 * len(panels) + 0.3)
    all_axes = figure.subplots(len(panels), num_columns, squeeze=False)
    for number, (line, row) in enumerate(zip(all_axes, panels, strict=True)):
        for axes, panel in zip(line, row, strict=True):
            if len(panel.quantiles) != len(BAND_QUANTILES):
                raise ValueError(
                    f"{panel.title or 'A panel'} has {len(panel.quantiles)} quantiles: "
                    "give those at `BAND_QUANTILES`, in its order."
                )
            _draw(axes, panel)
            is_last = number == len(panels) - 1
            clean(
                axes,
                xlabel=xlabel if is_last else "",
                ylabel=panel.ylabel,
                title=panel.title,
            )
            if are_dates(panel.ts):
                show_dates(axes)
    add_legend(all_axes[0, -1], loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _draw(axes, panel: SeriesPanel) -> None:
    fill_bands(axes, panel.ts, panel.quantiles)
    median = panel.quantiles[len(BAND_QUANTILES) // 2]
    axes.plot(panel.ts, median, color=BLUE, linewidth=1.4, label="median")
    axes.plot(*panel.seen, "o", color=INK, markersize=2.5, label="seen")
    if panel.asked is not None:
        axes.plot(*panel.asked, "o", color=RED, markersize=2.5, label="asked for")
    axes.set_xlim(panel.ts[0], panel.ts[-1])
