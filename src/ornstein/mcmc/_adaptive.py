"""What the full-data kernels have in common: their start and their warm-up."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, Params, PRNGKeyArray, PyTree, RealScalar
from ..potential import AbstractPotential
from ._adaptation import adapt_mass, adapt_step_size, start_adaptation
from ._base import AbstractKernel, MCMCInfo, Stage
from ._metric import DiagonalMetric
from ._state import Adaptation, MCMCState, like_position


class AbstractAdaptiveKernel(AbstractKernel):
    """A kernel with a step size and a diagonal mass, which a warm-up can find.

    Attributes:
        step_size: where the warm-up starts; what is used where there is none.
        inverse_mass: the diagonal of the inverse mass where the warm-up starts, or what
            is used where there is none: one number, or a tree like the position.
        temperature: T; the chain moves on U / T.
        target_acceptance: the mean acceptance probability that the step size is
            adapted to.
        adapt_step_size: whether the warm-up changes the step size.
        adapt_mass: whether it changes the mass.
        uses_gradient: whether the state keeps the gradient.
        keeps_momentum: whether the state keeps the momentum.
    """

    step_size: eqx.AbstractVar[RealScalar]
    inverse_mass: eqx.AbstractVar[PyTree]
    temperature: eqx.AbstractVar[float]
    target_acceptance: eqx.AbstractVar[float]
    adapt_step_size: eqx.AbstractVar[bool]
    adapt_mass: eqx.AbstractVar[bool]
    uses_gradient: eqx.AbstractClassVar[bool]
    keeps_momentum: eqx.AbstractClassVar[bool]
    is_minibatch: ClassVar[bool] = False

    def __check_init__(self):
        check_positive("step_size", self.step_size)
        check_positive("temperature", self.temperature)
        for leaf in jax.tree.leaves(self.inverse_mass):
            check_positive("inverse_mass", leaf)
        if not 0 < self.target_acceptance < 1:
            raise ValueError(
                "`target_acceptance` must lie between 0 and 1, got "
                f"{self.target_acceptance}."
            )

    @abc.abstractmethod
    def step(
        self, potential: AbstractPotential, state: MCMCState, *, key: PRNGKeyArray
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`."""

    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> MCMCState:
        """See `AbstractKernel`. The key draws a momentum where one is kept."""
        # Not weakly typed: the steps to come return an array of one type.
        position = jax.tree.map(lambda a: jnp.asarray(a, a.dtype), position)
        log_density_fn = self.log_density_fn(potential)
        gradient = momentum = adaptation = None
        if self.uses_gradient:
            log_density, gradient = jax.value_and_grad(log_density_fn)(position)
        else:
            log_density = log_density_fn(position)
        step_size = jnp.asarray(self.step_size, jax.tree.leaves(position)[0].dtype)
        inverse_mass = like_position(self.inverse_mass, position)
        if self.keeps_momentum:
            momentum = DiagonalMetric(inverse_mass).sample_momentum(key=key)
        if self.adapt_step_size or self.adapt_mass:
            adaptation = start_adaptation(step_size, position)
        return MCMCState(
            position=position,
            log_density=log_density,
            gradient=gradient,
            momentum=momentum,
            step_size=step_size,
            inverse_mass=inverse_mass,
            adaptation=adaptation,
        )

    def warm_up(
        self,
        potential: AbstractPotential,
        state: MCMCState,
        stage: Stage,
        *,
        key: PRNGKeyArray,
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`."""
        state, info = self.step(potential, state, key=key)
        if state.adaptation is None:
            return state, info
        averaging, moments = state.adaptation.averaging, state.adaptation.moments
        step_size, inverse_mass = state.step_size, state.inverse_mass
        if self.adapt_step_size:
            averaging, step_size = adapt_step_size(
                averaging,
                info.acceptance_rate,
                stage,
                target_acceptance=self.target_acceptance,
            )
        if self.adapt_mass:
            moments, inverse_mass = adapt_mass(
                moments, inverse_mass, state.position, stage
            )
        momentum = state.momentum
        if self.keeps_momentum:  # it stays a draw of N(0, M)
            momentum = jax.tree.map(
                lambda p, old, new: p * jnp.sqrt(old / new),
                momentum,
                state.inverse_mass,
                inverse_mass,
            )
        state = MCMCState(
            position=state.position,
            log_density=state.log_density,
            gradient=state.gradient,
            momentum=momentum,
            step_size=step_size,
            inverse_mass=inverse_mass,
            adaptation=Adaptation(averaging, moments),
        )
        return state, info

    def log_density_fn(
        self, potential: AbstractPotential
    ) -> Callable[[Params], Float[Array, ""]]:
        """The map from q to -U(q) / T."""
        return lambda position: -potential(position) / self.temperature


def check_positive(name: str, value: Any) -> None:
    """Refuse what is no number, or not positive and finite."""
    values = np.asarray(value)
    if values.dtype.kind not in "fiu":
        raise TypeError(
            f"`{name}` must be a positive number, got {value!r}: leave it out for its "
            "default, or give one."
        )
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"`{name}` must be positive and finite, got {value}.")


def check_num_integration_steps(num_steps: int) -> None:
    """Refuse a trajectory without steps."""
    if num_steps < 1:
        raise ValueError(
            f"`num_integration_steps` must be at least 1, got {num_steps}: it is the "
            "number of leapfrog steps of a trajectory."
        )
