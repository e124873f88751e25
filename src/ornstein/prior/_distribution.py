"""Any NumPyro distribution as a prior."""

import jax.numpy as jnp
import numpyro.distributions as dist

from .._types import Array, Float, PRNGKeyArray
from ._base import AbstractLeafPrior, check_shape


class DistributionPrior(AbstractLeafPrior):
    """A user's own distribution of real numbers.

    Args:
        distribution: with no event shape; its batch shape is () or the leaf's. Entries
            are independent. Its support must be the whole line.
    """

    distribution: dist.Distribution

    def __check_init__(self):
        if self.distribution.event_shape != ():
            raise ValueError(
                f"A prior takes a distribution of single numbers, got one of event "
                f"shape {self.distribution.event_shape}: leave out `.to_event`, or "
                "give `Normal` and the like."
            )
        if self.distribution.support is not dist.constraints.real:
            raise ValueError(
                f"A weight may be any real number, but "
                f"`{type(self.distribution).__name__}` lives on "
                f"{self.distribution.support}: choose one on the whole line, such as "
                "`StudentT`."
            )

    def leaf_log_prob(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        log_prob = jnp.asarray(self.distribution.log_prob(value))
        return log_prob.astype(value.dtype)

    def leaf_sample(
        self, like: Float[Array, "*shape"], *, key: PRNGKeyArray
    ) -> Float[Array, "*shape"]:
        """See `AbstractLeafPrior`."""
        distribution = self.distribution.expand(like.shape)
        return jnp.asarray(distribution.sample(key)).astype(like.dtype)

    def leaf_cross_entropy(
        self, mean: Float[Array, "*shape"], scale: Float[Array, "*shape"]
    ) -> None:
        """Taken by Monte Carlo: a distribution does not say its own."""
        del mean, scale

    def leaf_check(self, shape: tuple[int, ...], name: str) -> None:
        """See `AbstractLeafPrior`."""
        check_shape(self.distribution.batch_shape, shape, name)
