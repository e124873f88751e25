"""Transitions of Markov chains: the contract of all samplers, minibatch or not."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from blackjax.adaptation.window_adaptation import build_schedule

from .._types import Array, Bool, Float, Int, Params, PRNGKeyArray, PyTree
from ..potential import AbstractPotential


class AbstractState(eqx.Module):
    """What the next step needs.

    Attributes:
        position: where the chain is.
    """

    position: eqx.AbstractVar[Params]


class Stage(NamedTuple):
    """Where in the warm-up a step is; arrays, so that steps can be scanned over.

    Attributes:
        is_slow: the step belongs to a window in which the mass is estimated.
        is_window_end: it is the last of such a window: the mass is set here.
        is_last: it is the last of the warm-up: what was adapted is fixed here.
        part: of the warm-up that is over before it, in [0, 1).
    """

    is_slow: Bool[Array, "*steps"]
    is_window_end: Bool[Array, "*steps"]
    is_last: Bool[Array, "*steps"]
    part: Float[Array, "*steps"]


class AbstractKernel(eqx.Module):
    """One transition of a Markov chain, for any potential.

    A step draws all its randomness from its key. Kernels hold settings; what changes
    from step to step, an adapted step size included, is in the state, so that chains
    run side by side under `jax.vmap`.

    Attributes:
        is_minibatch: whether a step sees a batch of the rows, through `estimate`, and
            not the whole potential.
    """

    is_minibatch: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def init(
        self, potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
    ) -> AbstractState:
        """The state of a chain that starts at a position."""

    @abc.abstractmethod
    def step(
        self, potential: AbstractPotential, state: AbstractState, *, key: PRNGKeyArray
    ) -> tuple[AbstractState, PyTree[Array]]:
        """One transition.

        Returns:
            The next state; and an info of scalars (floats, integers, booleans) for
            people to read.
        """

    @abc.abstractmethod
    def warm_up(
        self,
        potential: AbstractPotential,
        state: AbstractState,
        stage: Stage,
        *,
        key: PRNGKeyArray,
    ) -> tuple[AbstractState, PyTree[Array]]:
        """One transition that also adapts what the kernel adapts.

        Its samples are of no fixed distribution and are thrown away.
        """


class MCMCInfo(eqx.Module):
    """What a step of a full-data sampler did.

    Attributes:
        acceptance_rate: the probability with which its proposal was accepted.
        is_accepted: whether it was.
        is_divergent: whether the energy error was so large that the integration failed.
        energy: potential plus kinetic energy of the new state, nats.
        num_gradients: gradients of the potential that it took.
        step_size: of the integrator, before a jitter.
    """

    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    is_divergent: Bool[Array, ""]
    energy: Float[Array, ""]
    num_gradients: Int[Array, ""]
    step_size: Float[Array, ""]


def warm_up_stages(num_steps: int) -> Stage:
    """Stan's schedule (fast, slow windows that double, fast), and the part done.

    Args:
        num_steps: of the whole warm-up.
    """
    schedule = jnp.asarray(build_schedule(num_steps)).reshape(-1, 2)
    is_slow, is_window_end = schedule.T == 1
    step = jnp.arange(num_steps)
    return Stage(
        is_slow=is_slow,
        is_window_end=is_window_end,
        is_last=step == num_steps - 1,
        part=step / num_steps,
    )
