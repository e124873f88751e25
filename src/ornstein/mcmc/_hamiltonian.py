r"""Hamiltonian dynamics, as blackjax integrates them.

$H(q, p) = U(q) / T + \tfrac12 p^\top M^{-1} p$; a leapfrog step is half a step of p, a
step of q, half a step of p: source eqs. (18)-(20). blackjax moves on log densities,
minus our energies.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from blackjax.mcmc.hmc import hmc_proposal
from blackjax.mcmc.integrators import IntegratorState, velocity_verlet
from blackjax.mcmc.proposal import static_binomial_sampling

from .._tree import as_types, pack, unpack
from .._types import Array, Bool, Float, Params, PRNGKeyArray
from ._base import MCMCInfo
from ._metric import DiagonalMetric
from ._state import MCMCState

_LARGEST_ERROR = 100.0
"""Nats: a trajectory whose energy is off by more followed no dynamics."""

LogDensityFn = Callable[[Params], Float[Array, ""]]


def move_by_trajectory(
    log_density_fn: LogDensityFn,
    state: MCMCState,
    momentum: Params,
    *,
    num_integration_steps: int,
    is_adjusted: bool = True,
    key: PRNGKeyArray,
) -> tuple[IntegratorState, MCMCInfo]:
    r"""Follow the dynamics and accept their end with probability min(1, exp(-ΔH)).

    Args:
        log_density_fn: q to -U(q) / T.
        state: where the trajectory starts.
        momentum: the momentum there.
        num_integration_steps: leapfrog steps.
        is_adjusted: whether an end may be rejected.
        key: of the acceptance.

    Returns:
        The end of the trajectory as it was reached if it was accepted, otherwise the
        start with its momentum negated.
    """
    like = state.position
    metric = DiagonalMetric(pack(state.inverse_mass))
    packed_fn = lambda q: log_density_fn(unpack(q, like))
    propose = hmc_proposal(
        leapfrog(packed_fn, metric),
        metric.kinetic_energy,
        state.step_size,
        num_integration_steps,
        sample_proposal=_metropolis if is_adjusted else _take_proposal,
    )
    start = integrator_state(state, momentum)
    start = start._replace(
        position=pack(start.position),
        momentum=pack(start.momentum),
        logdensity_grad=pack(start.logdensity_grad),
    )
    # blackjax negates the proposal's momentum, which makes the move its own inverse;
    # negating the outcome's lets what was accepted go on and what was not turn back.
    end, info, _ = propose(key, start)
    end = end._replace(
        position=unpack(end.position, like),
        momentum=unpack(jax.tree.map(jnp.negative, end.momentum), like),
        logdensity_grad=unpack(end.logdensity_grad, like),
    )
    return end, MCMCInfo(
        acceptance_rate=info.acceptance_rate,
        is_accepted=info.is_accepted,
        is_divergent=info.is_divergent,
        energy=metric.kinetic_energy(pack(end.momentum)) - end.logdensity,
        num_gradients=jnp.asarray(num_integration_steps),
        step_size=state.step_size,
    )


def leapfrog(log_density_fn: LogDensityFn, metric: DiagonalMetric) -> Callable:
    """blackjax's, of leaves that keep their types: the step size has one of its own.

    Args:
        log_density_fn: q to -U(q) / T.
        metric: of the kinetic energy.
    """

    def step(state: IntegratorState, step_size: Float[Array, ""]) -> IntegratorState:
        at = lambda q: log_density_fn(as_types(q, state.position))
        move = velocity_verlet(at, metric.kinetic_energy)
        return as_types(move(state, step_size), state)  # pyright: ignore

    return step


def integrator_state(state: MCMCState, momentum: Params) -> IntegratorState:
    """Our state as blackjax's."""
    log_density = state.log_density
    return IntegratorState(
        state.position,
        momentum,
        log_density,  # pyright: ignore[reportArgumentType]
        state.gradient,
    )


def move_state(
    state: MCMCState, end: IntegratorState, momentum: Params = None
) -> MCMCState:
    """Our state at blackjax's, keeping the momentum given."""
    return MCMCState(
        position=end.position,
        log_density=jnp.asarray(end.logdensity, state.log_density.dtype),
        gradient=end.logdensity_grad,
        momentum=momentum,
        step_size=state.step_size,
        inverse_mass=state.inverse_mass,
        adaptation=state.adaptation,
    )


def _metropolis(
    key: PRNGKeyArray,
    log_acceptance: Float[Array, ""],
    start: IntegratorState,
    proposal: IntegratorState,
) -> Any:
    """As blackjax's, and never across an error of the integrator that is enormous.

    One that lowers the energy would always be accepted, and a warm-up's first steps
    may so throw a chain where no density is, and where it stays. Refused both ways, it
    leaves the balance as it is.
    """
    is_sane = jnp.abs(log_acceptance) < _LARGEST_ERROR
    log_acceptance = jnp.where(is_sane, log_acceptance, -jnp.inf)
    return static_binomial_sampling(
        key,
        log_acceptance,  # pyright: ignore[reportArgumentType]
        start,
        proposal,
    )


def _take_proposal(
    key: PRNGKeyArray,
    log_acceptance: Float[Array, ""],
    start: IntegratorState,
    proposal: IntegratorState,
) -> tuple[IntegratorState, tuple[Bool[Array, ""], Float[Array, ""], None]]:
    """As blackjax's `static_binomial_sampling`, without a test."""
    del key, start
    acceptance_rate = jnp.minimum(1.0, jnp.exp(log_acceptance))
    return proposal, (jnp.asarray(True), acceptance_rate, None)
