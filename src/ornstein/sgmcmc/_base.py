r"""What minibatch samplers share: one state, one info, and the pieces of a step.

Notation: $\theta$ the position, $v$ the momentum in units of the position (a step adds
it as it is), $\tilde U$ the energy estimated from a batch (N / n is in it already),
$\varepsilon$ the step size of Jospin et al. (2022), $T$ the temperature. At T = 0 every
kernel is an optimiser, and the same state goes on to be sampled from.
"""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Bool, Float, Int, Params, PRNGKeyArray, PyTree, RealScalar
from ..mcmc import AbstractKernel, AbstractState, Stage
from ..potential import AbstractPotential
from ._schedule import Schedule, at, is_sampling


class SGState(AbstractState):
    """The state of every minibatch kernel: any may go on where another stopped.

    Kernels that adapt nothing (`SGLD`, `SGHMC`, `NaiveSGHMC`) take each other's states
    as they are; those that adapt need an `adapted` of their own `init`.

    Attributes:
        position: where the chain is.
        momentum: v, the last move; zeros where nobody has set it. A kernel with other
            step sizes takes it as it is: multiply it by their ratio.
        num_steps: steps done, which schedules are read at.
        adapted: a preconditioner or a thermostat; `None` for kernels without.
    """

    position: Params
    momentum: Params
    num_steps: Int[Array, ""]
    adapted: PyTree[Array]

    def move(
        self, position: Params, momentum: Params, adapted: PyTree[Array] = None
    ) -> "SGState":
        """The state one step on; without an `adapted` it keeps its own."""
        if adapted is None:
            adapted = self.adapted
        return SGState(position, momentum, self.num_steps + 1, adapted)


class SGInfo(eqx.Module):
    r"""What a step of a minibatch kernel did.

    Attributes:
        energy: the batch's estimate of U before the step, nats.
        gradient_norm: of its gradient.
        step_size: at this step.
        is_divergent: energy, gradient or momentum are no longer finite.
        is_sampling: whether the step may be kept as a sample; `Cyclical` says no.
        kinetic_temperature: T in the long run, if the position is as hot as it should
            be; see `kinetic_temperature`. `None` for kernels without a momentum.
        acceptance_rate: probability with which a Metropolis test accepted; `None` for
            kernels without one.
    """

    energy: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    step_size: Float[Array, ""]
    is_divergent: Bool[Array, ""]
    is_sampling: Bool[Array, ""]
    kinetic_temperature: Float[Array, ""] | None = None
    acceptance_rate: Float[Array, ""] | None = None


class AbstractMinibatchKernel(AbstractKernel):
    """A transition that sees the potential through `estimate` only."""

    is_minibatch: ClassVar[bool] = True

    @abc.abstractmethod
    def noise_weight(self, state: SGState) -> RealScalar | Params:
        """What gradient noise of variance 1 is to the injected noise, in variance.

        Returns:
            One number, or one an entry; infinite for kernels that inject none.
        """


class AbstractUnadaptedKernel(AbstractMinibatchKernel):
    """A kernel whose warm-up is steps like all others: it adapts nothing in them."""

    @abc.abstractmethod
    def step(
        self, potential: AbstractPotential, state: SGState, *, key: PRNGKeyArray
    ) -> tuple[SGState, SGInfo]:
        """See `AbstractKernel`."""

    def warm_up(
        self,
        potential: AbstractPotential,
        state: SGState,
        stage: Stage,
        *,
        key: PRNGKeyArray,
    ) -> tuple[SGState, SGInfo]:
        """A step."""
        del stage
        return self.step(potential, state, key=key)


def init_state(position: Params, adapted: PyTree[Array] = None) -> SGState:
    """A chain that has done no step and is at rest."""
    zeros = jax.tree.map(jnp.zeros_like, position)
    return SGState(position, zeros, jnp.zeros((), jnp.int32), adapted)


def carried_momentum(schedule: Schedule, state: SGState) -> Params:
    r"""The last move as it would have been at this step's size.

    $v = \varepsilon p / M$, and what goes on where $\varepsilon$ changes is p: a move
    kept as it is would be hotter than the temperature at the smaller step.

    Args:
        schedule: $\varepsilon$.
        state: before the step.
    """
    if not callable(schedule):
        return state.momentum
    last = at(schedule, jnp.maximum(state.num_steps - 1, 0))
    scale = ratio(at(schedule, state.num_steps), last)
    return combine_trees((jnp.where(last > 0, scale, 0.0),), state.momentum)


