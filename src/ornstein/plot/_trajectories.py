"""Hidden states over depth, one colour for each input."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from .._types import Array, Float
from ._style import PALETTE, add_legend, clean, new_figure


def trajectories(
    ts: Float[Array | np.ndarray, " times"],
    hs: Float[Array | np.ndarray, "..."],
    *,
    labels: tuple[str, ...] | None = None,
    xlabel: str = "depth t",
    ylabel: str = "hidden state h",
    title: str | None = None,
) -> Figure:
    """Each draw's path of each input, and their mean; where paths crowd, ink is dense.

    Args:
        ts: times, which are depths.
        hs: one coordinate of the hidden state: (draws, times, inputs).
        labels: names of the inputs; none by default.
        xlabel: name and unit of the depth.
        ylabel: name and unit of the state.
        title: shown above.
    """
    ts, hs = check_paths(ts, hs, labels)
    figure = new_figure(5.2, 3.2)
    axes = figure.subplots()
    for i, lines in enumerate(path_collections(ts, hs)):
        axes.add_collection(lines)
        colour = PALETTE[i % len(PALETTE)]
        label = None if labels is None else labels[i]
        axes.plot(ts, hs[:, :, i].mean(0), color=colour, linewidth=1.8, label=label)
    frame_paths(axes, ts, hs)
    clean(axes, xlabel=xlabel, ylabel=ylabel, title=title)
    if labels is not None:
        add_legend(axes, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def path_collections(ts: np.ndarray, hs: np.ndarray) -> list[LineCollection]:
    """One collection of lines an input: hundreds of draws stay quick to draw."""
    # Faint enough that a crowd shows its density, visible when there are few.
    alpha = float(np.clip(6 / hs.shape[0], 0.06, 0.6))
    times = np.broadcast_to(ts, hs.shape[:2])
    return [
        LineCollection(
            list(np.stack([times, hs[:, :, i]], axis=-1)),
            colors=PALETTE[i % len(PALETTE)],
            alpha=alpha,
            linewidths=0.8,
        )
        for i in range(hs.shape[2])
    ]


def frame_paths(axes: Axes, ts: np.ndarray, hs: np.ndarray):
    """Limits that hold every path."""
    margin = 0.05 * max(np.ptp(hs), 1e-12)
    axes.set_xlim(ts[0], ts[-1])
    axes.set_ylim(hs.min() - margin, hs.max() + margin)


def check_paths(
    ts: Array | np.ndarray, hs: Array | np.ndarray, labels: tuple[str, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    """As NumPy arrays, if they can be drawn."""
    ts, hs = np.asarray(ts), np.asarray(hs)
    if hs.ndim != 3 or hs.shape[1] != ts.size or 0 in hs.shape:
        raise ValueError(
            f"Got paths of shape {hs.shape} at {ts.size} times: give one coordinate of "
            "the hidden state as (draws, times, inputs)."
        )
    if not np.all(np.isfinite(hs)):
        raise ValueError(
            "Some paths are NaN or infinite: draw those that the solver finished."
        )
    if labels is not None and len(labels) != hs.shape[2]:
        raise ValueError(
            f"Got {len(labels)} labels for {hs.shape[2]} inputs: give one for each."
        )
    return ts, hs
