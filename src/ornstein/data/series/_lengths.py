"""Sequences again, cut short: the near future before the far one."""

from collections.abc import Sequence

import numpy as np

from .._error import DataError
from .._series import Series


def of_lengths(series: Series, lengths: Sequence[int]) -> Series:
    """Each series again, observed only up to each of some numbers of its points.

    A long path whose end is wrong says little of how its beginning should change. With
    shorter ones beside it a point counts the more, the nearer it is: a curriculum that
    needs no stages. Times stay.

    Args:
        series: rows of them.
        lengths: numbers of points.

    Returns:
        All rows at the first length, then all at the second, and so on; without those
        of which nothing is observed.

    Raises:
        DataError: for no lengths, one that is not among the series' points, or lengths
            within which nothing is observed.
    """
    points = series.num_times
    if not lengths or not all(1 <= length <= points for length in lengths):
        raise DataError(
            f"`of_lengths` got the lengths {list(lengths)} for series of {points} "
            f"points: give one or more whole numbers from 1 to {points}."
        )
    mask = np.concatenate(
        [np.asarray(series.mask) & _is_within(length, points) for length in lengths]
    )
    ts, values = (
        np.concatenate([np.asarray(leaf)] * len(lengths))
        for leaf in (series.ts, series.values)
    )
    kept = mask.any(axis=(1, 2))
    if not kept.any():
        raise DataError(
            f"No series has an observed value among its first {max(lengths)} points: "
            "give greater lengths."
        )
    return Series(ts[kept], values[kept], mask[kept])


def _is_within(length: int, points: int) -> np.ndarray:
    return (np.arange(points) < length)[:, None]