def adapted_of(state: SGState, kernel: AbstractMinibatchKernel) -> PyTree[Array]:
    """What a kernel adapted, refusing the state of one that adapts nothing."""
    if state.adapted is None:
        raise ValueError(
            f"`{type(kernel).__name__}` adapts something, and this state comes from a "
            "kernel that adapts nothing: start from its own `init(potential, "
            "state.position, key=...)`."
        )
    return state.adapted


def estimate_gradient(
    potential: AbstractPotential, position: Params, *, key: PRNGKeyArray
) -> tuple[Float[Array, ""], Params]:
    """A batch's energy, and its gradient."""
    return jax.value_and_grad(lambda q: potential.estimate(q, key=key))(position)


def combine_trees(coefficients: tuple[RealScalar, ...], *trees: Params) -> Params:
    """The linear combination, in each leaf's own precision."""

    def combine(*leaves):
        terms = [
            leaf if isinstance(c, int | float) and c == 1 else like(c, leaf) * leaf
            for c, leaf in zip(coefficients, leaves, strict=True)
        ]
        return sum(terms[1:], start=terms[0])

    return jax.tree.map(combine, *trees)


def like(value: RealScalar, leaf: Array) -> Array:
    """A number in a leaf's precision."""
    return jnp.asarray(value, leaf.dtype)


def square_norm(tree: Params) -> Float[Array, ""]:
    """The sum of squares of all entries."""
    parts = [jnp.vdot(leaf, leaf).astype(float) for leaf in jax.tree.leaves(tree)]
    return sum(parts, start=jnp.zeros(()))


def num_entries(tree: Params) -> int:
    """D: the numbers in all leaves together."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def kinetic_temperature(
    momentum: Params, eta: RealScalar, lost: RealScalar = 0.0
) -> Float[Array, ""]:
    r"""The position's heat, $\frac{1}{D} E[\theta \cdot \nabla U]$, by its momentum.

    $(1 - a/2) |v|^2 / (D \eta)$ where a step takes the part $a$ of the momentum and
    then adds what is left to the position, $v' = (1 - a) v - \eta \nabla \tilde U +
    \xi$, $\theta' = \theta + v'$. At rest $E|\theta'|^2 = E|\theta|^2$, so that
    $E[\theta \cdot v'] = -\frac12 E|v|^2$ and $E[\theta' \cdot v'] = \frac12 E|v|^2$;
    the product of the first line with $\theta$ then gives $\eta E[\theta \cdot \nabla
    U] = (1 - a/2) E|v|^2$, whatever the target, the step and the noise. For $e^{-U/T}$
    the left-hand side is $\eta D T$.

    Args:
        momentum: v.
        eta: η, its square in units of the temperature.
        lost: a; 0 for a leapfrog's, which belongs to the time of the position.
    """
    mean_square = square_norm(momentum) / num_entries(momentum)
    return mean_square * (1 - lost / 2) / eta


def is_cold(temperature: Schedule) -> bool:
    """Whether no noise is ever injected, so that none has to be drawn."""
    return isinstance(temperature, int | float) and temperature == 0


def step_info(
    schedule: Schedule,
    state: SGState,
    energy: Float[Array, ""],
    gradient_square_norm: Float[Array, ""],
    kinetic_temperature: Float[Array, ""] | None = None,
    acceptance_rate: Float[Array, ""] | None = None,
) -> SGInfo:
    """The info of a step from `state`."""
    norm = jnp.sqrt(gradient_square_norm)
    is_finite = jnp.isfinite(norm) & jnp.isfinite(energy)
    if kinetic_temperature is not None:
        is_finite &= jnp.isfinite(kinetic_temperature)
    return SGInfo(
        energy=energy,
        gradient_norm=norm,
        step_size=jnp.asarray(at(schedule, state.num_steps), float),
        is_divergent=~is_finite,
        is_sampling=is_sampling(schedule, state.num_steps),
        kinetic_temperature=kinetic_temperature,
        acceptance_rate=acceptance_rate,
    )


def ratio(numerator: RealScalar, denominator: RealScalar) -> Float[Array, ""]:
    """The quotient of positive numbers, infinite over 0."""
    return jnp.asarray(numerator, float) / jnp.asarray(denominator, float)


def root(value: RealScalar) -> RealScalar:
    """A square root, 0 below 0, that leaves Python numbers Python numbers."""
    if isinstance(value, int | float):
        return math.sqrt(max(value, 0.0))
    return jnp.sqrt(jnp.maximum(value, 0.0))
