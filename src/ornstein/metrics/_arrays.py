"""The arrays that metrics take, and that those of one call belong together."""

from typing import TypeAlias

import jax.numpy as jnp
import numpy as np

from .._types import Array

AnyArray: TypeAlias = Array | np.ndarray
"""Of JAX or NumPy: inside a compiled step or after it."""


def check_like(y: AnyArray, **others: AnyArray) -> None:
    """Refuse what NumPy would make a table of: a column beside a vector.

    Args:
        y: targets.
        others: by name, each one number or of the targets' shape.

    Raises:
        ValueError: says the shapes.
    """
    for name, other in others.items():
        if jnp.ndim(other) and jnp.shape(other) != jnp.shape(y):
            raise ValueError(
                f"`{name}` has shape {jnp.shape(other)} and `y` {jnp.shape(y)}: give "
                f"both the same, such as `y.reshape({name}.shape)`."
            )
