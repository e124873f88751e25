"""Hamiltonian Monte Carlo."""

from typing import ClassVar

import equinox as eqx
import jax

from .._types import PRNGKeyArray, PyTree, RealScalar
from ..potential import AbstractPotential
from ._adaptive import AbstractAdaptiveKernel, check_num_integration_steps
from ._base import MCMCInfo
from ._hamiltonian import move_by_trajectory, move_state
from ._metric import DiagonalMetric
from ._state import MCMCState


class HMC(AbstractAdaptiveKernel):
    r"""Hamiltonian Monte Carlo with a fixed number of leapfrog steps.

    Draw $p \sim N(0, M)$, follow $H(q, p) = U(q) / T + \tfrac12 p^\top M^{-1} p$ for L
    leapfrog steps of size ε, and accept with probability $\min(1, e^{-\Delta H})$.
    Leaves $e^{-U / T}$ exactly invariant; L gradients of the whole data a step.

    Args:
        num_integration_steps: L.
        step_size: ε, in units of the position where the mass is 1. The warm-up
            replaces it, so that the default is only a start; without a warm-up give
            your own.
        inverse_mass: the diagonal of $M^{-1}$, one number or a tree like the position;
            the warm-up replaces it by the variances that it meets.
        temperature: T; 1 targets the density itself.
        target_acceptance: that the warm-up adapts the step size to. The optimum in
            many dimensions is 0.65; 0.8 costs little and diverges less.
        adapt_step_size: whether the warm-up changes the step size.
        adapt_mass: whether it changes the mass.
        jitter: each trajectory has a step size of its own, uniform within this part of
            ε: without it, directions whose period divides the trajectory stand still,
            of which long trajectories and Gaussian posteriors have many (Neal, section
            3.2). The warm-up adapts ε to what it accepts so.

    Raises:
        ValueError: for fewer than one step, a step size, mass or temperature that is
            not positive, or a jitter that is not from 0 to below 1.

    References:
        Neal (2011), MCMC using Hamiltonian dynamics, sections 2.3 and 3.2.

        ```bibtex
        @incollection{neal2011mcmc,
            author = {Neal, Radford M.},
            title = {{MCMC} using {H}amiltonian dynamics},
            booktitle = {Handbook of Markov Chain Monte Carlo},
            year = {2011},
            publisher = {Chapman and Hall/CRC},
        }
        ```
    """

    num_integration_steps: int
    step_size: RealScalar = 0.1
    inverse_mass: PyTree = eqx.field(default=1.0, kw_only=True)
    temperature: float = eqx.field(default=1.0, kw_only=True)
    target_acceptance: float = eqx.field(default=0.8, kw_only=True)
    adapt_step_size: bool = eqx.field(default=True, kw_only=True)
    adapt_mass: bool = eqx.field(default=True, kw_only=True)
    jitter: float = eqx.field(default=0.0, kw_only=True)

    uses_gradient: ClassVar[bool] = True
    keeps_momentum: ClassVar[bool] = False

    def __check_init__(self):
        check_num_integration_steps(self.num_integration_steps)
        if not 0 <= self.jitter < 1:
            raise ValueError(
                f"`jitter` must be from 0 to below 1, got {self.jitter}: 0.1 takes "
                "each trajectory's step size within a tenth of `step_size`."
            )

    def step(
        self, potential: AbstractPotential, state: MCMCState, *, key: PRNGKeyArray
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`."""
        momentum_key, accept_key = jax.random.split(key)
        step_size = state.step_size
        if self.jitter:
            jitter_key, momentum_key = jax.random.split(momentum_key)
            low, high = 1 - self.jitter, 1 + self.jitter
            factor = jax.random.uniform(jitter_key, (), step_size.dtype, low, high)
            state = eqx.tree_at(lambda s: s.step_size, state, step_size * factor)
        metric = DiagonalMetric(state.inverse_mass)
        end, info = move_by_trajectory(
            self.log_density_fn(potential),
            state,
            metric.sample_momentum(key=momentum_key),
            num_integration_steps=self.num_integration_steps,
            key=accept_key,
        )
        state = move_state(state, end)
        own = lambda of: of.step_size  # not the jittered one
        return eqx.tree_at(own, state, step_size), eqx.tree_at(own, info, step_size)
