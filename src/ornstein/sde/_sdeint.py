"""Solve a differential equation, stochastic or not: the entry point."""

import dataclasses
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._sentence import Choice, OptionError
from .._types import Array, ArrayLike, Float, PRNGKeyArray, PyTree, VectorField
from ._adaptive import check_adaptive, solve_adaptive
from ._gradient import AbstractGradient, Backprop, Backsolve, Outputs, Reversible, Solve
from ._noise import Increments, noisy_leaves
from ._path_kl import AbstractPathKL
from ._problem import Problem, State
from ._solution import Solution
from ._solver import (
    DiffraxStepper,
    check_noise,
    name_of,
    needs_levy_area,
    stepper_for,
)
from ._stepsize import (
    AbstractGridStepsize,
    AbstractStepsize,
    Adaptive,
    Mesh,
    check_resolved,
)


def sdeint(
    drift: VectorField,
    diffusion: VectorField | None,
    y0: PyTree[Float[ArrayLike, "..."]],
    ts: Float[ArrayLike, " times"],
    *,
    key: PRNGKeyArray | None = None,
    args: Any = None,
    solver: diffrax.AbstractSolver,
    stepsize: AbstractStepsize,
    gradient: AbstractGradient | None = None,
    path_kl: AbstractPathKL | None = None,
    prior_drift: VectorField | None = None,
) -> Solution:
    r"""Solve $dy = f(t, y)\,dt + g(t, y)\,dB$.

    The solver decides between Itô (`EulerMaruyama`, `Milstein`) and Stratonovich (all
    others); for additive noise, where $g$ does not depend on $y$, they agree.

    Args:
        drift: `(t, y, args)` to $f$, a tree like `y`.
        diffusion: `(t, y, args)` to $g$, diagonal: for each leaf of `y` a number or
            an array that broadcasts to it. `None`, for a leaf or a whole subtree,
            means no noise there, and nothing is drawn for it. `None` for the function
            itself: an ordinary differential equation.
        y0: the state at `ts[0]`, any tree of arrays.
        ts: increasing times of output, the initial one first.
        key: decides the Brownian path. The increment of a step of `Fixed` or `Grid`
            is a function of `(key, step number)`; solvers with Lévy areas (`SRA1`,
            `ShARK`) have another path of the same key than the others.
        args: passed on to the vector fields.
        solver: the method; see `ornstein.sde`.
        stepsize: `Fixed`, `Grid` or `Adaptive`.
        gradient: how to differentiate: `Backprop()` (default), `Checkpointed()`,
            `Reversible()` or `Backsolve()`. Gradients reach `y0`, `args`, and whatever
            the vector fields close over.
        path_kl: accumulate the KL divergence from the prior's paths with this
            estimator: `KL()`, `FullMonteCarlo()`, `StickTheLanding()`. Its term in dB
            is the Itô sum over each step's left point, of the increments that drive
            `y`, whatever the solver.
        prior_drift: `(t, y, args)` to the prior's drift on the noisy leaves (`None` on
            others), for `path_kl`. The prior's diffusion is the posterior's.

    Returns:
        The solution at `ts`.

    Raises:
        ValueError: choices that do not go together, a step that does not divide the
            interval, times that do not increase, or are too close for single precision.
        NotImplementedError: general (matrix) noise.

    Example:
        >>> import jax, jax.numpy as jnp, ornstein as orn
        >>> ou = orn.sde.OrnsteinUhlenbeck(rate=1.0, scale=0.5)
        >>> sol = orn.sde.sdeint(
        ...     ou.drift, ou.diffusion, jnp.ones(3), jnp.array([0.0, 1.0]),
        ...     key=jax.random.key(0), solver=orn.sde.EulerMaruyama(),
        ...     stepsize=orn.sde.Fixed(dt=0.05),
        ... )
        >>> sol.ys.shape
        (2, 3)
    """
    gradient = Backprop() if gradient is None else gradient
    y0 = jax.tree.map(jnp.asarray, y0)
    _check(diffusion, y0, ts, key, solver, stepsize, gradient, path_kl, prior_drift)
    dtype = jnp.result_type(*jax.tree.leaves(y0))
    check_resolved(stepsize, ts, dtype)
    state = State(y0, None if path_kl is None else jnp.zeros((), dtype))
    problem = Problem(drift, diffusion, prior_drift, args, path_kl)
    # A custom gradient must see every parameter; so must an Itô term that stops them.
    if isinstance(gradient, Reversible | Backsolve) or problem.has_ito_term:
        problem = _convert_closures(problem, jnp.asarray(ts, dtype)[0], y0)

    if isinstance(stepsize, Adaptive):
        times = jnp.asarray(ts, dtype)
        states, stats = solve_adaptive(
            problem, state, times, solver, stepsize, gradient, key
        )
        return Solution(times, states.y, states.ell, states.ell, stats)

    assert isinstance(stepsize, AbstractGridStepsize)
    mesh = stepsize.mesh(ts)
    mesh = dataclasses.replace(mesh, times=mesh.times.astype(dtype))
    increments = _increments(problem, state, mesh, solver, key)
    how = Solve(stepper_for(solver), mesh, increments)
    out = gradient.solve(problem, state, how)
    return _solution(jnp.asarray(ts, dtype), state, out, how, gradient)


