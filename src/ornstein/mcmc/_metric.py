r"""Kinetic energy with a diagonal mass, leaf by leaf.

`blackjax.mcmc.metrics.gaussian_euclidean` flattens the momentum into one vector, inside
every leapfrog step; here mass and momentum keep the position's own structure.
"""

import operator

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.mcmc.metrics import gaussian_euclidean
from jax.flatten_util import ravel_pytree

from .._tree import normal_like
from .._types import Array, Bool, Float, Params, PRNGKeyArray, PyTree


class DiagonalMetric(eqx.Module):
    r"""$p \sim N(0, M)$ and $K(p) = \tfrac12 p^\top M^{-1} p$, with M diagonal.

    Args:
        inverse_mass: the diagonal of $M^{-1}$, as a tree like the position.
    """

    inverse_mass: Params

    def sample_momentum(self, *, key: PRNGKeyArray) -> Params:
        """A draw of p."""
        noise = normal_like(self.inverse_mass, key=key)
        return jax.tree.map(lambda xi, m: xi / jnp.sqrt(m), noise, self.inverse_mass)

    def kinetic_energy(
        self, momentum: Params, position: Params | None = None
    ) -> Float[Array, ""]:
        """K, nats. blackjax hands over the position, for metrics that depend on it."""
        del position
        squares = jax.tree.map(
            lambda p, m: jnp.sum(m * p**2), momentum, self.inverse_mass
        )
        return 0.5 * jax.tree.reduce(operator.add, squares)

    def check_turning(
        self, left: PyTree[Array], right: PyTree[Array], momentum_sum: PyTree[Array]
    ) -> Bool[Array, ""]:
        """Whether a trajectory turns back; blackjax asks with trees and with vectors.

        Args:
            left: momentum at the left end.
            right: momentum at the right end.
            momentum_sum: over the trajectory.
        """
        flat, _ = ravel_pytree(self.inverse_mass)
        check = gaussian_euclidean(flat).check_turning
        return jnp.asarray(check(left, right, momentum_sum))
