"""Root mean squared error."""

import jax.numpy as jnp

from .._tree import in_single
from .._types import Array, Float
from ._arrays import AnyArray, check_like


def rmse(
    mean: Float[AnyArray, "rows *outputs"], y: Float[AnyArray, "rows *outputs"]
) -> Float[Array, ""]:
    """Root of the mean squared error over rows and columns, in units of the targets.

    Args:
        mean: predictive means, or other single guesses.
        y: targets, of the same shape.

    Raises:
        ValueError: for another shape.
    """
    check_like(y, mean=mean)
    return jnp.sqrt(jnp.mean((in_single(mean) - in_single(y)) ** 2))
