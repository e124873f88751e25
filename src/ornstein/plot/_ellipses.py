"""Ellipses of covariances of two numbers."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from .._types import Array, Float
from ._style import FAINT, PALETTE, add_legend, clean, new_figure

_NUM_POINTS = 121


def covariance_ellipses(
    panels: Mapping[str, Mapping[str, Float[Array | np.ndarray, "2 2"]]],
    *,
    samples: Mapping[str, Float[Array | np.ndarray, "samples 2"]] | None = None,
    radius: float = 2.0,
    labels: tuple[str, str] = ("θ₁", "θ₂"),
) -> Figure:
    """A panel for each method, with the ellipses of several covariances around 0.

    Args:
        panels: title to (name to covariance); every panel has the same names.
        samples: title to points, shown faintly beneath; centred on 0.
        radius: of the ellipses, in standard deviations.
        labels: names and units of the two numbers.
    """
    samples = {} if samples is None else samples
    figure = new_figure(2.3 * len(panels) + 1.4, 2.7)
    row = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    angles = np.linspace(0, 2 * np.pi, _NUM_POINTS)
    variances = [np.diag(c) for panel in panels.values() for c in panel.values()]
    reach = 1.5 * radius * np.sqrt(np.max(variances))
    circle = radius * np.stack([np.cos(angles), np.sin(angles)])
    for axes, (title, covariances) in zip(row, panels.items(), strict=True):
        if title in samples:
            points = np.asarray(samples[title])
            axes.plot(points[:, 0], points[:, 1], ".", color=FAINT, markersize=1)
        for i, (name, covariance) in enumerate(covariances.items()):
            axes.plot(
                *(np.linalg.cholesky(np.asarray(covariance)) @ circle),
                color=PALETTE[i % len(PALETTE)],
                linestyle=("-", "--", "-.", ":")[i % 4],
                linewidth=1.4,
                label=name,
            )
        axes.set_aspect("equal")
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-reach, reach)
        clean(axes, xlabel=labels[0], ylabel=labels[1], title=title)
    add_legend(row[-1], loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
