"""The normal prior."""

import math
from typing import ClassVar

import jax.numpy as jnp

from .._normals import standard_normal
from .._types import Array, ArrayLike, Float, PRNGKeyArray
from ._base import AbstractLeafPrior, check_scale, check_shape

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class GaussianPrior(AbstractLeafPrior):
    r"""$w \sim N(\mathrm{mean}, \mathrm{scale}^2)$, each entry by itself.

    Args:
        scale: standard deviation; one number, or an array of the leaf's shape.
        mean: of each entry; one number, or an array of the leaf's shape.
    """

    scale: Float[Array, "..."]
    mean: Float[Array, "..."]

    is_one_law: ClassVar[bool] = True

    def __init__(self, scale: ArrayLike = 1.0, *, mean: ArrayLike = 0.0):
        check_scale("scale", scale)
        self.scale = jnp.asarray(scale, dtype=float)
        self.mean = jnp.asarray(mean, dtype=float)

    def leaf_log_prob(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        mean, scale = self._like(value)
        z = (value - mean) * (1.0 / scale)  # one division, where the scale is one
        return -0.5 * z**2 - jnp.log(scale) - _HALF_LOG_TWO_PI

    def leaf_sample(
        self, like: Float[Array, "*shape"], *, key: PRNGKeyArray
    ) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        mean, scale = self._like(like)
        noise = standard_normal(key, like.shape, like.dtype, is_broadcast=True)
        return mean + scale * noise

    def leaf_cross_entropy(
        self, mean: Float[Array, "*shape"], scale: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        prior_mean, prior_scale = self._like(mean)
        square = (mean - prior_mean) ** 2 + scale**2
        return 0.5 * square / prior_scale**2 + jnp.log(prior_scale) + _HALF_LOG_TWO_PI

    def leaf_check(self, shape: tuple[int, ...], name: str) -> None:
        """See `AbstractLeafPrior`."""
        check_shape(self.scale.shape, shape, name)
        check_shape(self.mean.shape, shape, name)

    def _like(self, leaf):
        """Mean and scale in a leaf's type; single numbers stay single."""
        return self.mean.astype(leaf.dtype), self.scale.astype(leaf.dtype)
