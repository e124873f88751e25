"""The double-exponential prior."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import erf

from .._types import Array, ArrayLike, Float, PRNGKeyArray
from ._base import AbstractLeafPrior, check_scale, check_shape


class LaplacePrior(AbstractLeafPrior):
    r"""$p(w) = \tfrac{1}{2b} e^{-|w| / b}$, each entry by itself.

    Args:
        scale: $b$; one number, or an array of the leaf's shape.
    """

    scale: Float[Array, "..."]

    is_one_law: ClassVar[bool] = True

    def __init__(self, scale: ArrayLike = 1.0):
        check_scale("scale", scale)
        self.scale = jnp.asarray(scale, dtype=float)

    def leaf_log_prob(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        b = self._like(value)
        return -jnp.abs(value) / b - jnp.log(2.0 * b)

    def leaf_sample(
        self, like: Float[Array, "*shape"], *, key: PRNGKeyArray
    ) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        return self._like(like) * jax.random.laplace(key, like.shape, like.dtype)

    def leaf_cross_entropy(
        self, mean: Float[Array, "*shape"], scale: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"]:
        r"""$E|w| / b + \log 2b$, with the mean of a folded normal for $E|w|$."""
        b = self._like(mean)
        z = mean / scale
        folded = scale * math.sqrt(2.0 / math.pi) * jnp.exp(-0.5 * z**2)
        folded += mean * erf(z / math.sqrt(2.0))
        return folded / b + jnp.log(2.0 * b)

    def leaf_check(self, shape: tuple[int, ...], name: str) -> None:
        """See `AbstractLeafPrior`."""
        check_shape(self.scale.shape, shape, name)

    def _like(self, leaf):
        return jnp.broadcast_to(self.scale, leaf.shape).astype(leaf.dtype)
