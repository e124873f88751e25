"""The no-U-turn sampler."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.mcmc.nuts import iterative_nuts_proposal

from .._types import PRNGKeyArray, PyTree, RealScalar
from ..potential import AbstractPotential
from ._adaptive import AbstractAdaptiveKernel
from ._base import MCMCInfo
from ._hamiltonian import integrator_state, leapfrog, move_state
from ._metric import DiagonalMetric
from ._state import MCMCState


class NUTS(AbstractAdaptiveKernel):
    r"""The no-U-turn sampler: `HMC` that finds the length of its trajectories.

    A trajectory is doubled, forwards or backwards at random, until it turns back on
    itself; its states are drawn with weights $e^{-H}$. Leaves $e^{-U / T}$ exactly
    invariant; up to $2^d - 1$ gradients of the whole data a step, d being
    `max_num_doublings`, and memory for 2 d momenta. blackjax's implementation:
    multinomial, iterative.

    Args:
        step_size: ε, in units of the position where the mass is 1. The warm-up
            replaces it, so that the default is only a start; without a warm-up give
            your own.
        max_num_doublings: d, at least 1.
        inverse_mass: the diagonal of $M^{-1}$, one number or a tree like the position;
            the warm-up replaces it by the variances that it meets.
        temperature: T; 1 targets the density itself.
        target_acceptance: that the warm-up adapts the step size to: the mean over the
            trajectory; 0.8 is Stan's.
        adapt_step_size: whether the warm-up changes the step size.
        adapt_mass: whether it changes the mass.

    Raises:
        ValueError: for no doublings, or a step size, mass or temperature that is not
            positive.

    References:
        Hoffman & Gelman (2014); Betancourt (2017), A conceptual introduction to
        Hamiltonian Monte Carlo, appendix A; Phan et al. (2019) for the iterative form.

        ```bibtex
        @article{hoffman2014nuts,
            author = {Hoffman, Matthew D. and Gelman, Andrew},
            title = {The no-{U}-turn sampler},
            journal = {Journal of Machine Learning Research},
            volume = {15},
            year = {2014},
        }
        ```
    """

    step_size: RealScalar = 0.1
    max_num_doublings: int = 10
    inverse_mass: PyTree = eqx.field(default=1.0, kw_only=True)
    temperature: float = eqx.field(default=1.0, kw_only=True)
    target_acceptance: float = eqx.field(default=0.8, kw_only=True)
    adapt_step_size: bool = eqx.field(default=True, kw_only=True)
    adapt_mass: bool = eqx.field(default=True, kw_only=True)

    uses_gradient: ClassVar[bool] = True
    keeps_momentum: ClassVar[bool] = False

    def __check_init__(self):
        if self.max_num_doublings < 1:
            raise ValueError(
                "`max_num_doublings` must be at least 1, got "
                f"{self.max_num_doublings}: it bounds a trajectory at 2 to that power "
                "leapfrog steps."
            )

    def step(
        self, potential: AbstractPotential, state: MCMCState, *, key: PRNGKeyArray
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`. A move counts as accepted if the chain has moved."""
        momentum_key, trajectory_key = jax.random.split(key)
        metric = DiagonalMetric(state.inverse_mass)
        propose = iterative_nuts_proposal(
            leapfrog(self.log_density_fn(potential), metric),
            metric.kinetic_energy,
            metric.check_turning,  # pyright: ignore[reportArgumentType]
            self.max_num_doublings,
        )
        start = integrator_state(state, metric.sample_momentum(key=momentum_key))
        # blackjax sums up energies from zeros of JAX's default type.
        log_density: Any = jnp.asarray(state.log_density, jnp.result_type(float))
        start = start._replace(logdensity=log_density)
        end, info = propose(trajectory_key, start, state.step_size)
        has_moved = jax.tree.map(
            lambda a, b: jnp.any(a != b), state.position, end.position
        )
        return move_state(state, end), MCMCInfo(
            acceptance_rate=info.acceptance_rate,
            is_accepted=jnp.any(jnp.stack(jax.tree.leaves(has_moved))),
            is_divergent=info.is_divergent,
            energy=info.energy,
            num_gradients=info.num_integration_steps,
            step_size=state.step_size,
        )
