"""Hamiltonian Monte Carlo whose momentum is refreshed in part."""

import math
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


class PartialHMC(AbstractAdaptiveKernel):
    r"""Hamiltonian Monte Carlo with partial momentum refreshment.

    $p' = \alpha p + \sqrt{1 - \alpha^2}\, r$ with $r \sim N(0, M)$, Neal
    (2011), section 5.3; then `HMC`'s trajectory and test. The momentum is kept when the
    end is accepted and negated when it is not, so that random walks are suppressed even
    with few leapfrog steps. Leaves $e^{-U / T}$ exactly invariant.

    `blackjax.ghmc` differs: one leapfrog step, $1 - \alpha^2$ under the name alpha, and
    a slice variable that persists in place of the test.

    Args:
        alpha: α, in [0, 1); 0 is `HMC`, near 1 works best with few steps.
        num_integration_steps: L.
        step_size: ε, in units of the position where the mass is 1. The warm-up
            replaces it, so that the default is only a start; without a warm-up give
            your own.
        inverse_mass: the diagonal of $M^{-1}$, one number or a tree like the position;
            the warm-up replaces it by the variances that it meets.
        temperature: T; 1 targets the density itself.
        target_acceptance: that the warm-up adapts the step size to; high, for each
            rejection turns the chain back.
        adapt_step_size: whether the warm-up changes the step size.
        adapt_mass: whether it changes the mass.

    Raises:
        ValueError: for an `alpha` outside [0, 1), fewer than one step, or a step size,
            mass or temperature that is not positive.

    References:
        Horowitz (1991), A generalized guided Monte Carlo algorithm; Neal (2011),
        section 5.3.

        ```bibtex
        @article{horowitz1991generalized,
            author = {Horowitz, Alan M.},
            title = {A generalized guided {M}onte {C}arlo algorithm},
            journal = {Physics Letters B},
            volume = {268},
            year = {1991},
        }
        ```
    """

    alpha: float
    num_integration_steps: int = 1
    step_size: RealScalar = 0.1
    inverse_mass: PyTree = eqx.field(default=1.0, kw_only=True)
    temperature: float = eqx.field(default=1.0, kw_only=True)
    target_acceptance: float = eqx.field(default=0.9, kw_only=True)
    adapt_step_size: bool = eqx.field(default=True, kw_only=True)
    adapt_mass: bool = eqx.field(default=True, kw_only=True)

    uses_gradient: ClassVar[bool] = True
    keeps_momentum: ClassVar[bool] = True

    def __check_init__(self):
        check_num_integration_steps(self.num_integration_steps)
        if not 0 <= self.alpha < 1:
            raise ValueError(
                f"`alpha` must lie in [0, 1), got {self.alpha}: it is the part of the "
                "momentum that is kept, and at 1 no randomness would enter."
            )

    def step(
        self, potential: AbstractPotential, state: MCMCState, *, key: PRNGKeyArray
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`."""
        momentum_key, accept_key = jax.random.split(key)
        fresh = DiagonalMetric(state.inverse_mass).sample_momentum(key=momentum_key)
        scale = math.sqrt(1 - self.alpha**2)
        momentum = jax.tree.map(
            lambda p, r: self.alpha * p + scale * r, state.momentum, fresh
        )
        end, info = move_by_trajectory(
            self.log_density_fn(potential),
            state,
            momentum,
            num_integration_steps=self.num_integration_steps,
            key=accept_key,
        )
        return move_state(state, end, end.momentum), info
