"""Hamiltonian Monte Carlo on stochastic gradients, without friction: do not use it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from .._tree import normal_like
from .._types import Params, PRNGKeyArray, RealScalar
from ..potential import AbstractPotential
from ._base import (
    AbstractUnadaptedKernel,
    SGInfo,
    SGState,
    combine_trees,
    estimate_gradient,
    init_state,
    kinetic_temperature,
    root,
    square_norm,
    step_info,
)
from ._schedule import Schedule, at, check_positive


class NaiveSGHMC(AbstractUnadaptedKernel):
    r"""Leapfrog steps on batch gradients: the counter-example to `SGHMC`.

    $dp = -\nabla \tilde U dt$ (eq. 45 of Jospin et al. 2022): the gradient noise heats
    the trajectory and nothing cools it, so that the law at rest is wider than the
    posterior (their figure 2). Every call draws a momentum, $v \sim N(0, T \eta)$ with
    $\eta = \varepsilon^2 / M$, and takes L leapfrog steps, each gradient from its own
    batch. With `adjusted` a Metropolis test on the whole data,
    $\min(1, e^{-\Delta H / T})$ with $H = U + |v|^2 / 2 \eta$, throws the heated ones
    away. As a trajectory run backwards meets the same batches in reverse order, which
    is as likely, that test makes the chain exact; but the test costs what the batches
    saved, and long trajectories are seldom accepted.

    Args:
        step_size: $\varepsilon$, or a schedule of it.
        num_integration_steps: L.
        adjusted: whether the test is made.
        temperature: $T$, positive.
        mass: $M$.

    Raises:
        ValueError: for numbers out of range.

    References:
        Chen, Fox & Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo,
        section 3.1.
    """

    step_size: Schedule
    num_integration_steps: int
    adjusted: bool = eqx.field(default=False, kw_only=True)
    temperature: Schedule = eqx.field(default=1.0, kw_only=True)
    mass: RealScalar = eqx.field(default=1.0, kw_only=True)

    def __check_init__(self) -> None:
        check_positive("step_size", self.step_size)
        check_positive("temperature", self.temperature)
        check_positive("mass", self.mass)
        if self.num_integration_steps < 1:
            raise ValueError(
                "`num_integration_steps` must be at least 1, got "
                f"{self.num_integration_steps}."
            )

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> SGState:
        """See `AbstractKernel`."""
        del potential, key
        return init_state(position)

    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """One trajectory: see `AbstractKernel`."""
        momentum_key, batches_key, accept_key = jr.split(key, 3)
        eta = at(self.step_size, state.num_steps) ** 2 / self.mass
        temperature = at(self.temperature, state.num_steps)
        noise = normal_like(state.position, key=momentum_key)
        start = state.position, combine_trees((root(temperature * eta),), noise)
        # Two half kicks that meet are one, with one batch: L + 1 in all.
        keys = jr.split(batches_key, self.num_integration_steps + 1)
        sizes = jnp.full(len(keys) - 1, eta, float).at[-1].mul(0.5)

        def kick(position, momentum, size, batch_key):
            energy, gradient = estimate_gradient(potential, position, key=batch_key)
            momentum = combine_trees((1, -size), momentum, gradient)
            return momentum, (energy, square_norm(gradient))

        def leap(end, inputs):
            position, momentum = end
            position = combine_trees((1, 1), position, momentum)
            momentum, of_batch = kick(position, momentum, *inputs)
            return (position, momentum), of_batch

        first, _ = kick(*start, eta / 2, keys[0])
        end, (energies, norms) = jax.lax.scan(
            leap, (start[0], first), (sizes, keys[1:])
        )
        rate = None
        if self.adjusted:
            rate = self._acceptance_rate(potential, start, end, eta, temperature)
            is_accepted = jr.uniform(accept_key) < rate
            end = jax.tree.map(lambda a, b: jnp.where(is_accepted, a, b), end, start)
        kinetic = kinetic_temperature(end[1], eta)
        info = step_info(self.step_size, state, energies[-1], norms[-1], kinetic, rate)
        return state.move(*end), info

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """Infinite: no noise is injected along a trajectory."""
        del state
        return jnp.inf

    def _acceptance_rate(self, potential, start, end, eta, temperature):
        """Of the Metropolis test on H; 0 where H is not finite."""
        hamiltonian = lambda q, v: potential(q) + square_norm(v) / (2 * eta)
        rise = hamiltonian(*end) - hamiltonian(*start)
        rate = jnp.exp(jnp.minimum(-rise / temperature, 0.0))
        return jnp.where(jnp.isnan(rate), 0.0, rate)
