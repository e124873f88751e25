"""Mean and spread of rows that are met once, in parts.

Of parts with counts $n_a, n_b$, means $m_a, m_b$ and sums of squares about them $S_a,
S_b$, with $d = m_b - m_a$ and $n = n_a + n_b$: $m = m_a + d n_b / n$ and $S = S_a + S_b
+ d^2 n_a n_b / n$ (Chan, Golub & LeVeque, 1983, "Algorithms for Computing the Sample
Variance", eq. 2.1). Squares are about means from the start, so that none cancel.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from .._standardise import Standardisation

_VALUES = 2**20  # that are in double precision at once


class Moments(NamedTuple):
    """What some values say of their mean and spread.

    Attributes:
        count: how many there were.
        mean: of them; 0 of none.
        squares: the sum of squares about it.
        lowest: of them; infinite of none.
        highest: of them; minus infinite of none.
    """

    count: Float[np.ndarray, "*features"]
    mean: Float[np.ndarray, "*features"]
    squares: Float[np.ndarray, "*features"]
    lowest: Float[np.ndarray, "*features"]
    highest: Float[np.ndarray, "*features"]

    @classmethod
    def none(cls, shape: tuple[int, ...] = ()) -> "Moments":
        """Of no values."""
        zero, inf = np.zeros(shape), np.full(shape, np.inf)
        return cls(zero, zero, zero, inf, -inf)

    @classmethod
    def of(
        cls, values: Shaped[np.ndarray, "rows *rest"], axes: tuple[int, ...] = (0,)
    ) -> "Moments":
        """Of all values along some axes, rows among them; NaN counts as none.

        Args:
            values: numbers.
            axes: that share one mean.
        """
        shape = tuple(n for axis, n in enumerate(values.shape) if axis not in axes)
        found = cls.none(shape)
        num_rows = max(1, _VALUES // max(1, math.prod(values.shape[1:])))
        for begin in range(0, len(values), num_rows):
            block = values[begin : begin + num_rows].astype(np.float64)
            found = found.with_more(_moments(block, axes))
        return found

    @classmethod
    def repeated(cls, value: float, count: int) -> "Moments":
        """Of one value, met several times."""
        if count == 0:
            return cls.none()
        each = np.asarray(value, np.float64)
        zero = np.zeros(())
        return cls(np.asarray(count, np.float64), each, zero, each, each)

    def with_more(self, other: "Moments") -> "Moments":
        """Of the values of both.

        Args:
            other: of other values.
        """
        count = self.count + other.count
        part = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = other.mean - self.mean
            mean = self.mean + apart * part
            between = np.square(apart) * self.count * part
            squares = self.squares + other.squares + between
        lowest = np.minimum(self.lowest, other.lowest)
        highest = np.maximum(self.highest, other.highest)
        return Moments(count, mean, squares, lowest, highest)

    @property
    def scale(self) -> Float[np.ndarray, "*features"]:
        """The standard deviation; 1 of what is constant."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            spread = np.sqrt(self.squares / self.count)
        return np.where(self.lowest == self.highest, 1.0, spread)

    def scaling(self, axes: tuple[int, ...] = (0,)) -> Standardisation:
        """To mean 0 and standard deviation 1.

        Args:
            axes: of the rows that shared a mean, rows' own among them.
        """
        kept = tuple(axis - 1 for axis in axes if axis > 0)
        mean, scale = (np.expand_dims(a, kept) for a in (self.mean, self.scale))
        return Standardisation(mean, scale, axes)


def _moments(values: Float[np.ndarray, "rows *rest"], axes: tuple[int, ...]) -> Moments:
    is_given = ~np.isnan(values)
    is_whole = bool(is_given.all())
    total = lambda a: np.sum(a if is_whole else np.where(is_given, a, 0.0), axes)
    count = np.asarray(np.sum(is_given, axes, np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.divide(
            total(values), count, out=np.zeros(count.shape), where=count > 0
        )
        about = values - np.expand_dims(mean, axes)
        squares = total(np.square(about))
    lowest = np.min(values, axes, initial=np.inf, where=is_given)
    highest = np.max(values, axes, initial=-np.inf, where=is_given)
    return Moments(count, mean, squares, lowest, highest)
