"""Trajectories that grow with depth, as a GIF."""

from pathlib import Path

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.collections import PathCollection

from .._types import Array, Float
from ._style import PALETTE, add_legend, clean, new_figure
from ._trajectories import check_paths, frame_paths, path_collections


def animate_trajectories(
    path: str | Path,
    ts: Float[Array | np.ndarray, " times"],
    hs: Float[Array | np.ndarray, "..."],
    *,
    num_frames: int = 40,
    frames_per_second: int = 15,
    labels: tuple[str, ...] | None = None,
    xlabel: str = "depth t",
    ylabel: str = "hidden state h",
    title: str | None = None,
) -> Path:
    """Write a GIF of the paths of `trajectories`, drawn from left to right.

    Args:
        path: the file to write; an existing one is replaced.
        ts: times, which are depths.
        hs: one coordinate of the hidden state: (draws, times, inputs).
        num_frames: pictures; at most one for each time is made.
        frames_per_second: pictures a second. The last stays for one second.
        labels: names of the inputs; none by default.
        xlabel: name and unit of the depth.
        ylabel: name and unit of the state.
        title: shown above.

    Returns:
        The file that was written.
    """
    ts, hs = check_paths(ts, hs, labels)
    if num_frames < 1 or frames_per_second < 1:
        raise ValueError(
            f"`num_frames` ({num_frames}) and `frames_per_second` "
            f"({frames_per_second}) must be at least 1."
        )
    figure = new_figure(5.2, 3.2)
    axes = figure.subplots()
    collections = path_collections(ts, hs)
    tips: list[PathCollection] = []
    for i, lines in enumerate(collections):
        axes.add_collection(lines)
        colour = PALETTE[i % len(PALETTE)]
        label = None if labels is None else labels[i]
        tips.append(axes.scatter([], [], s=6, color=colour, label=label))
    frame_paths(axes, ts, hs)
    clean(axes, xlabel=xlabel, ylabel=ylabel, title=title)
    if labels is not None:
        add_legend(axes, loc="center left", bbox_to_anchor=(1, 0.5))

    def show(end: int):
        for i, (lines, tip) in enumerate(zip(collections, tips, strict=True)):
            until = np.broadcast_to(ts[: end + 1], (hs.shape[0], end + 1))
            lines.set_segments(list(np.stack([until, hs[:, : end + 1, i]], axis=-1)))
            tip.set_offsets(np.stack([until[:, -1], hs[:, end, i]], axis=-1))
        return [*collections, *tips]

    ends = np.unique(np.linspace(0, ts.size - 1, min(num_frames, ts.size)).astype(int))
    frames = [*ends.tolist(), *[ts.size - 1] * frames_per_second]
    animation = FuncAnimation(figure, show, frames=frames, blit=False)
    animation.save(str(path), writer=PillowWriter(fps=frames_per_second), dpi=100)
    return Path(path)
