"""Examples and their targets, in memory."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree, Shaped

from ._error import DataError


class Split(eqx.Module):
    """Examples in memory, rows first.

    Attributes:
        x: inputs, float32: (rows, features) or (rows, height, width, channels); or a
            `Series` of what is known of each sequence; or a dictionary of arrays, for
            a network that takes one.
        y: targets: int32 class numbers (rows,), or float32 (rows, outputs); or a
            `Series` with the times of `x`, of what is asked: often `x` itself.
    """

    x: PyTree[Shaped[Array | np.ndarray, "..."]]
    y: PyTree[Shaped[Array | np.ndarray, "..."]]

    def __check_init__(self):
        x_rows, y_rows = _num_rows("x", self.x), _num_rows("y", self.y)
        if x_rows != y_rows:
            raise DataError(
                f"x has {x_rows} rows and y has {y_rows}: give one target for each "
                "example."
            )

    def __len__(self) -> int:
        return jax.tree.leaves(self.x)[0].shape[0]

    def rows(self, indices: np.ndarray) -> "Split":
        """The examples with these row numbers, in their order."""
        return Split(*jax.tree.map(lambda a: a[indices], (self.x, self.y)))

    def in_memory(self) -> "Split":
        """Itself; what `Streamed` has of its rows in memory is a sample of them."""
        return self


def _num_rows(name: str, tree: Any) -> int:
    leaves = jax.tree.leaves(tree)
    if not leaves or not all(getattr(leaf, "shape", ()) for leaf in leaves):
        raise DataError(
            f"{name} must be arrays with rows first, got {type(tree).__name__}: write "
            f"np.asarray({name}, np.float32)."
        )
    rows = {leaf.shape[0] for leaf in leaves}
    if len(rows) > 1:
        raise DataError(
            f"The arrays of {name} have {sorted(rows)} rows: give one for each example."
        )
    return rows.pop()
