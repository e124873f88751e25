"""Stochastic gradient Hamiltonian Monte Carlo, with friction."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.core import Tracer

from .._tree import normal_like
from .._types import Array, Int, Params, PRNGKeyArray, RealScalar
from ..potential import AbstractPotential
from ._base import (
    AbstractUnadaptedKernel,
    SGInfo,
    SGState,
    carried_momentum,
    combine_trees,
    estimate_gradient,
    init_state,
    is_cold,
    kinetic_temperature,
    ratio,
    root,
    square_norm,
    step_info,
)
from ._schedule import SamplingOnly, Schedule, at, check_not_negative, check_positive

_ROUNDING = 1e-6
"""Of the noise that is there, the part below which what is left to inject is none."""


class SGHMC(AbstractUnadaptedKernel):
    r"""Stochastic gradient descent with momentum, and the noise that its friction asks.

    $$v' = (1 - a) v - \eta \nabla \tilde U(\theta) + N(0, 2 (a T - b) \eta), \qquad
    \theta' = \theta + v'$$

    with $\eta = \varepsilon^2 / M$, $a = \varepsilon C / M$ and $b = \eta V / 2$: a
    symplectic Euler–Maruyama step of underdamped Langevin dynamics
    $dp = -\nabla U dt - \frac{C}{M} p dt + N(0, 2 C T dt)$, $d\theta = p / M dt$, whose
    law at rest is $e^{-U / T}$, with $v = \varepsilon p / M$. Gradient noise of
    variance $V$ is part of the noise that friction asks; $b$ is that part. Eq. (46) of
    Jospin et al. (whose $\tilde U$ should read $U$) is a = b: nothing is injected.

    The momentum runs half a step behind the position. A fresh one is of the position's
    own time, so that the kick after it is half of one, $\eta / (2 - a)$ exactly, and
    its variance $T \eta / (1 - a/2)$. With a whole kick, as in Chen et al., the law at
    rest of trajectories of L short steps has the variance $T / (1 + 1/L)$. Where a
    schedule changes $\varepsilon$, v changes with it, so that p goes on.

    Without noise (T = 0), from rest, with a constant step and no refreshment, it is SGD
    of learning rate $\eta$ with momentum 1 - a.

    Args:
        step_size: $\varepsilon$, or a schedule of it.
        friction: $C$; `a` must be at most 1.
        noise_estimate: $V$, the variance of an entry of $\nabla \tilde U$; 0 injects
            all the noise, and is safe where $\varepsilon$ is small. Where a schedule of
            the friction or temperature falls below what $V$ takes up, after its first
            step with noise, nothing is injected, and the law is not that of T.
        temperature: $T$; at 0 this is an optimiser.
        mass: $M$.
        num_integration_steps: steps, each with its own batch, in one call of `step`.
        resample_every: calls of `step` between fresh momenta; `None`: never.

    Raises:
        ValueError: for numbers out of range, friction too strong for the step, or a
            noise estimate above the noise that friction asks for.

    References:
        Chen, Fox & Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, eq.
        (15); Jospin et al. (2022), eq. (46). Departs from both in T, M's place and the
        kick of a fresh momentum.
    """

    step_size: Schedule
    friction: Schedule
    noise_estimate: RealScalar = 0.0
    temperature: Schedule = eqx.field(default=1.0, kw_only=True)
    mass: RealScalar = eqx.field(default=1.0, kw_only=True)
    num_integration_steps: int = eqx.field(default=1, kw_only=True)
    resample_every: int | None = eqx.field(default=None, kw_only=True)

    def __check_init__(self) -> None:
        check_positive("step_size", self.step_size)
        check_not_negative("friction", self.friction)
        check_not_negative("noise_estimate", self.noise_estimate)
        check_not_negative("temperature", self.temperature)
        check_positive("mass", self.mass)
        if self.num_integration_steps < 1:
            raise ValueError(
                "`num_integration_steps` must be at least 1, got "
                f"{self.num_integration_steps}."
            )
        if self.resample_every is not None and self.resample_every < 1:
            raise ValueError(
                f"`resample_every` must be at least 1, got {self.resample_every}: give "
                "None for no fresh momenta."
            )
        # Schedules fall from their first step, but for a temperature that begins at 0.
        a, _, _ = self._coefficients(jnp.zeros((), jnp.int32))
        if _is_true(a > 1):
            raise ValueError(
                f"a = step_size · friction / mass must be at most 1, got {a}: a step "
                "must not turn the momentum round; take a smaller step or friction."
            )
        first = self._first_hot_step()
        _, eta, injected = self._coefficients(first)
        is_hot = _is_true(at(self.temperature, first) > 0)
        rounding = _ROUNDING * eta**2 * self.noise_estimate
        if is_hot and _is_true(injected < -rounding):
            raise ValueError(
                f"`noise_estimate` {self.noise_estimate} is more than friction "
                f"{self.friction} takes up: it may be 2 · friction · temperature / "
                "step_size at most."
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
        """`num_integration_steps` moves: see `AbstractKernel`."""
        fresh_key, moves_key = jr.split(key)
        a, eta, injected = self._coefficients(state.num_steps)

        def move(qv, inputs):
            position, momentum = qv
            part, move_key = inputs
            kick = part * eta
            batch_key, noise_key = jr.split(move_key)
            energy, gradient = estimate_gradient(potential, position, key=batch_key)
            if is_cold(self.temperature):
                momentum = combine_trees((1 - a, -kick), momentum, gradient)
            else:
                noise = normal_like(position, key=noise_key)
                # A smaller kick brings less of the noise that is left out.
                spared = self.noise_estimate * eta**2 * (1 - part**2)
                momentum = combine_trees(
                    (1 - a, -kick, root(injected + spared)), momentum, gradient, noise
                )
            position = combine_trees((1, 1), position, momentum)
            return (position, momentum), (energy, square_norm(gradient))

        momentum, first = self._refresh(state, a, eta, key=fresh_key)
        keys = jr.split(moves_key, self.num_integration_steps)
        parts = jnp.ones(len(keys)).at[0].set(first)
        (position, momentum), (energies, square_norms) = jax.lax.scan(
            move, (state.position, momentum), (parts, keys)
        )
        kinetic = kinetic_temperature(momentum, eta, a)
        info = step_info(self.step_size, state, energies[-1], square_norms[-1], kinetic)
        return state.move(position, momentum), info

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """See `AbstractMinibatchKernel`."""
        _, eta, injected = self._coefficients(state.num_steps)
        is_noise = injected > _ROUNDING * eta**2 * self.noise_estimate
        return ratio(eta**2, jnp.where(is_noise, injected, 0.0))

    def _first_hot_step(self) -> Int[Array, ""]:
        """With noise; the first of all of a schedule that is not ours."""
        step = 0
        if isinstance(self.temperature, SamplingOnly):
            step = self.temperature.cycle.num_exploring
        return jnp.asarray(step, jnp.int32)

    def _coefficients(self, step):
        """A, η and the variance that is injected, at a step."""
        step_size = at(self.step_size, step)
        a = step_size * at(self.friction, step) / self.mass
        eta = step_size**2 / self.mass
        b = eta * self.noise_estimate / 2
        injected = 2 * (a * at(self.temperature, step) - b) * eta
        return a, eta, injected

    def _refresh(
        self, state: SGState, a: RealScalar, eta: RealScalar, *, key: PRNGKeyArray
    ) -> tuple[Params, RealScalar]:
        """The momentum to start from, and the part that its kick is."""
        old = carried_momentum(self.step_size, state)
        if self.resample_every is None:
            return old, 1.0
        scale = root(at(self.temperature, state.num_steps) * eta / (1 - a / 2))
        fresh = lambda: combine_trees((scale,), normal_like(state.momentum, key=key))
        is_due = state.num_steps % self.resample_every == 0
        momentum = jax.lax.cond(is_due, fresh, lambda: old)
        return momentum, jnp.where(is_due, 1 / (2 - a), 1.0)


def _is_true(condition) -> bool:
    """Whether a condition is known to hold before the program is compiled."""
    return not isinstance(condition, Tracer) and bool(condition)
