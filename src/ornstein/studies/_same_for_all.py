"""A decoder of one latent number, which all features observe."""

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, Float


class SameForAll(eqx.Module):
    """A decoder: every feature is the one latent number.

    Attributes:
        num_features: how many.
    """

    num_features: int = eqx.field(static=True)

    def __call__(self, z: Float[Array, "*lead 1"]) -> Float[Array, "*lead features"]:
        """Repeat it."""
        return jnp.repeat(z, self.num_features, axis=-1)
