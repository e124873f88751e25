"""How far drawn weights are from where a network stands."""

import abc

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp

from ..._normals import standard_normal
from ..._tree import normal_like
from ..._types import Array, Float, Params, PRNGKeyArray
from ...prior import AbstractPrior


class AbstractDeviation(eqx.Module):
    """A distribution of weights around those of a network."""

    @abc.abstractmethod
    def sample(self, mode: Params, *, key: PRNGKeyArray) -> Params:
        """A draw of the weights, less those that the network has.

        Args:
            mode: the network's weights.
            key: of the draw.
        """


class JointNormal(AbstractDeviation):
    r"""$N(0, R R^T)$ of all weights together.

    Attributes:
        root: $R$, of the weights in the order of `jax.flatten_util.ravel_pytree`.
    """

    root: Float[Array, "dim dim"]

    def sample(self, mode: Params, *, key: PRNGKeyArray) -> Params:
        """See `AbstractDeviation`."""
        flat, unravel = jax.flatten_util.ravel_pytree(mode)
        z = standard_normal(key, flat.shape, self.root.dtype)
        return unravel((self.root @ z).astype(flat.dtype))


class IndependentNormal(AbstractDeviation):
    """A normal around 0 of each weight by itself.

    Attributes:
        scale: standard deviations, in the structure of the weights.
    """

    scale: Params

    def sample(self, mode: Params, *, key: PRNGKeyArray) -> Params:
        """See `AbstractDeviation`."""
        noise = normal_like(mode, key=key, is_broadcast=True)
        return jax.tree.map(jnp.multiply, self.scale, noise)


class FromPrior(AbstractDeviation):
    """Weights of the prior: what is left of a posterior that is put back to it.

    Attributes:
        prior: of the weights.
    """

    prior: AbstractPrior

    def sample(self, mode: Params, *, key: PRNGKeyArray) -> Params:
        """See `AbstractDeviation`."""
        return jax.tree.map(jnp.subtract, self.prior.sample(mode, key=key), mode)
