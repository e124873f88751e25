"""Langevin Monte Carlo."""

from typing import ClassVar

import jax

from .._types import PRNGKeyArray, PyTree, RealScalar
from ..potential import AbstractPotential
from ._adaptive import AbstractAdaptiveKernel
from ._base import MCMCInfo
from ._hamiltonian import move_by_trajectory, move_state
from ._metric import DiagonalMetric
from ._state import MCMCState


class Langevin(AbstractAdaptiveKernel):
    r"""Langevin Monte Carlo: `HMC` with one leapfrog step.

    $q' = q - \tfrac{\varepsilon^2}{2} M^{-1} \nabla U(q) / T +
    \varepsilon M^{-1} p$ with $p \sim N(0, M)$: Neal (2011), section 5.2. The step
    size is the leapfrog's, as there; in terms of the Langevin equation it is the square
    root of the time step, and the step size of `blackjax.mala` is $\varepsilon^2 / 2$.
    One gradient of the whole data a step.

    Args:
        step_size: ε, in units of the position where the mass is 1; the warm-up
            replaces it.
        adjusted: whether a Metropolis test follows, which leaves $e^{-U / T}$ exactly
            invariant. Without it the chain is **biased**, by $O(\varepsilon^2)$: its
            variance on a Gaussian of variance s is $s / (1 - \varepsilon^2 / 4 s)$, and
            it diverges for $\varepsilon^2 > 4 s$. The acceptance rate of the test that
            was not taken is still reported. Nothing is adapted then, for the step size
            sets the bias: it stays as it was given.
        inverse_mass: the diagonal of $M^{-1}$, one number or a tree like the position;
            the warm-up replaces it by the variances that it meets.
        temperature: T; 1 targets the density itself.
        target_acceptance: that the warm-up adapts the step size to; 0.574 is optimal in
            many dimensions.
        adapt_step_size: whether the warm-up changes the step size.
        adapt_mass: whether it changes the mass.

    Raises:
        ValueError: for a step size, mass or temperature that is not positive.

    References:
        Roberts & Rosenthal (1998), Optimal scaling of discrete approximations to
        Langevin diffusions; Neal (2011), MCMC using Hamiltonian dynamics, section 5.2.

        ```bibtex
        @article{roberts1998optimal,
            author = {Roberts, Gareth O. and Rosenthal, Jeffrey S.},
            title = {Optimal scaling of discrete approximations to {L}angevin
                diffusions},
            journal = {Journal of the Royal Statistical Society, Series B},
            volume = {60},
            year = {1998},
        }
        ```
    """

    step_size: RealScalar
    adjusted: bool
    inverse_mass: PyTree
    temperature: float
    target_acceptance: float
    adapt_step_size: bool
    adapt_mass: bool

    uses_gradient: ClassVar[bool] = True
    keeps_momentum: ClassVar[bool] = False

    def __init__(
        self,
        step_size: RealScalar,
        adjusted: bool = True,
        *,
        inverse_mass: PyTree = 1.0,
        temperature: float = 1.0,
        target_acceptance: float = 0.574,
        adapt_step_size: bool = True,
        adapt_mass: bool = True,
    ):
        self.step_size, self.adjusted = step_size, adjusted
        self.inverse_mass, self.temperature = inverse_mass, temperature
        self.target_acceptance = target_acceptance
        self.adapt_step_size = adapt_step_size and adjusted
        self.adapt_mass = adapt_mass and adjusted

    def step(
        self, potential: AbstractPotential, state: MCMCState, *, key: PRNGKeyArray
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`."""
        momentum_key, accept_key = jax.random.split(key)
        metric = DiagonalMetric(state.inverse_mass)
        end, info = move_by_trajectory(
            self.log_density_fn(potential),
            state,
            metric.sample_momentum(key=momentum_key),
            num_integration_steps=1,
            is_adjusted=self.adjusted,
            key=accept_key,
        )
        return move_state(state, end), info
