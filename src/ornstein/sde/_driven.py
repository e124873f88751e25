r"""Ordinary differential equations along a path that is given on the solve's grid.

$dy = f(t, y, x(t))\,dt$, where $x$ is known at the grid's times and linear between
them: what is left of a stochastic equation once its noise has been turned into a path.
The path's values go into the loop step by step, as a scan's inputs: a vector field that
looked them up would add a whole path of zeros to its gradient at every step.
"""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice, OptionError
from .._types import Array, ArrayLike, Float, PyTree, RealScalar
from ._gradient import AbstractGradient, Backprop, Checkpointed
from ._problem import Problem, State
from ._solution import Solution
from ._solver import Increment, check_noise, stepper_for
from ._stepsize import AbstractGridStepsize, AbstractStepsize

DrivenField = Callable[[RealScalar, PyTree[Array], PyTree[Array]], PyTree[Array]]
"""`(t, y, x)` to dy/dt, a tree like `y`."""


def grid_of(
    stepsize: AbstractStepsize, ts: Float[ArrayLike, " times"]
) -> Float[np.ndarray, " grid"]:
    """The times between which a solve steps.

    Args:
        stepsize: `Fixed`, or `Grid` with known times.
        ts: times that must be among them, the first and the last of the solve included.

    Raises:
        ValueError: for steps that are not known beforehand, or do not fit `ts`.
    """
    if not isinstance(stepsize, AbstractGridStepsize):
        raise OptionError(
            "A path that is given at a solve's steps needs steps that are known "
            "beforehand, got {}: use {}.",
            Choice(f"`{type(stepsize).__name__}`", "{rtol} or {atol}"),
            Choice("`Fixed(dt)`", "{dt}"),
        )
    with jax.ensure_compile_time_eval():
        return np.asarray(stepsize.mesh(ts).times, np.float64)


def solve_driven(
    drift: DrivenField,
    y0: PyTree[Float[Array, "..."]],
    path: PyTree[Float[Array, "grid ..."]],
    times: Float[np.ndarray, " grid"],
    *,
    solver: diffrax.AbstractSolver,
    gradient: AbstractGradient | None = None,
    is_dense: bool = False,
) -> Solution:
    r"""Solve $dy = f(t, y, x(t))\,dt$ step by step along the grid.

    Args:
        drift: f.
        y0: the state at the first time, a tree of arrays.
        path: x at every time of the grid.
        times: the grid.
        solver: a method for ordinary differential equations; see `ornstein.sde`.
        gradient: `Backprop()` (default) or `Checkpointed()`; gradients reach `y0`,
            `path` and what `drift` closes over.
        is_dense: whether the state is wanted at every time, not at the ends alone.

    Raises:
        ValueError: for a solver of equations with noise, or another gradient.
    """
    check_noise(solver)
    gradient = Backprop() if gradient is None else gradient
    if not isinstance(gradient, Backprop | Checkpointed):
        raise ValueError(
            f"Along a given path a solve has no `{type(gradient).__name__}` gradient: "
            "use `Checkpointed()`, which needs as little memory, or `Backprop()`."
        )
    stepper = stepper_for(solver)
    dtype = jnp.result_type(*jax.tree.leaves(y0))
    ts = jnp.asarray(times, dtype)

    def problem(t0: Array, t1: Array, left: PyTree, right: PyTree) -> Problem:
        def field(t: RealScalar, y: PyTree[Array], args: Any) -> PyTree[Array]:
            del args
            share = (t - t0) / (t1 - t0)
            between = lambda a, b: a + share.astype(a.dtype) * (b - a)
            return drift(t, y, jax.tree.map(between, left, right))

        return Problem(field, None, None, None, None)

    def step(carry: tuple, xs: tuple) -> tuple[tuple, PyTree | None]:
        state, memory = carry
        inc = Increment(xs[0], xs[1], None, None)
        state, memory, _ = stepper.step(problem(*xs), inc, state, memory)
        return (state, memory), state.y if is_dense else None

    halves = lambda a: (a[:-1], a[1:])
    left = jax.tree.map(lambda a: halves(a)[0], path)
    right = jax.tree.map(lambda a: halves(a)[1], path)
    xs = (*halves(ts), left, right)
    first = jax.tree.map(lambda a: a[0], xs)
    state = State(y0, None)
    memory = stepper.init(problem(*first), ts[0], state)
    (state, memory), found = gradient.scan(step, (state, memory), xs)
    ends = found if is_dense else jax.tree.map(lambda a: a[None], state.y)
    prepend = lambda a, rest: jnp.concatenate([a[None], rest])
    num_steps = len(times) - 1
    stats: dict[str, Any] = {
        "num_steps": num_steps,
        "num_drift_evaluations": num_steps * stepper.evaluations_per_step
        + stepper.evaluations_to_start,
    }
    stats |= stepper.final_stats(*jax.lax.stop_gradient((state, memory)))
    return Solution(
        ts if is_dense else ts[jnp.array([0, -1])],
        jax.tree.map(prepend, y0, ends),
        None,
        None,
        stats,
    )
