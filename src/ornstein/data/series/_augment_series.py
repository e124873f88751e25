"""Random changes to a batch of series that keep their law."""

import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, ArrayLike, Float, PRNGKeyArray
from .._error import DataError
from .._series import Series


class ObservationNoise:
    """Add independent noise to what a recognition network is given.

    The targets stay as they are. A network that has few series to learn from otherwise
    reads the rounding of each frame; this is its weight decay (Bishop, 1995, "Training
    with Noise is Equivalent to Tikhonov Regularization").

    Args:
        scale: standard deviation, in units of the values; for all features or for each.
    """

    scale: Float[Array, "..."]

    def __init__(self, scale: Float[ArrayLike, "..."]):
        self.scale = jnp.asarray(scale, jnp.result_type(float))
        if not jnp.all(self.scale >= 0):
            raise DataError(
                f"`scale` must not be negative, got {scale}: 0 adds no noise."
            )

    def __call__(self, x: Series, *, key: PRNGKeyArray) -> Series:
        """Add it to each value of each series.

        Args:
            x: the series.
            key: randomness.
        """
        values = jnp.asarray(x.values)
        scale = jnp.broadcast_to(self.scale, values.shape).astype(values.dtype)
        noise = scale * jr.normal(key, values.shape, values.dtype)
        return Series(x.ts, jnp.where(x.mask, values + noise, values), x.mask)
