"""Where a latent path begins under the prior: p(z₀)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._types import Array, ArrayLike, Float
from ._diffusion import check_scale


class LatentStart(eqx.Module):
    """p(z₀) = N(mean, scale²), each dimension for itself.

    Args:
        size: of z.
        mean: one number, or one for each dimension.
        scale: standard deviations; one number, or one for each dimension.
        is_learned: train the mean and the logarithm of the scale.
    """

    mean: Float[Array, " latent"]
    log_scale: Float[Array, " latent"]
    is_learned: bool = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        *,
        mean: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        is_learned: bool = False,
    ):
        check_scale("scale", scale)
        dtype = jnp.result_type(float)
        self.mean = jnp.array(jnp.broadcast_to(jnp.asarray(mean, dtype), (size,)))
        log_scale = jnp.log(jnp.asarray(scale, dtype))
        self.log_scale = jnp.array(jnp.broadcast_to(log_scale, (size,)))
        self.is_learned = is_learned

    @property
    def scale(self) -> Float[Array, " latent"]:
        """Standard deviations."""
        return jnp.exp(self.log_scale)

    @property
    def root_mean_square(self) -> float:
        """Of z₀ under the prior, over all dimensions."""
        squares = np.asarray(self.mean**2 + self.scale**2, np.float64)
        return float(np.sqrt(np.mean(squares)))
