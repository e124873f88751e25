"""SGLD with RMSprop's preconditioner, frozen where sampling begins."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from .._tree import normal_like
from .._types import Params, PRNGKeyArray, RealScalar
from ..mcmc import Stage
from ..potential import AbstractPotential
from ._base import (
    AbstractMinibatchKernel,
    SGInfo,
    SGState,
    adapted_of,
    estimate_gradient,
    init_state,
    is_cold,
    like,
    num_entries,
    ratio,
    root,
    square_norm,
    step_info,
)
from ._schedule import Schedule, at, check_not_negative, check_positive


class PreconditionedSGLD(AbstractMinibatchKernel):
    r"""`SGLD` with a step size of each entry's own.

    $$\theta' = \theta - \tfrac{\varepsilon}{2} G \nabla \tilde U(\theta)
    + \sqrt{\varepsilon T G}\, \xi, \qquad G = \frac{1}{\lambda + \sqrt s}$$

    with $s$ the running mean of $(\nabla \tilde U)^2$. Only the warm-up moves $s$; then
    it is frozen. So where Li et al. drop the term $\Gamma = \nabla \cdot G$ as small,
    it is 0 here, and the chain has a law at rest of its own: that of SGLD with a fixed
    preconditioner. Without a warm-up every entry has the same $G$, from the first
    gradient.

    Li et al. use the mean gradient over examples: their step size is ours / N, their
    $\lambda$ too.

    Args:
        step_size: $\varepsilon$, or a schedule of it.
        temperature: $T$; at 0 this is RMSprop, with a frozen $s$ after the warm-up.
        decay: weight of the past in $s$.
        damping: $\lambda$, in units of the gradient of U: bounds the steps of entries
            that hardly matter.

    Raises:
        ValueError: for numbers out of range.

    References:
        Li, Chen, Carlson & Carin (2016), Preconditioned stochastic gradient Langevin
        dynamics for deep neural networks, algorithm 1.
    """

    step_size: Schedule
    temperature: Schedule = 1.0
    decay: float = eqx.field(default=0.99, kw_only=True)
    damping: RealScalar = eqx.field(default=1e-5, kw_only=True)

    def __check_init__(self) -> None:
        check_positive("step_size", self.step_size)
        check_not_negative("temperature", self.temperature)
        check_positive("damping", self.damping)
        if not 0 <= self.decay < 1:
            raise ValueError(
                f"`decay` must be in [0, 1), got {self.decay}: it is the weight of the "
                "past in the running mean of squared gradients."
            )

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> SGState:
        """See `AbstractKernel`: one batch sets the scale of the preconditioner."""
        _, gradient = estimate_gradient(potential, position, key=key)
        mean = square_norm(gradient) / num_entries(gradient)
        second_moment = jax.tree.map(
            lambda q: jnp.full(q.shape, mean, q.dtype), position
        )
        return init_state(position, second_moment)

    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """See `AbstractKernel`."""
        return self._advance(potential, state, key=key, decay=1.0)

    def warm_up(
        self,
        potential: AbstractPotential,
        state: SGState,
        stage: Stage,
        *,
        key: PRNGKeyArray,
    ) -> tuple[SGState, SGInfo]:
        """A step whose gradient also counts in the preconditioner."""
        del stage
        return self._advance(potential, state, key=key, decay=self.decay)

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """See `AbstractMinibatchKernel`."""
        step_size = at(self.step_size, state.num_steps)
        weight = ratio(step_size, 4 * at(self.temperature, state.num_steps))
        return jax.tree.map(
            lambda g: like(weight, g) * g, self._preconditioner(state.adapted)
        )

    def _preconditioner(self, second_moment: Params) -> Params:
        return jax.tree.map(
            lambda s: 1 / (like(self.damping, s) + jnp.sqrt(s)), second_moment
        )

    def _advance(self, potential, state, *, key, decay: float):
        batch_key, noise_key = jr.split(key)
        energy, gradient = estimate_gradient(potential, state.position, key=batch_key)
        second_moment = adapted_of(state, self)
        if decay < 1:
            second_moment = jax.tree.map(
                lambda s, g: decay * s + (1 - decay) * g**2, second_moment, gradient
            )
        step_size = at(self.step_size, state.num_steps)
        noise_scale = root(step_size * at(self.temperature, state.num_steps))
        precondition = self._preconditioner(second_moment)
        move = lambda q, g, p: q - like(step_size / 2, q) * p * g
        position = jax.tree.map(move, state.position, gradient, precondition)
        if not is_cold(self.temperature):
            position = jax.tree.map(
                lambda q, p, xi: q + like(noise_scale, q) * jnp.sqrt(p) * xi,
                position,
                precondition,
                normal_like(position, key=noise_key),
            )
        info = step_info(self.step_size, state, energy, square_norm(gradient))
        return state.move(position, state.momentum, second_moment), info
