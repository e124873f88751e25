"""Stochastic gradients with less noise near a point that is known to be good."""

import jax
import jax.numpy as jnp

from .._types import Array, Float, Params, PRNGKeyArray
from ..potential import AbstractPotential


class WithControlVariate(AbstractPotential):
    r"""The same potential, whose batches tell only how it differs from its centre.

    $$\nabla \tilde U_c(\theta) = \nabla \tilde U(\theta) - \nabla \tilde U(c) +
    \nabla U(c),$$

    both estimates from one batch: unbiased everywhere, without noise at the centre
    $c$, and worth its second gradient where the chain stays near it (start from a
    trained network). Far from it the noise is larger than without.

    The estimate itself is $\tilde U(\theta) - \tilde U(c) + U(c) +
    \langle \nabla U(c) - \nabla \tilde U(c), \theta - c \rangle$, which has that
    gradient and U as its expectation. For any kernel.

    Args:
        potential: U.
        center: $c$, best a mode; the gradient of the whole data is taken here once.

    References:
        Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient
        MCMC, eq. (5).
    """

    potential: AbstractPotential
    center: Params
    energy: Float[Array, ""]
    gradient: Params

    def __init__(self, potential: AbstractPotential, center: Params):
        self.potential = potential
        self.center = center
        self.energy, self.gradient = jax.value_and_grad(potential)(center)

    def __call__(self, position: Params) -> Float[Array, ""]:
        """See `AbstractPotential`: unchanged."""
        return self.potential(position)

    def estimate(self, position: Params, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """See `AbstractPotential`."""
        of_batch = lambda q: self.potential.estimate(q, key=key)
        energy, gradient = jax.value_and_grad(of_batch)(self.center)
        tilt = jax.tree.map(
            lambda full, part, q, c: jnp.sum((full - part) * (q - c)),
            self.gradient,
            gradient,
            position,
            self.center,
        )
        total = of_batch(position) - energy + self.energy
        return total + sum(t.astype(total.dtype) for t in jax.tree.leaves(tilt))
