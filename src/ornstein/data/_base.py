"""What a data set is: splits of arrays, and what is known about them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from ._clock import Clock
from ._error import DataError
from ._hold_out import hold_out
from ._series import Series

_BLOCK = 1024  # rows that are in double precision at once


class Split(eqx.Module):
    """Examples in memory, rows first.

    Attributes:
        x: inputs, float32: (rows, features) or (rows, height, width, channels); or a
            `Series` of what is known of each sequence.
        y: targets: int32 class numbers (rows,), or float32 (rows, outputs); or a
            `Series` with the times of `x`, of what is asked: often `x` itself.
    """

    x: PyTree[Shaped[Array | np.ndarray, "..."]]
    y: PyTree[Shaped[Array | np.ndarray, "..."]]

    def __check_init__(self):
        if self.x.shape[0] != self.y.shape[0]:
            raise DataError(
                f"x has {self.x.shape[0]} rows and y has {self.y.shape[0]}: give one "
                "target for each example."
            )

    def __len__(self) -> int:
        return self.x.shape[0]

    def rows(self, indices: np.ndarray) -> "Split":
        """The examples with these row numbers, in their order."""
        return Split(self.x[indices], self.y[indices])


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
        with np.errstate(over="ignore"):  # infinite then, which `check_standard` finds
            centred = np.subtract(raw, self.mean, dtype=dtype)
            np.divide(centred, self.scale, out=centred, casting="same_kind")
            return centred.astype(np.float32, copy=False)

    def undo(self, standard: np.ndarray) -> np.ndarray:
        """Standard units to raw units."""
        return standard * self.scale + self.mean


class Data(eqx.Module):
    """A data set, split and standardised.

    Attributes:
        name: as `load` takes it.
        task: `"classification"`, `"regression"` or `"series"`.
        train: training rows (what is left of them after `validation`).
        validation: held out of training for choosing, or `None`.
        test: rows for the final judgement.
        num_classes: classes, or `None` where there are none.
        class_names: their names in the order of their numbers; empty where there are no
            classes.
        x_scaling: what was done to the inputs.
        y_scaling: what was done to the targets, or `None`.
        feature_names: the columns of `x`, where the source names them.
        target_names: the columns of `y`, where the source names them.
        notes: sentences to print beside any figure that comes from these data.
        clock: how the times of the user's own sequences became `Series.ts`, or `None`.
    """

    name: str
    task: str
    train: Split
    test: Split
    validation: Split | None = None
    num_classes: int | None = None
    class_names: Sequence[str] = ()
    x_scaling: Standardisation | None = None
    y_scaling: Standardisation | None = None
    feature_names: Sequence[str] = ()
    target_names: Sequence[str] = ()
    notes: Sequence[str] = ()
    clock: Clock | None = None

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one input; of a series, times and features."""
        return self.train.x.shape[1:]

    @property
    def num_outputs(self) -> int:
        """The size of a likelihood's location: classes, columns, or features."""
        if self.num_classes is not None:
            return self.num_classes
        shape = self.train.y.shape
        return 1 if len(shape) == 1 else shape[-1]

    def with_validation(self, fraction: float = 0.1, *, seed: int = 0) -> "Data":
        """Hold a part of the training rows out, and standardise by the others alone.

        Args:
            fraction: of the training rows, between 0 and 1; the same of each class.
            seed: decides which rows.

        Returns:
            Data whose `train` has lost the rows of `validation`. A fitted scaling is
            fitted again, and the test rows follow it.

        Raises:
            DataError: for a fraction that cannot be, or a class too small to split.
        """
        if self.validation is not None:
            raise DataError(
                f"{self.name} has {len(self.validation)} validation rows already: "
                "hold rows out of the data as they were loaded."
            )
        labels = None if self.num_classes is None else self.train.y
        kept, held = hold_out(
            len(self.train),
            fraction,
            seed=seed,
            labels=labels,
            class_names=self.class_names,
        )
        parts = [self.train.rows(kept), self.train.rows(held), self.test]
        x_scaling, y_scaling = self.x_scaling, self.y_scaling
        if x_scaling is not None and x_scaling.axes is not None:
            second = Standardisation.fit(parts[0].x, x_scaling.axes)
            x_scaling = x_scaling.then(second)
            parts = [Split(second.apply(part.x), part.y) for part in parts]
        if y_scaling is not None and y_scaling.axes is not None:
            second = Standardisation.fit(parts[0].y, y_scaling.axes)
            y_scaling = y_scaling.then(second)
            parts = [Split(part.x, second.apply(part.y)) for part in parts]
        train, validation, test = parts
        return dataclasses.replace(
            self,
            train=train,
            validation=validation,
            test=test,
            x_scaling=x_scaling,
            y_scaling=y_scaling,
        )
