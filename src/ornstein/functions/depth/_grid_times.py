"""Times of a solve among those of a grid."""

import numpy as np

from ..._types import ArrayLike, Float

_SHARE_OF_STEP = 1e-3
"""How far from a time of the grid is still that time, in the grid's shortest step."""
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
_SAME_DEPTH = 5e-8
"""Depths that are this near are one: single precision moves them by 3e-8."""


def places_among(
    grid: Float[np.ndarray, " grid"], times: Float[np.ndarray, " times"]
) -> np.ndarray | None:
    """Where increasing times are in a grid, each at another; `None` if one is not.

    Args:
        grid: its times, of which there are two at least.
        times: to look for.
    """
    step = float(np.diff(grid).min())
    tolerance = _SHARE_OF_STEP * step + _ROUNDING * float(np.abs(grid).max())
    tolerance = min(tolerance, step / 4)  # far from 0, half steps are not whole ones
    after = np.clip(np.searchsorted(grid, times), 1, len(grid) - 1)
    places = after - (times - grid[after - 1] < grid[after] - times)
    is_there = np.abs(grid[places] - times).max() <= tolerance
    return places if is_there and np.all(np.diff(places) > 0) else None


def fitting_steps(
    grid: Float[np.ndarray, " grid"], window: tuple[float, float]
) -> list[float]:
    """Steps of one length that go through times of a grid alone, the shortest first.

    Args:
        grid: its times.
        window: two times that must be between steps.
    """
    begin, end = float(grid[0]), float(grid[-1])
    steps = []
    for number in range(len(grid) - 1, 0, -1):
        even = np.linspace(begin, end, number + 1)
        has_window = places_among(even, np.asarray(window)) is not None
        if has_window and places_among(grid, even) is not None:
            steps.append((end - begin) / number)
    return steps


def depths_by_window(
    ts: Float[ArrayLike, " times"], window: tuple[float, float]
) -> Float[np.ndarray, " times"]:
    """Depths in double precision; those at an end of a window are that end exactly.

    Args:
        ts: the depths.
        window: two depths.
    """
    depths = np.round(np.asarray(ts, np.float64), 9)
    for end in np.round(window, 9):
        depths[np.abs(depths - end) < _SAME_DEPTH] = end
    return depths
