"""Adaptive steps: diffrax's own loop, with its virtual Brownian tree."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice, OptionError
from .._types import Array, Float, PRNGKeyArray
from ._gradient import AbstractGradient, Backprop, Backsolve, Checkpointed
from ._noise import add_noise, is_none
from ._problem import Problem, State
from ._solver import name_of, needs_levy_area, stepper_for
from ._stepsize import Adaptive


class _TreeNoise(diffrax.AbstractTerm):
    """The noise of a `Problem` along a virtual Brownian tree."""

    problem: Problem
    path: diffrax.VirtualBrownianTree

    def vf(self, t: Any, y: State, args: Any) -> Any:
        """The diffusion, and what `prod` needs to know of the state's shape."""
        del args
        zeros = jax.tree.map(jnp.zeros_like, y)
        return self.problem.noise(t, y.y), zeros

    def contr(self, t0: Any, t1: Any, **kwargs: Any) -> Any:
        """The path's increment."""
        return self.path.evaluate(t0, t1, **kwargs)

    def prod(self, vf: Any, control: Any) -> State:
        """The noise g dW on the noisy leaves, zeros elsewhere."""
        g, zeros = vf
        return State(add_noise(zeros.y, g, control), zeros.ell)


def check_adaptive(solver: diffrax.AbstractSolver, has_noise: bool) -> None:
    """Refuse a solver without an error estimate, or that Itô noise rules out."""
    if isinstance(solver, diffrax.AbstractERK | diffrax.AbstractSRK):
        # RK4's weights are zeros: each step would look exact.
        tableau: Any = solver.tableau
        weights = tableau.b_error
        usable = weights is not None and bool(np.any(np.asarray(weights)))
    else:
        usable = isinstance(solver, diffrax.AbstractAdaptiveSolver)
    of_noise = diffrax.AbstractItoSolver | diffrax.AbstractStratonovichSolver
    if not usable or (has_noise and not isinstance(solver, of_noise)):
        advice = "`Heun()` or `SRA1()`" if has_noise else "`Tsit5()` or `Heun()`"
        flags = "{solver} heun or {solver} sra1" if has_noise else "{solver} heun"
        raise OptionError(
            "{} needs a solver with an error estimate{}, which {} does not have; use "
            "{}, or {}.",
            Choice("`Adaptive`", "{rtol}"),
            " of noisy steps" if usable else "",
            Choice(f"`{name_of(solver)}`", "this {solver}"),
            Choice(advice, flags),
            Choice("`stepsize=Fixed(...)`", "{dt} in place of {rtol} and {atol}"),
        )


def solve_adaptive(
    problem: Problem,
    state: State,
    ts: Float[Array, " times"],
    solver: diffrax.AbstractSolver,
    stepsize: Adaptive,
    gradient: AbstractGradient,
    key: PRNGKeyArray | None,
) -> tuple[State, dict]:
    """Solve by `diffrax.diffeqsolve`: states at `ts`, and statistics."""
    t0, t1 = ts[0], ts[-1]
    terms: Any = diffrax.ODETerm(lambda t, s, p: p.state_drift(t, s))
    controller: diffrax.AbstractStepSizeController = diffrax.PIDController(
        rtol=stepsize.rtol, atol=stepsize.atol
    )
    max_steps = stepsize.max_steps
    if problem.diffusion is not None:
        noise = problem.noise(t0, state.y)
        shape = jax.tree.map(
            lambda g, y: None if g is None else jax.ShapeDtypeStruct(y.shape, y.dtype),
            noise,
            state.y,
            is_leaf=is_none,
        )
        assert key is not None
        path = diffrax.VirtualBrownianTree(
            t0,
            t1,
            tol=stepsize.tree_tol * (t1 - t0),
            shape=shape,
            key=key,
            levy_area=diffrax.SpaceTimeLevyArea
            if needs_levy_area(solver)
            else diffrax.BrownianIncrement,
        )
        # Steps end at outputs: between them a path is a line, without its bridge.
        controller = diffrax.ClipStepSizeController(controller, step_ts=ts)
        max_steps += len(ts)
        terms = diffrax.MultiTerm(terms, _TreeNoise(problem, path))
    first = stepsize.first_dt
    sol = diffrax.diffeqsolve(
        terms,
        solver,
        t0,
        t1,
        (t1 - t0) / 100 if first is None else jnp.asarray(first, ts.dtype),
        state,
        args=problem,
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=controller,
        adjoint=_adjoint(gradient),
        max_steps=max_steps,
    )
    stepper = stepper_for(solver)
    steps = sol.stats["num_steps"]
    evaluations = steps * stepper.evaluations_per_step + stepper.evaluations_to_start
    stats = {"num_steps": steps, "num_drift_evaluations": evaluations}
    states: Any = sol.ys
    return states, stats


def _adjoint(gradient: AbstractGradient) -> diffrax.AbstractAdjoint:
    match gradient:
        case Backprop():
            return diffrax.RecursiveCheckpointAdjoint()
        case Checkpointed(every=every):
            return diffrax.RecursiveCheckpointAdjoint(checkpoints=every)
        case Backsolve():
            return diffrax.BacksolveAdjoint()
    raise OptionError(
        "{} does not go with {}; use {}.",
        Choice(f"`{type(gradient).__name__}`", "This {gradient}"),
        Choice("`Adaptive`", "{rtol}"),
        Choice(
            "`Backprop()`, `Checkpointed()` or `Backsolve()`",
            "{gradient} backprop, checkpointed or backsolve",
        ),
    )
