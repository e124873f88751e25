"""Sequences again, faster and slower: more of them to learn from."""

from collections.abc import Sequence

import numpy as np

from ..._types import Bool, Float
from .._error import DataError
from .._series import Series


def at_tempos(series: Series, tempos: Sequence[float]) -> Series:
    """Each series again at each of some tempos, at the times that it has.

    For motions that are also made faster or slower than in the few that were recorded.
    Values are interpolated linearly; nothing is observed where a neighbour was not, nor
    after the series' end, which a faster one reaches sooner.

    Args:
        series: rows of them.
        tempos: positive; 1 gives the series itself, 2 one that is twice as fast.

    Returns:
        All rows at the first tempo, then all at the second, and so on; without those
        of which nothing is observed.

    Raises:
        DataError: for no tempos, one that is not positive, or series that lose all.
    """
    if not tempos or not all(np.isfinite(tempo) and tempo > 0 for tempo in tempos):
        raise DataError(
            f"`at_tempos` got the tempos {list(tempos)}: give one or more positive "
            "numbers, such as 0.9, 1 and 1.1."
        )
    parts = [_at(series, tempo) for tempo in tempos]
    ts, values, mask = (
        np.concatenate([np.asarray(getattr(part, name)) for part in parts])
        for name in ("ts", "values", "mask")
    )
    kept = mask.any(axis=(1, 2))
    if not kept.any():
        raise DataError(
            "Nothing would be observed at these tempos, between whose times values are "
            "missing: give tempos nearer 1, or fill the gaps first."
        )
    return Series(ts[kept], values[kept], mask[kept])


def _at(series: Series, tempo: float) -> Series:
    if tempo == 1:
        return series
    rows = [
        _played(*row, tempo)
        for row in zip(
            np.asarray(series.ts),
            np.asarray(series.values),
            np.asarray(series.mask),
            strict=True,
        )
    ]
    values, mask = (np.stack(leaves) for leaves in zip(*rows, strict=True))
    return Series(series.ts, values, mask)


def _played(
    ts: Float[np.ndarray, " times"],
    values: Float[np.ndarray, "times features"],
    mask: Bool[np.ndarray, "times features"],
    tempo: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Values of one series, and where they are observed."""
    asked = ts[0] + tempo * (ts.astype(np.float64) - ts[0])
    before = np.clip(np.searchsorted(ts, asked, side="right") - 1, 0, len(ts) - 2)
    gap = (asked - ts[before]) / (ts[before + 1] - ts[before])
    share = gap[:, None]
    values = np.where(mask, values, 0)  # NaN there would spread
    found = (1 - share) * values[before] + share * values[before + 1]
    # A time of the series itself needs no neighbour.
    is_known = (mask[before] | (share == 1)) & (mask[before + 1] | (share == 0))
    is_known &= (asked <= ts[-1])[:, None]
    return np.where(is_known, found, 0).astype(values.dtype), is_known
