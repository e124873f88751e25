"""Standard units and raw ones: what training rows say a unit is."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float, PyTree, Shaped

from ._error import DataError
from ._series import Series

_BLOCK = 1024  # rows that are in double precision at once


class Standardisation(eqx.Module):
    """`(raw - mean) / scale`, fitted on training rows only.

    Attributes:
        mean: broadcasts against one example.
        scale: broadcasts against one example; positive (1 where a feature is
            constant).
        axes: the axes of the training array, rows among them, that share one mean
            and scale: (0,) for columns, (0, 1, 2) for the channels of images. `None`
            where mean and scale were given rather than fitted.
    """

    mean: np.ndarray
    scale: np.ndarray
    axes: tuple[int, ...] | None = None

    @classmethod
    def fit(
        cls, raw: Shaped[np.ndarray, "rows ..."] | Series, axes: tuple[int, ...] = (0,)
    ) -> "Standardisation":
        """Mean 0 and standard deviation 1 over `axes` of the training rows `raw`.

        Of a `Series`, over what was observed of each feature.
        """
        if isinstance(raw, Series):
            return cls.fit_observed(np.where(raw.mask, raw.values, np.nan))
        blocks = [raw[i : i + _BLOCK] for i in range(0, len(raw), _BLOCK)]
        count = np.prod([raw.shape[axis] for axis in axes])

        def total(of):
            sums = [np.sum(of(b), axes, np.float64, keepdims=True) for b in blocks]
            return np.sum(sums, axis=0)

        # Twice over the data: squares about the mean do not cancel as raw ones do.
        # Numbers whose squares overflow leave a scale that `is_possible` tells of.
        with np.errstate(over="ignore", invalid="ignore"):
            mean = total(lambda block: block) / count
            variance = total(lambda block: np.square(block - mean)) / count
        constant = raw.max(axes, keepdims=True) == raw.min(axes, keepdims=True)
        scale = np.where(constant, 1.0, np.sqrt(variance))
        return cls(mean[0], scale[0], axes)

    @classmethod
    def fit_observed(
        cls, values: Float[np.ndarray, "rows times features"]
    ) -> "Standardisation":
        """Mean 0 and standard deviation 1 of each feature of sequences.

        Args:
            values: NaN where nothing was observed.

        Raises:
            DataError: for a feature that was never observed.
        """
        axes = (0, 1)
        num_observed = np.sum(~np.isnan(values), axes)
        if not num_observed.all():
            raise DataError(
                f"Feature {np.argmin(num_observed)}, counting from 0, has no observed "
                "value in the training series: leave it out, or hold fewer rows out."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.asarray(np.nanmean(values, axes, np.float64))
            variance = np.nanmean(np.square(values - mean), axes, np.float64)
        constant = np.nanmax(values, axes) == np.nanmin(values, axes)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)), axes)

    @property
    def is_possible(self) -> Bool[np.ndarray, "..."]:
        """Where mean and scale are numbers: squares neither overflowed nor vanished."""
        return np.isfinite(self.mean) & np.isfinite(self.scale) & (self.scale > 0)

    def is_close(self, other: "Standardisation") -> bool:
        """Whether both are one but for rounding."""
        pairs = ((self.mean, other.mean), (self.scale, other.scale))
        close = lambda a, b: a.shape == b.shape and np.allclose(a, b, rtol=1e-6)
        return all(close(np.asarray(a), np.asarray(b)) for a, b in pairs)

    def then(self, second: "Standardisation") -> "Standardisation":
        """`self` and `second` after it, as one."""
        mean = self.mean + self.scale * second.mean
        return Standardisation(mean, self.scale * second.scale, self.axes)

    def apply(self, raw: PyTree[Shaped[np.ndarray, "..."]]) -> Any:
        """Raw units to standard units, float32; of a `Series`, its values."""
        if isinstance(raw, Series):
            values = np.where(raw.mask, self.apply(raw.values), np.float32(0))
            return Series(raw.ts, values, raw.mask)
        # Double precision where there is some to lose: a column of large numbers with
        # a small spread. Pixels have none, and are many.
        dtype = np.float32 if raw.dtype in (np.uint8, np.float32) else np.float64
        scaled = self.apply_in(dtype, raw)
        with np.errstate(over="ignore"):  # infinite then, which `standardised` finds
            return scaled.astype(np.float32, copy=False)

    def apply_in(
        self, dtype: type[np.floating], raw: Shaped[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """Raw units to standard units in one precision: infinite what is beyond it."""
        with np.errstate(over="ignore"):
            centred = np.subtract(raw, self.mean, dtype=dtype)
            np.divide(centred, self.scale, out=centred, casting="same_kind")
            return centred

    def undo(self, standard: np.ndarray) -> np.ndarray:
        """Standard units to raw units."""
        return standard * self.scale + self.mean


def in_standard_units(
    raw: Shaped[np.ndarray, "..."], scaling: Standardisation | None
) -> Shaped[np.ndarray, "..."]:
    """Raw numbers as a model takes them.

    Args:
        raw: in raw units.
        scaling: of the data; `None` where they were left as they are.
    """
    return raw if scaling is None else scaling.apply(raw)


def in_raw_units(
    standard: Shaped[np.ndarray, "..."], scaling: Standardisation | None
) -> Shaped[np.ndarray, "..."]:
    """What a model takes, or says, in the units that the data came in.

    Args:
        standard: in standard units.
        scaling: of the data; `None` where they were left as they are.
    """
    return standard if scaling is None else scaling.undo(standard)
