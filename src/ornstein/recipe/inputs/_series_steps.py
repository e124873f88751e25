"""Times between those of a file, where a model would step further than it learned to.

A `Grid` cuts each interval into the same number of steps, however long it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._types import Bool, Float
from ...data import DataError, LongTable, later_times

_MOST = 100_000
"""Times that are added, with what the other series are then padded by."""


class SteppedTable(NamedTuple):
    """A long table with times of ours among its own.

    Attributes:
        table: on the model's time; NaN where a time is not the file's.
        is_own: which times are in the file.
    """

    table: LongTable
    is_own: Bool[np.ndarray, "rows times"]


def with_steps(
    table: LongTable,
    path: Path,
    *,
    longest: float | None,
    num_kept: int = 1,
    also: Sequence[float] = (),
) -> SteppedTable:
    """Add times, so that none is further from the one before than a model learned.

    Args:
        table: on the model's time.
        path: of its file, for messages.
        longest: the model's longest gap; `None` where it is not known.
        num_kept: first times of each series between which none is added.
        also: times that every series gets, but after its last, or where it has them.

    Raises:
        DataError: if there would be too many, or they are one in single precision.
    """
    rows = [own[:n] for own, n in zip(table.ts, table.lengths, strict=True)]
    missing = lambda own, t: t < own[-1] and not is_near(own, t, longest).any()
    nodes = [np.union1d(own, [t for t in also if missing(own, t)]) for own in rows]
    gaps = [np.diff(node) for node in nodes]
    furthest = np.inf if longest is None else longest
    counts = [np.maximum(np.ceil(gap / furthest - 1e-3), 1) for gap in gaps]
    for count in counts:
        count[: num_kept - 1] = 1
    num_times = 1 + max(count.sum() for count in counts)
    if len(rows) * (num_times - table.ts.shape[1]) > _MOST:
        largest = max(gap.max() for gap in gaps) / furthest
        raise DataError(
            f"{path}: its times are up to {largest:.3g} times as far apart as those "
            f"that the model learned from, which takes more than {_MOST:,} times "
            "between them: ask for nearer times, or for fewer series at once."
        )
    shape = (len(rows), int(num_times))
    ts, is_own = np.empty(shape), np.zeros(shape, bool)
    for row, (own, node, count) in enumerate(zip(rows, nodes, counts, strict=True)):
        each = zip(node[:-1], node[1:], count.astype(int), strict=True)
        pieces = [np.linspace(a, b, n, endpoint=False) for a, b, n in each]
        filled = np.concatenate([*pieces, node[-1:]])
        ts[row, : len(filled)] = filled
        ts[row, len(filled) :] = later_times(filled, shape[1] - len(filled))
        is_own[row, : len(filled)] = np.isin(filled, own)
    if (np.diff(ts.astype(np.float32), axis=1) <= 0).any():
        raise DataError(
            f"{path}: some times are one number in single precision, as the model "
            "counts time: they are too far from those that it learned from, or too "
            "close to each other; check their unit, or ask for others."
        )
    values = np.full((*shape, table.values.shape[-1]), np.nan)
    values[is_own] = table.values[table.is_own]
    return SteppedTable(table._replace(ts=ts, values=values), is_own)


def is_near(
    ts: Float[np.ndarray, "*shape"], time: float, longest: float | None
) -> Bool[np.ndarray, "*shape"]:
    """Whether the model's times are one of them, but for rounding.

    Args:
        ts: times.
        time: that one.
        longest: the model's longest gap, if it is known.
    """
    apart = 1e-3 if longest is None else min(1e-3, 1e-2 * longest)
    return np.abs(np.asarray(ts, np.float64) - time) <= apart + 1e-6 * abs(time)
