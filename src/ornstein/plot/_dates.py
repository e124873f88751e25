"""Axes of dates."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from .._types import Shaped

_MOST_TICKS = 6


def are_dates(values: Shaped[np.ndarray, "..."]) -> bool:
    """Whether these are `datetime64`, and no numbers."""
    return np.issubdtype(values.dtype, np.datetime64)


def show_dates(axes: Axes) -> None:
    """Few ticks below, each as short as its neighbours let it be; the year once.

    Args:
        axes: on which something was drawn against dates.
    """
    locator = AutoDateLocator(minticks=3, maxticks=_MOST_TICKS)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    size = axes.xaxis.get_ticklabels()[0].get_fontsize()
    axes.xaxis.get_offset_text().set_fontsize(size)
