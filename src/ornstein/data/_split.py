"""Examples and their targets, in memory."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, PyTree, Shaped

from ._error import DataError


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

    def in_memory(self) -> "Split":
        """Itself; what `Streamed` has of its rows in memory is a sample of them."""
        return self
