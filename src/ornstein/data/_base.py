"""What a data set is: splits of arrays, and what is known about them."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np


class Split(eqx.Module):
    """Examples in memory, rows first.

    Attributes:
        x: inputs, float32: (rows, features) or (rows, height, width, channels).
        y: targets: int32 class numbers (rows,), or float32 (rows, outputs).
    """

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return self.x.shape[0]


class Standardisation(eqx.Module):
    """`(raw - mean) / scale`, fitted on training rows only.

    Attributes:
        mean: broadcasts against one example.
        scale: likewise; positive (1 where a feature is constant).
    """

    mean: np.ndarray
    scale: np.ndarray

    def apply(self, raw: np.ndarray) -> np.ndarray:
        """Raw units to standard units, float32."""
        return ((raw - self.mean) / self.scale).astype(np.float32)

    def undo(self, standard: np.ndarray) -> np.ndarray:
        """Standard units to raw units."""
        return standard * self.scale + self.mean


class Data(eqx.Module):
    """A data set, split and standardised.

    Attributes:
        name: as `load` takes it.
        task: `"classification"` or `"regression"`.
        train: training rows (what is left of them after `validation`).
        validation: held out of training for choosing, or `None`.
        test: rows for the final judgement.
        num_classes: classes, or `None` for regression.
        class_names: their names in the order of their numbers; empty for regression.
        x_scaling: what was done to the inputs.
        y_scaling: what was done to the targets, or `None`.
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

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.train.x.shape[1:]

    @property
    def num_outputs(self) -> int:
        """How many numbers a likelihood's location needs: classes, or target columns."""
        if self.num_classes is not None:
            return self.num_classes
        return 1 if self.train.y.ndim == 1 else self.train.y.shape[-1]
