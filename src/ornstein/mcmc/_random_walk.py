"""Random-walk Metropolis, and Metropolis-Hastings with a proposal of one's own."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.mcmc.random_walk import RWState, build_rmh

from .._tree import normal_like
from .._types import Array, Float, Params, PRNGKeyArray, PyTree, RealScalar
from ..potential import AbstractPotential
from ._adaptive import AbstractAdaptiveKernel
from ._base import MCMCInfo
from ._state import MCMCState


class AbstractProposal(eqx.Module):
    """Where a Metropolis-Hastings chain may go next: g(new | given)."""

    @abc.abstractmethod
    def sample(self, position: Params, *, key: PRNGKeyArray) -> Params:
        """A draw of the new position, given this one."""

    @abc.abstractmethod
    def log_prob(self, new: Params, given: Params) -> Float[Array, ""]:
        """Log g(new | given), nats, up to a constant that both directions share."""


class RandomWalkMetropolis(AbstractAdaptiveKernel):
    r"""Propose, and accept with the Hastings ratio.

    $\min\left(1, \frac{\pi(x')\, g(x | x')}{\pi(x)\, g(x' | x)}\right)$, with $\pi =
    e^{-U / T}$, which it leaves exactly invariant. The source's eq. (11) lacks g, which
    cancels only where the proposal is symmetric, as the default is:
    $x' = x + \varepsilon M^{-1/2} \xi$ with $\xi \sim N(0, I)$. No gradients; the step
    size must fall with the square root of the dimension, so that this is for few
    parameters.

    Args:
        step_size: ε, the standard deviation of the default proposal where the mass is
            1; the warm-up replaces it. Not used by a proposal of your own.
        proposal: where to go instead. It keeps its own scale: nothing is adapted, and
            the step size is reported as it was given.
        inverse_mass: the squared scales of the default proposal, one number or a tree
            like the position; the warm-up replaces it by the variances that it meets.
        temperature: T; 1 targets the density itself.
        target_acceptance: that the warm-up adapts the step size to; 0.234 is optimal in
            many dimensions.
        adapt_step_size: whether the warm-up changes the step size.
        adapt_mass: whether it changes `inverse_mass`.

    Raises:
        ValueError: for a step size, scale or temperature that is not positive.

    References:
        Hastings (1970), Monte Carlo sampling methods using Markov chains and their
        applications; Gelman, Gilks & Roberts (1997) for the acceptance rate.

        ```bibtex
        @article{hastings1970monte,
            author = {Hastings, W. K.},
            title = {{M}onte {C}arlo sampling methods using {M}arkov chains and their
                applications},
            journal = {Biometrika},
            volume = {57},
            year = {1970},
        }
        ```
    """

    step_size: RealScalar
    proposal: AbstractProposal | None
    inverse_mass: PyTree
    temperature: float
    target_acceptance: float
    adapt_step_size: bool
    adapt_mass: bool

    uses_gradient: ClassVar[bool] = False
    keeps_momentum: ClassVar[bool] = False

    def __init__(
        self,
        step_size: RealScalar = 0.1,
        proposal: AbstractProposal | None = None,
        *,
        inverse_mass: PyTree = 1.0,
        temperature: float = 1.0,
        target_acceptance: float = 0.234,
        adapt_step_size: bool = True,
        adapt_mass: bool = True,
    ):
        self.step_size, self.proposal = step_size, proposal
        self.inverse_mass, self.temperature = inverse_mass, temperature
        self.target_acceptance = target_acceptance
        self.adapt_step_size = adapt_step_size and proposal is None
        self.adapt_mass = adapt_mass and proposal is None

    def step(
        self, potential: AbstractPotential, state: MCMCState, *, key: PRNGKeyArray
    ) -> tuple[MCMCState, MCMCInfo]:
        """See `AbstractKernel`."""
        proposal = self.proposal
        if proposal is None:
            propose, log_proposal_fn = _normal_walk(state), None
        else:
            propose = lambda key, x: proposal.sample(x, key=key)
            log_proposal_fn = lambda given, new: proposal.log_prob(
                new.position, given.position
            )
        start: Any = (state.position, state.log_density)
        end, info = build_rmh()(
            key,
            RWState(*start),
            self.log_density_fn(potential),
            propose,
            log_proposal_fn,
        )
        log_density = jnp.asarray(end.logdensity)
        moved = MCMCState(
            position=end.position,
            log_density=log_density,
            gradient=None,
            momentum=None,
            step_size=state.step_size,
            inverse_mass=state.inverse_mass,
            adaptation=state.adaptation,
        )
        return moved, MCMCInfo(
            acceptance_rate=jnp.asarray(info.acceptance_rate),
            is_accepted=jnp.asarray(info.is_accepted),
            is_divergent=jnp.asarray(False),
            energy=-log_density,
            num_gradients=jnp.asarray(0),
            step_size=state.step_size,
        )


def _normal_walk(state: MCMCState):
    """The symmetric proposal, at the state's scales."""

    def propose(key: PRNGKeyArray, position: Params) -> Params:
        noise = normal_like(position, key=key)
        return jax.tree.map(
            lambda x, m, xi: x + state.step_size.astype(x.dtype) * jnp.sqrt(m) * xi,
            position,
            state.inverse_mass,
            noise,
        )

    return propose
