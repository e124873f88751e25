"""Axes with round numbers."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..page import Number

_STEPS = (1, 2, 2.5, 5, 10)
_NUM_TICKS = 5
_MINUS = "\N{MINUS SIGN}"


class Axis(NamedTuple):
    """A stretch of numbers.

    Attributes:
        low: where it begins.
        high: where it ends; above `low`.
        label: what it is, with its unit.
        ticks: numbers to write along it; round ones by default.
    """

    low: Number
    high: Number
    label: str
    ticks: tuple[Number, ...] | None = None

    @property
    def marked(self) -> list[float]:
        """The numbers to write."""
        if self.ticks is not None:
            return [float(tick) for tick in self.ticks]
        step = float(_step(self.high - self.low))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [step * i for i in range(first, last + 1)]

    def written(self, value: Number) -> str:
        """A tick's number, with as many digits as all ticks need.

        Args:
            value: one of `marked`.
        """
        marked = sorted(self.marked)
        size = max((abs(v) for v in marked), default=0.0)
        gap = min(np.diff(marked), default=size)
        near = lambda said, v: abs(v - float(said)) < 1e-3 * gap
        if gap >= 1e6 or (0 < size < 1e-4):
            for digits in range(1, 9):
                if all(near(f"{v:.{digits}e}", v) for v in marked):
                    break
            return f"{value:.{digits}e}".replace("-", _MINUS) if value else "0"
        for places in range(12):
            if all(near(round(v, places), v) for v in marked):
                break
        return f"{round(float(value), places) + 0.0:,.{places}f}".replace("-", _MINUS)

    def share(self, values: ArrayLike) -> np.ndarray:
        """Where values lie, from 0 at the beginning to 1 at the end.

        Args:
            values: any; a little beyond the ends is kept, so that clipping hides it.
        """
        shares = (np.asarray(values, np.float64) - self.low) / (self.high - self.low)
        return np.clip(shares, -2, 3)


def axis_of(
    values: Iterable[ArrayLike],
    label: str,
    *,
    low: Number | None = None,
    high: Number | None = None,
) -> Axis:
    """An axis that holds all finite values, from a round number to a round number.

    Args:
        values: arrays.
        label: what they are, with their unit.
        low: where it begins in any case.
        high: where it ends in any case.
    """
    flat = np.concatenate([np.ravel(np.asarray(v, np.float64)) for v in values])
    flat = flat[np.isfinite(flat)]
    least = low if low is not None else (float(flat.min()) if flat.size else 0.0)
    most = high if high is not None else (float(flat.max()) if flat.size else 1.0)
    if most <= least:
        margin = abs(least) * 0.1 or 0.5
        least = least if low is not None else least - margin
        most = most if high is not None else most + margin
        most = max(most, least + margin)
    step = _step(most - least)
    least = least if low is not None else step * math.floor(least / step + 1e-9)
    most = most if high is not None else step * math.ceil(most / step - 1e-9)
    return Axis(least, most, label)


def _step(length: Number) -> float:
    """The round distance of which about five make a length."""
    rough = length / _NUM_TICKS
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(scale * s for s in _STEPS if scale * s >= rough * (1 - 1e-9))
