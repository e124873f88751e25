"""SGLD with Adam's direction added to its drift."""

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
    adapted_of,
    combine_trees,
    estimate_gradient,
    init_state,
    is_cold,
    like,
    ratio,
    root,
    square_norm,
    step_info,
)
from ._schedule import Schedule, at, check_not_negative, check_positive


class AdaptiveDriftSGLD(AbstractUnadaptedKernel):
    r"""`SGLD` that Adam pushes along: through ravines, and off the posterior.

    $$\theta' = \theta - \tfrac{\varepsilon}{2} \left(\nabla \tilde U(\theta)
    + a \frac{\mu}{\sqrt\nu + \lambda}\right) + \sqrt{\varepsilon T}\, \xi, \qquad
    \mu' = \beta_1 \mu + (1 - \beta_1) \nabla \tilde U, \quad
    \nu' = \beta_2 \nu + (1 - \beta_2) (\nabla \tilde U)^2$$

    with the moments that this step's gradient is in, and without Adam's correction of
    their first values. Its law at rest is **not** the posterior, however small the
    step: the drift that is added comes from no energy. Where gradient noise hides the
    gradient, it is $a / \sqrt\nu$ times the mean of some $1 / (1 - \beta_1)$ gradients,
    and the law is about that of $T / (1 + a / \sqrt\nu)$; `ornstein reproduce
    exactness` says by how much on a Gaussian. Take it to predict, not to be exact:
    `PreconditionedSGLD` adapts and keeps its law.

    Args:
        step_size: $\varepsilon$, or a schedule of it.
        drift_weight: $a$, in units of the gradient of U: a weight whose gradients agree
            moves $\varepsilon a / 2$ a step by it, what a learning rate is to Adam.
        temperature: $T$, of the noise; at 0 this is an optimiser.
        decays: $\beta_1, \beta_2$.
        damping: $\lambda$.

    Raises:
        ValueError: for numbers out of range.

    References:
        Kim, Song & Liang (2022), Stochastic gradient Langevin dynamics with adaptive
        drifts, algorithm 2. Departs from it in the place of $\lambda$.
    """

    step_size: Schedule
    drift_weight: RealScalar
    temperature: Schedule = 1.0
    decays: tuple[float, float] = eqx.field(default=(0.9, 0.999), kw_only=True)
    damping: RealScalar = eqx.field(default=1e-8, kw_only=True)

    def __check_init__(self) -> None:
        check_positive("step_size", self.step_size)
        check_not_negative("drift_weight", self.drift_weight)
        check_not_negative("temperature", self.temperature)
        check_positive("damping", self.damping)
        if not all(0 <= decay < 1 for decay in self.decays):
            raise ValueError(
                f"`decays` must be in [0, 1), got {self.decays}: they are the weights "
                "of the past in the running means of gradients and of their squares."
            )

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> SGState:
        """See `AbstractKernel`."""
        del potential, key
        zeros = jax.tree.map(jnp.zeros_like, position)
        return init_state(position, (zeros, zeros))

    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """See `AbstractKernel`."""
        batch_key, noise_key = jr.split(key)
        energy, gradient = estimate_gradient(potential, state.position, key=batch_key)
        mu, nu = adapted_of(state, self)
        first, second = self.decays
        mu = jax.tree.map(lambda m, g: first * m + (1 - first) * g, mu, gradient)
        nu = jax.tree.map(lambda s, g: second * s + (1 - second) * g**2, nu, gradient)
        push = jax.tree.map(
            lambda m, s: m / (jnp.sqrt(s) + like(self.damping, s)), mu, nu
        )
        step_size = at(self.step_size, state.num_steps)
        half = step_size / 2
        position = combine_trees(
            (1, -half, -half * self.drift_weight), state.position, gradient, push
        )
        if not is_cold(self.temperature):
            scale = root(step_size * at(self.temperature, state.num_steps))
            noise = normal_like(state.position, key=noise_key)
            position = combine_trees((1, scale), position, noise)
        info = step_info(self.step_size, state, energy, square_norm(gradient))
        return state.move(position, state.momentum, (mu, nu)), info

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """See `AbstractMinibatchKernel`. Without what Adam's direction adds."""
        step_size = at(self.step_size, state.num_steps)
        return ratio(step_size, 4 * at(self.temperature, state.num_steps))
