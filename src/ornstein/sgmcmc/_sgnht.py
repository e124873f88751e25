"""The stochastic gradient Nosé–Hoover thermostat."""

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
from ._schedule import Schedule, at, check_not_negative, check_positive


class SGNHT(AbstractUnadaptedKernel):
    r"""`SGHMC` whose friction finds itself, so that the noise need not be known.

    $$v' = (1 - \varepsilon \zeta) v - \varepsilon^2 \nabla \tilde U(\theta) +
    N(0, 2 A T \varepsilon^3), \quad \theta' = \theta + v', \quad
    \zeta' = \zeta + \varepsilon \left(\left(1 - \frac{\varepsilon \zeta}{2}\right)
    \frac{|v'|^2}{\varepsilon^2 D} - T\right)$$

    The thermostat $\zeta$ rises while the chain is hotter than T. Its law at rest is
    $e^{-U / T}$ as $\varepsilon$ goes to 0, with gradient noise of any variance that is
    the same everywhere: $\zeta$ comes to $A$ plus what that noise asks for. The mass is
    1.

    The paper's thermostat has no factor $1 - \varepsilon \zeta / 2$, and holds at T the
    heat of the momentum, which runs half a step behind the position: see
    `SGInfo.kinetic_temperature`. The position is then colder than T by that factor, 5 %
    where a step takes a tenth of the momentum, however small the step.

    Args:
        step_size: $\varepsilon$, or a schedule of it.
        friction: $A$, also where $\zeta$ starts.
        temperature: $T$; at 0 this is momentum SGD whose friction rises.

    Raises:
        ValueError: for numbers out of range.

    References:
        Ding, Fang, Babbush, Chen, Skeel & Neven (2014), Bayesian sampling using
        stochastic gradient thermostats, algorithm 2 (there $\xi$, T = 1, and the
        plain heat of the momentum).
    """

    step_size: Schedule
    friction: RealScalar
    temperature: Schedule = 1.0

    def __check_init__(self) -> None:
        check_positive("step_size", self.step_size)
        check_not_negative("friction", self.friction)
        check_not_negative("temperature", self.temperature)

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> SGState:
        """See `AbstractKernel`: at rest."""
        del potential, key
        return init_state(position, jnp.asarray(self.friction, float))

    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """See `AbstractKernel`."""
        batch_key, noise_key = jr.split(key)
        energy, gradient = estimate_gradient(potential, state.position, key=batch_key)
        step_size = at(self.step_size, state.num_steps)
        temperature = at(self.temperature, state.num_steps)
        zeta, eta = adapted_of(state, self), step_size**2
        momentum = carried_momentum(self.step_size, state)
        coefficients, trees = (1 - step_size * zeta, -eta), (momentum, gradient)
        if not is_cold(self.temperature):
            noise = normal_like(state.position, key=noise_key)
            variance = 2 * self.friction * temperature * step_size * eta
            coefficients, trees = (*coefficients, root(variance)), (*trees, noise)
        momentum = combine_trees(coefficients, *trees)
        position = combine_trees((1, 1), state.position, momentum)
        kinetic = kinetic_temperature(momentum, eta, step_size * zeta)
        zeta += step_size * (kinetic - temperature)
        norm = square_norm(gradient)
        info = step_info(self.step_size, state, energy, norm, kinetic)
        return state.move(position, momentum, zeta), info

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        r"""See `AbstractMinibatchKernel`.

        Beside what $\zeta$ takes out: of noise that is the same in all directions
        $\varepsilon V / 2 T$ is $\zeta - A$, and this at most 1.
        """
        step_size = at(self.step_size, state.num_steps)
        temperature = at(self.temperature, state.num_steps)
        zeta = jnp.maximum(adapted_of(state, self), self.friction)
        return ratio(step_size, 2 * zeta * temperature)
