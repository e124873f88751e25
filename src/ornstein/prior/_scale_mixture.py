"""Two normals of different widths: the prior of Bayes by Backprop."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PRNGKeyArray
from ._base import AbstractLeafPrior, check_scale

_LARGEST = float(jnp.finfo(jnp.float32).max)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class ScaleMixturePrior(AbstractLeafPrior):
    r"""$p(w) = \pi N(w; 0, \sigma_1^2) + (1 - \pi) N(w; 0, \sigma_2^2)$.

    One wide and one narrow normal, shared by all weights: most are drawn to zero, some
    are free.

    Args:
        mixture: $\pi$, above 0 and below 1.
        wide_scale: $\sigma_1$.
        narrow_scale: $\sigma_2$, below $\sigma_1$.

    References:
        Blundell et al. (2015), "Weight Uncertainty in Neural Networks", equation (7).
    """

    mixture: float = eqx.field(static=True)
    wide_scale: float = eqx.field(static=True)
    narrow_scale: float = eqx.field(static=True)

    is_one_law: ClassVar[bool] = True

    def __init__(
        self,
        mixture: float = 0.5,
        *,
        wide_scale: float = 1.0,
        narrow_scale: float = math.exp(-6.0),
    ):
        self.mixture = mixture
        self.wide_scale = wide_scale
        self.narrow_scale = narrow_scale

    def __check_init__(self):
        if not 0 < self.mixture < 1:
            raise ValueError(
                f"`mixture` is the weight of the wide normal, above 0 and below 1, got "
                f"{self.mixture}: use `GaussianPrior` for one normal."
            )
        check_scale("wide_scale", self.wide_scale)
        check_scale("narrow_scale", self.narrow_scale)
        if self.narrow_scale >= self.wide_scale:
            raise ValueError(
                f"`narrow_scale` ({self.narrow_scale}) must be below `wide_scale` "
                f"({self.wide_scale}): swap them, or use `GaussianPrior`."
            )
        if not (self._odds <= _LARGEST and self.narrow_scale >= _LARGEST**-0.5):
            raise ValueError(
                f"`narrow_scale` is {self.narrow_scale}, whose density at 0 overflows "
                f"beside that of `wide_scale`, {self.wide_scale}: take one such as "
                "0.0025."
            )

    @property
    def _odds(self) -> float:
        """Of the narrow normal, at 0."""
        return (1.0 - self.mixture) / self.mixture * self.wide_scale / self.narrow_scale

    def leaf_log_prob(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        # The wide normal's, plus log1p of the narrow one's share. It cannot overflow,
        # because the narrow one is nowhere above its share at 0, and costs half of
        # `logaddexp`.
        wide = -0.5 * (value / self.wide_scale) ** 2 - _HALF_LOG_TWO_PI
        wide += math.log(self.mixture / self.wide_scale)
        curvature = self.narrow_scale**-2 - self.wide_scale**-2
        return wide + jnp.log1p(self._odds * jnp.exp(-0.5 * curvature * value**2))

    def leaf_sample(
        self, like: Float[Array, "*shape"], *, key: PRNGKeyArray
    ) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        which_key, normal_key = jax.random.split(key)
        is_wide = jax.random.bernoulli(which_key, self.mixture, like.shape)
        z = jax.random.normal(normal_key, like.shape, like.dtype)
        return jnp.where(is_wide, self.wide_scale * z, self.narrow_scale * z)

    def leaf_cross_entropy(
        self, mean: Float[Array, "*shape"], scale: Float[Array, "*shape"]
    ) -> None:
        """The logarithm of a sum has no closed expectation."""
        del mean, scale

    def leaf_check(self, shape: tuple[int, ...], name: str) -> None:
        """Any shape."""
        del shape, name
