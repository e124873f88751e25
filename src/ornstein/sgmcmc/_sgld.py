"""Stochastic gradient Langevin dynamics."""

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
    is_cold,
    ratio,
    root,
    square_norm,
    step_info,
)
from ._schedule import Schedule, at, check_not_negative, check_positive


class SGLD(AbstractUnadaptedKernel):
    r"""Stochastic gradient descent with as much noise as makes it a sampler.

    $$\theta' = \theta - \tfrac{\varepsilon}{2} \nabla \tilde U(\theta)
    + \sqrt{\varepsilon T}\, \xi, \qquad \xi \sim N(0, I)$$

    This is the Euler–Maruyama scheme of step $\varepsilon$ on overdamped Langevin
    dynamics $d\theta = -\frac{1}{2} \nabla U dt + \sqrt{T} dW$, whose law at rest is
    $e^{-U / T}$, with gradient noise on top. At a constant step the chain is biased:
    by the scheme, and by gradient noise of variance $V$, which adds
    $\varepsilon^2 V / 4$ to the injected $\varepsilon T$ (see `noise_ratio`).

    blackjax's step size is half of ours; optax's learning rate for SGD is, too.

    Args:
        step_size: $\varepsilon$, or a schedule of it. Start from about 0.1 / N.
        temperature: $T$; at 0 this is stochastic gradient descent.

    Raises:
        ValueError: if the step size is not positive, or the temperature negative.

    References:
        Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin
        dynamics, eq. (4); Jospin et al. (2022), eq. (39).
    """

    step_size: Schedule
    temperature: Schedule = 1.0

    def __check_init__(self) -> None:
        check_positive("step_size", self.step_size)
        check_not_negative("temperature", self.temperature)

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> SGState:
        """See `AbstractKernel`."""
        del potential, key
        return init_state(position)

    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """See `AbstractKernel`."""
        batch_key, noise_key = jr.split(key)
        energy, gradient = estimate_gradient(potential, state.position, key=batch_key)
        step_size = at(self.step_size, state.num_steps)
        temperature = at(self.temperature, state.num_steps)
        if is_cold(self.temperature):
            position = combine_trees((1, -step_size / 2), state.position, gradient)
        else:
            noise = normal_like(state.position, key=noise_key)
            position = combine_trees(
                (1, -step_size / 2, root(step_size * temperature)),
                state.position,
                gradient,
                noise,
            )
        info = step_info(self.step_size, state, energy, square_norm(gradient))
        return state.move(position, state.momentum), info

    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """See `AbstractMinibatchKernel`."""
        step_size = at(self.step_size, state.num_steps)
        return ratio(step_size, 4 * at(self.temperature, state.num_steps))
