"""Predictive bands of a function of one input."""

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._types import Array, Float, Shaped
from ..likelihood import AbstractLocationScaleLikelihood
from ..prediction import Prediction
from ._dates import are_dates, show_dates
from ._style import BLUE, INK, add_legend, clean, new_figure

# Central intervals, widest first, so that narrow ones lie on top; shades of `BLUE`.
_LEVELS = (0.95, 0.8, 0.5)
_SHADES = ("#DCEBF5", "#B0D3E8", "#7FB8DA")
_TAILS = tuple((1 - level) / 2 for level in _LEVELS)
BAND_QUANTILES = (*_TAILS, 0.5, *(1 - tail for tail in reversed(_TAILS)))
"""The ends of the intervals around the median, from the lowest to the highest."""

_MAX_SAMPLE_PATHS = 8


def predictive_bands(
    x: Shaped[Array | np.ndarray, "rows *one"],
    prediction: Prediction,
    *,
    data: tuple[np.ndarray | Array, np.ndarray | Array] | None = None,
    column: int = 0,
    xlabel: str = "x",
    ylabel: str = "y",
    title: str | None = None,
) -> Figure:
    """Central 50, 80 and 95 % intervals, the median, and some draws.

    The bands hold the noise of the likelihood; the thin lines, the draws' own outputs,
    do not.

    Args:
        x: the inputs of `prediction`: (rows,) or (rows, 1), in any order; numbers, or
            dates (`datetime64`), as those of `data`.
        prediction: of real targets, with its draws kept.
        data: observed inputs and targets.
        column: which column of targets is drawn.
        xlabel: name and unit of the input.
        ylabel: name and unit of the target.
        title: shown above.
    """
    if prediction.outputs is None:
        raise ValueError(
            "`predictive_bands` needs the draws, which were not kept: call `predict` "
            "with `keep_draws=True`."
        )
    order = np.argsort(_vector(x))
    grid = _vector(x)[order]
    if not isinstance(prediction.likelihood, AbstractLocationScaleLikelihood):
        raise ValueError(
            "Bands need a likelihood of real targets, got "
            f"`{type(prediction.likelihood).__name__}`: draw a `reliability_diagram` "
            "for classes."
        )
    quantiles = np.asarray(prediction.quantile(BAND_QUANTILES))[:, order, column]

    figure = new_figure(5.6, 3.4)
    axes = figure.subplots()
    fill_bands(axes, grid, quantiles)
    draws = np.asarray(jnp.asarray(prediction.outputs)[:_MAX_SAMPLE_PATHS, :, column])
    for i, draw in enumerate(draws):
        label = "draws" if i == 0 else None
        axes.plot(grid, draw[order], color=BLUE, alpha=0.45, linewidth=0.6, label=label)
    axes.plot(grid, quantiles[len(_LEVELS)], color=BLUE, linewidth=1.8, label="median")
    shown = [quantiles[1], quantiles[-2]]
    if data is not None:
        targets = np.asarray(data[1])
        targets = targets[:, column] if targets.ndim == 2 else targets
        axes.plot(_vector(data[0]), targets, "o", color=INK, markersize=3, label="data")
        shown.append(targets)
    axes.set_xlim(grid[0], grid[-1])
    axes.set_ylim(_limits(quantiles, np.concatenate(shown)))
    clean(axes, xlabel=xlabel, ylabel=ylabel, title=title)
    if are_dates(grid):
        show_dates(axes)
    add_legend(axes, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def fill_bands(
    axes: Axes,
    grid: Shaped[np.ndarray, " points"],
    quantiles: Float[np.ndarray, "quantiles points"],
) -> None:
    """The intervals between pairs of `BAND_QUANTILES`."""
    for i, (level, shade) in enumerate(zip(_LEVELS, _SHADES, strict=True)):
        axes.fill_between(
            grid,
            quantiles[i],
            quantiles[-1 - i],
            color=shade,
            linewidth=0,
            label=f"{100 * level:.0f} % interval",
        )


def _limits(quantiles: np.ndarray, shown: np.ndarray) -> tuple[float, float]:
    """All of `shown`, and of wider bands what does not flatten the picture."""
    margin = 0.3 * max(float(np.ptp(shown)), 1e-12)
    low = max(float(quantiles.min()), float(shown.min()) - margin)
    high = min(float(quantiles.max()), float(shown.max()) + margin)
    low, high = min(low, float(shown.min())), max(high, float(shown.max()))
    pad = 0.03 * max(high - low, 1e-12)
    return low - pad, high + pad


def _vector(x: Array | np.ndarray) -> np.ndarray:
    values = np.asarray(x)
    if values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
        raise ValueError(
            f"`predictive_bands` draws against one input, got inputs of shape "
            f"{values.shape}: give (rows,) or (rows, 1)."
        )
    return values.ravel()
