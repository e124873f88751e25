"""The state that all full-data kernels share."""

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import DualAveragingAdaptationState

from .._types import Array, Float, Params, PyTree
from ._base import AbstractState


class Adaptation(eqx.Module):
    """What the warm-up remembers.

    Attributes:
        averaging: blackjax's dual averaging of the log step size.
        moments: blackjax's running mean and variance, one for each leaf of the
            position.
    """

    averaging: DualAveragingAdaptationState
    moments: PyTree[Array]


class MCMCState(AbstractState):
    r"""Where a chain is, and the step size and mass that it moves with.

    Attributes:
        position: q.
        log_density: $-U(q) / T$, nats.
        gradient: of `log_density`; `None` for kernels that use none.
        momentum: p; `None` where each step draws its own.
        step_size: of the integrator, or of the random walk.
        inverse_mass: the diagonal of $M^{-1}$, like the position.
        adaptation: what the warm-up remembers; `None` if nothing is adapted.
    """

    position: Params
    log_density: Float[Array, ""]
    gradient: Params
    momentum: Params
    step_size: Float[Array, ""]
    inverse_mass: Params
    adaptation: Adaptation | None


def like_position(value: PyTree, position: Params) -> Params:
    """One number, or a tree of them, as arrays of the position's shapes."""
    fill = lambda number, leaf: jnp.broadcast_to(
        jnp.asarray(number, leaf.dtype), leaf.shape
    )
    return jax.tree.map(
        lambda number, below: jax.tree.map(lambda leaf: fill(number, leaf), below),
        value,
        position,
    )
