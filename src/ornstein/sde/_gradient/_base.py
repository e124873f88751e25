"""How a solve on a grid is run, and differentiated: what all ways share."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, Float, PyTree
from .._noise import Increments, inner
from .._problem import Problem, State
from .._solver import AbstractStepper, Increment
from .._stepsize import AbstractStepsize, Mesh


class Outputs(NamedTuple):
    """A solve at its output times (the first excepted, which is given).

    Attributes:
        states: leading axis: output times.
        ito: the sum of u dB up to each of them, or `None`.
        last: state and solver memory at the end, for diagnostics only.
    """

    states: State
    ito: Float[Array, " times"] | None
    last: tuple[State, Any]


class Solve(NamedTuple):
    """Everything a solve needs apart from the problem and its initial state."""

    stepper: AbstractStepper
    mesh: Mesh
    increments: Increments | None


class AbstractGradient(eqx.Module):
    """A way to differentiate a solve."""

    @abc.abstractmethod
    def check(self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize) -> None:
        """Refuse a solver or stepsize that this cannot go with."""

    @abc.abstractmethod
    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """Run the solve."""

    @abc.abstractmethod
    def backward_evaluations(self, how: Solve) -> int:
        """Drift evaluations that the reverse pass adds to the forward pass's."""


class Carry(NamedTuple):
    """What goes from step to step."""

    state: State
    memory: Any
    ito: Float[Array, ""] | None


def increment(how: Solve, number: Array, t0: Array, t1: Array) -> Increment:
    """The increment of step `number`."""
    if how.increments is None:
        return Increment(t0, t1, None, None)
    return Increment(t0, t1, *how.increments(number, t0, t1))


def steps_of(mesh: Mesh) -> tuple[Array, Array, Array]:
    """Number, start and end of every step."""
    numbers = jnp.arange(mesh.num_steps, dtype=jnp.uint32)
    return numbers, mesh.times[:-1], mesh.times[1:]


def into_units(tree: PyTree[Array], stride: int) -> PyTree[Array]:
    """The leading axis cut into units of `stride` steps."""
    return jax.tree.map(lambda x: x.reshape(-1, stride, *x.shape[1:]), tree)


def drawn_first(how: Solve) -> Increment:
    """Every step's increment, the steps leading: the same numbers as one by one."""
    return jax.vmap(lambda x: increment(how, *x))(steps_of(how.mesh))


def integrate(
    problem: Problem,
    state: State,
    how: Solve,
    *,
    scan: Callable = jax.lax.scan,
    draws_first: bool = False,
) -> Outputs:
    """Step along the mesh.

    Args:
        problem: the equation.
        state: at the first time.
        how: solver, mesh, increments.
        scan: `jax.lax.scan`, or something that computes the same.
        draws_first: whether increments are drawn before the loop, which is a little
            faster and stores them.
    """
    mesh = how.mesh

    def step(carry: Carry, x: tuple) -> tuple[Carry, None]:
        inc = x if isinstance(x, Increment) else increment(how, *x)
        after, memory, u = how.stepper.step(problem, inc, carry.state, carry.memory)
        ito = carry.ito
        if ito is not None:
            ito = ito + inner(u, inc.w).astype(ito.dtype)
        return Carry(after, memory, ito), None

    def unit(carry: Carry, xs: tuple) -> tuple[Carry, tuple]:
        if mesh.stride == 1:
            carry, _ = step(carry, jax.tree.map(lambda x: x[0], xs))
        else:
            carry, _ = scan(step, carry, xs)
        return carry, (carry.state, carry.ito)

    ito = None
    if problem.has_ito_term and state.ell is not None:
        ito = jnp.zeros_like(state.ell)
    carry = Carry(state, how.stepper.init(problem, mesh.times[0], state), ito)
    xs = drawn_first(how) if draws_first else steps_of(mesh)
    if mesh.stride == mesh.num_steps:
        carry, _ = scan(step, carry, xs)
        found = jax.tree.map(lambda x: x[None], (carry.state, carry.ito))
    else:
        carry, found = scan(unit, carry, into_units(xs, mesh.stride))
        if mesh.picks is not None:
            picks = np.asarray(mesh.picks)
            found = jax.tree.map(lambda x: x[picks], found)
    return Outputs(*found, last=(carry.state, carry.memory))


def spread_over_units(cotangents: PyTree[Array], mesh: Mesh) -> PyTree[Array]:
    """Cotangents of the outputs, with zeros at unit ends that are no outputs."""
    if mesh.picks is None:
        return cotangents
    num_units = mesh.num_steps // mesh.stride
    picks = np.asarray(mesh.picks)
    return jax.tree.map(
        lambda x: jnp.zeros((num_units, *x.shape[1:]), x.dtype).at[picks].set(x),
        cotangents,
    )


def plus(a: PyTree, b: PyTree) -> PyTree:
    """The sum of two trees that share their `None`s."""
    return jax.tree.map(jnp.add, a, b)


def with_zeros(cotangents: PyTree, like: PyTree[Array]) -> PyTree[Array]:
    """`cotangents` with zeros where differentiation found no dependence."""
    return jax.tree.map(
        lambda c, x: jax.tree.map(jnp.zeros_like, x) if c is None else c,
        cotangents,
        like,
        is_leaf=lambda c: c is None,
    )
