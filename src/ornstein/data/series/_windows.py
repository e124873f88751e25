"""Sequences again from later starts: more of them to learn from."""

from collections.abc import Sequence

import numpy as np

from .._error import DataError
from .._series import Series


def windows(series: Series, starts: Sequence[int]) -> Series:
    """Each series again from each of some of its points, all of the same length.

    For a law of motion that does not depend on when it is watched: a model that begins
    at a series' first point then sees it begin everywhere. Times count from where the
    first series of the same row began; after a series' end come times at which nothing
    is observed: see `Series.padded`.

    Args:
        series: rows of them.
        starts: numbers of points, counted from 0 (which gives the series itself).

    Returns:
        All rows from the first start, then all from the second, and so on; without
        those that have no observed value from there on.

    Raises:
        DataError: for no starts, one that leaves fewer than two points, or one after
            which no series has an observed value.
    """
    last = series.num_times - 2
    if not starts or not all(0 <= start <= last for start in starts):
        raise DataError(
            f"`windows` got the starts {list(starts)} for series of "
            f"{series.num_times} points: give one or more from 0 to {last}."
        )
    return Series.padded([_from(series, start) for start in starts])


def _from(series: Series, start: int) -> Series:
    mask = np.asarray(series.mask)[:, start:]
    kept = mask.any(axis=(1, 2))
    if not kept.any():
        raise DataError(
            f"No series has an observed value from point {start} on: give earlier "
            "starts."
        )
    ts, values = np.asarray(series.ts)[kept], np.asarray(series.values)[kept]
    later = ts[:, start:] - ts[:, start : start + 1] + ts[:, :1]
    return Series(later, values[:, start:], mask[kept])
