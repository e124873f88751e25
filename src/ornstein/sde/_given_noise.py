r"""Stochastic equations along a Brownian path that is given, as a function of it.

`sdeint` draws the increments of its path from a key. Here they are an argument, so that
the solution is a plain function of them: what a posterior over paths moves. The steps
are `sdeint`'s own, and the same increments give the same solution, bit for bit.
"""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, PyTree, Shaped, VectorField
from ._gradient import AbstractGradient, Backprop, Checkpointed, Solve, integrate
from ._problem import Problem, State
from ._solution import Solution
from ._solver import name_of, needs_levy_area, stepper_for
from ._stepsize import Mesh


class _GivenIncrements(eqx.Module):
    """What `Increments` draws, looked up; before the loop, so once for all steps."""

    w: PyTree[Float[Array, "steps ..."]]

    def __call__(
        self, step: Shaped[Array, ""], t0: Array, t1: Array
    ) -> tuple[PyTree[Array], None]:
        """The increment of step number `step`, and no Lévy area."""
        del t0, t1
        return jax.tree.map(lambda w: w[step], self.w), None


def check_given_noise(solver: diffrax.AbstractSolver, gradient: AbstractGradient):
    """Refuse a solver or gradient that given increments cannot go with.

    Raises:
        ValueError: for a solver that needs more of a path than its increments, or a
            gradient that draws the path again.
    """
    if needs_levy_area(solver):
        raise ValueError(
            f"`{name_of(solver)}` needs Lévy areas beside increments, and a path that "
            "is given at a solve's steps has none: use `EulerMaruyama()`, `Heun()` or "
            "`Midpoint()`."
        )
    if not isinstance(gradient, Backprop | Checkpointed):
        raise ValueError(
            f"Along a given path a solve has no `{type(gradient).__name__}` gradient: "
            "use `Checkpointed()`, which needs as little memory, or `Backprop()`."
        )


def solve_given_noise(
    drift: VectorField,
    diffusion: VectorField,
    y0: PyTree[Float[Array, "..."]],
    increments: PyTree[Float[Array, "steps ..."]],
    times: Float[np.ndarray, " grid"],
    *,
    solver: diffrax.AbstractSolver,
    gradient: AbstractGradient | None = None,
) -> Solution:
    r"""Solve $dy = f(t, y)\,dt + g(t, y)\,dB$ step by step, with B given.

    Args:
        drift: `(t, y, args)` to f; `args` is `None`.
        diffusion: `(t, y, args)` to g, diagonal, on every leaf of `y`.
        y0: the state at the first time, a tree of arrays.
        increments: of B, one for each step: a tree like `y0`.
        times: between which the steps are.
        solver: as of `sdeint`; it decides between Itô and Stratonovich.
        gradient: `Backprop()` (default) or `Checkpointed()`; gradients reach `y0`,
            `increments` and what the vector fields close over.

    Returns:
        The solution at every time.

    Raises:
        ValueError: for a solver that needs Lévy areas, or another gradient.
    """
    gradient = Backprop() if gradient is None else gradient
    check_given_noise(solver, gradient)
    assert isinstance(gradient, Backprop | Checkpointed)
    dtype = jnp.result_type(*jax.tree.leaves(y0))
    mesh = Mesh(jnp.asarray(times, dtype), num_fine=1, stride=1, picks=None)
    given: Any = _GivenIncrements(increments)
    how = Solve(stepper_for(solver), mesh, given)
    out = integrate(
        Problem(drift, diffusion, None, None, None),
        State(y0, None),
        how,
        scan=gradient.scan,
        draws_first=True,
    )
    stats: dict[str, Any] = {
        "num_steps": mesh.num_steps,
        "num_drift_evaluations": mesh.num_steps * how.stepper.evaluations_per_step
        + how.stepper.evaluations_to_start,
    }
    stats |= how.stepper.final_stats(*jax.lax.stop_gradient(out.last))
    prepend = lambda first, rest: jnp.concatenate([first[None], rest])
    ys = jax.tree.map(prepend, y0, out.states.y)
    return Solution(mesh.times, ys, None, None, stats)