def _solution(
    ts: Array, state: State, out: Outputs, how: Solve, gradient: AbstractGradient
) -> Solution:
    prepend = lambda first, rest: jnp.concatenate([first[None], rest])
    y, ell = jax.tree.map(prepend, state, out.states)
    path_kl = ell
    if out.ito is not None:
        path_kl = ell + jnp.concatenate([jnp.zeros_like(ell[:1]), out.ito])
    stepper, num_steps = how.stepper, how.mesh.num_steps
    stats: dict[str, Any] = {
        "num_steps": num_steps,
        "num_drift_evaluations": num_steps * stepper.evaluations_per_step
        + stepper.evaluations_to_start,
        "num_drift_evaluations_backward": gradient.backward_evaluations(how),
    }
    stats |= stepper.final_stats(*jax.lax.stop_gradient(out.last))
    return Solution(ts, y, path_kl, ell, stats)


def _increments(
    problem: Problem,
    state: State,
    mesh: Mesh,
    solver: diffrax.AbstractSolver,
    key: PRNGKeyArray | None,
) -> Increments | None:
    if problem.diffusion is None:
        return None
    noise = eqx.filter_eval_shape(problem.noise, mesh.times[0], state.y)
    shapes, treedef = noisy_leaves(noise, state.y)
    assert key is not None
    return Increments(key, shapes, treedef, mesh.num_fine, needs_levy_area(solver))


def _convert_closures(problem: Problem, t0: Array, y0: PyTree[Array]) -> Problem:
    """Make what the vector fields close over part of the problem's tree."""
    args = _with_arrays(problem.args)

    def convert(fn: Any) -> Any:
        if fn is None:
            return None
        return _with_arrays(eqx.filter_closure_convert(fn, t0, y0, args))

    return Problem(
        convert(problem.drift),
        convert(problem.diffusion),
        convert(problem.prior_drift),
        args,
        problem.path_kl,
    )


def _with_arrays(tree: PyTree) -> PyTree:
    """The same with arrays for numbers that are differentiated, such as `grad(f)(0.7)`.

    Outside `jit` the value behind such a tracer is a Python float. Equinox's custom
    gradients see through the tracer, take the float for a constant, and give 0.
    """
    is_seen = eqx.is_inexact_array
    return jax.tree.map(lambda a: jnp.asarray(a) if is_seen(a) else a, tree)


def _check(
    diffusion: Any,
    y0: Any,
    ts: Any,
    key: Any,
    solver: Any,
    stepsize: Any,
    gradient: Any,
    path_kl: Any,
    prior_drift: Any,
) -> None:
    for name, value, base, example in (
        ("stepsize", stepsize, AbstractStepsize, "Fixed(dt=0.05)"),
        ("gradient", gradient, AbstractGradient, "Backprop()"),
    ):
        if not isinstance(value, base):
            raise TypeError(
                f"`{name}` must be an object like `orn.sde.{example}`, got {value!r}."
            )
    stepper = stepper_for(solver)
    if not jax.tree.leaves(y0):
        raise ValueError("`y0` has no arrays; give the state at the first time.")
    for leaf in jax.tree.leaves(y0):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise TypeError(
                f"`y0` must hold real floating-point arrays, got {leaf.dtype}; convert "
                "it with `.astype(float)`."
            )
    dtypes = sorted({str(leaf.dtype) for leaf in jax.tree.leaves(y0)})
    is_on_grid = isinstance(stepsize, AbstractGridStepsize)
    if len(dtypes) > 1 and is_on_grid and isinstance(stepper, DiffraxStepper):
        raise TypeError(
            f"`{name_of(solver)}` steps states of one type, and `y0` has leaves of "
            f"{' and '.join(dtypes)}: give them one type, or use `EulerMaruyama()`, "
            "`Milstein()`, `Heun()`, `Midpoint()` or `ReversibleHeun()`."
        )
    if jnp.ndim(ts) != 1 or jnp.shape(ts)[0] < 2:
        raise ValueError(
            f"`ts` must be at least two times, got shape {jnp.shape(ts)}; the initial "
            "time comes first."
        )
    if not isinstance(ts, Tracer):
        known = np.asarray(ts)
        if not np.all(np.isfinite(known)) or np.any(np.diff(known) <= 0):
            raise ValueError(f"`ts` must be finite and increase strictly, got {known}.")
    if diffusion is None:
        check_noise(solver)
    elif key is None:
        raise ValueError(
            "A stochastic equation needs `key`; pass one from `jax.random.key(seed)`."
        )
    gradient.check(solver, stepsize)
    if isinstance(stepsize, Adaptive):
        check_adaptive(solver, diffusion is not None)
        if stepper.is_ito and diffusion is not None:
            raise OptionError(
                "{} converges to the Stratonovich solution, and {} is an Itô solver; "
                "use {}.",
                Choice("`Adaptive`", "{rtol}"),
                Choice(f"`{name_of(solver)}`", "this {solver}"),
                Choice("`Heun()` and `ito_to_stratonovich`", "{solver} heun"),
            )
    if path_kl is None:
        return
    if diffusion is None or prior_drift is None:
        raise ValueError(
            "`path_kl` compares a stochastic equation with a prior: give `diffusion` "
            "and `prior_drift`."
        )
    for choice in (stepsize, gradient):
        if path_kl.has_ito_term and isinstance(choice, Adaptive | Backsolve):
            raise ValueError(
                f"`{type(path_kl).__name__}` sums u dB over fixed steps, which "
                f"`{type(choice).__name__}` does not have; use `path_kl=KL()`."
            )
