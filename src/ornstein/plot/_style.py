"""One look for all figures.

`Figure` objects are made directly, never through pyplot: nothing is registered
globally, no window opens, and figures are freed like any other object.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe & Ito (2008): told apart with every common colour blindness, and in grey.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
INK, FAINT = "#222222", "#BBBBBB"
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY)

_FONT_SIZE = 9


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; sizes in inches."""
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def clean(axes: Axes, *, xlabel: str, ylabel: str, title: str | None = None):
    """Labels, small ticks, and no box."""
    axes.set_xlabel(xlabel, fontsize=_FONT_SIZE)
    axes.set_ylabel(ylabel, fontsize=_FONT_SIZE)
    if title is not None:
        axes.set_title(title, fontsize=_FONT_SIZE + 1, loc="left")
    axes.tick_params(labelsize=_FONT_SIZE - 1)
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(axes: Axes, **kwargs):
    """A legend without a frame."""
    axes.legend(frameon=False, fontsize=_FONT_SIZE - 1, **kwargs)
