r"""The stochastic adjoint: gradients from a second solve, backwards in time.

Li, Wong, Chen and Duvenaud (2020), "Scalable Gradients for Stochastic Differential
Equations", and for ordinary differential equations Chen et al. (2018). In Stratonovich
form the adjoint $a = \partial L / \partial y$ and the parameters' gradient solve, from
the last time to the first along the same Brownian path,

$$dy = f\,dt + g \circ dB, \quad da = -a\,\partial_y (f\,dt + g \circ dB), \quad
d\bar\phi = -a\,\partial_\phi (f\,dt + g \circ dB).$$
"""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._convert import ito_to_stratonovich
from .._problem import Problem, State, prior_on
from .._solver import (
    AbstractStepper,
    Increment,
    RungeKuttaStepper,
    advance,
    stepper_for,
)
from .._stepsize import AbstractStepsize
from ._base import (
    AbstractGradient,
    Outputs,
    Solve,
    increment,
    integrate,
    into_units,
    plus,
    spread_over_units,
    steps_of,
    with_zeros,
)


class Backsolve(AbstractGradient):
    """The stochastic adjoint: memory that does not grow with the steps.

    Its error goes to 0 with the step: use `Reversible` where exact gradients are
    wanted. The backward solve uses the forward solver where that is a Runge-Kutta
    method for the Stratonovich form (or the equation has no noise), Heun's otherwise;
    Itô problems are converted. Gradients reach `y0` and what the vector fields close
    over or have in `args`; not the output times.
    """

    def check(self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize) -> None:
        """Goes with every solver and stepsize."""
        del solver, stepsize

    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """Forward as ever; the reverse pass is `_backward`."""
        states, last = _solve((problem, state), how)
        return Outputs(states, None, last)

    def backward_evaluations(self, how: Solve) -> int:
        """Each stage of the backward solver once a step."""
        stepper = _backward_stepper(how.stepper, how.increments is not None)
        return stepper.evaluations_per_step * how.mesh.num_steps


@eqx.filter_custom_vjp
def _solve(vjp_arg, how: Solve):
    problem, state = vjp_arg
    out = integrate(problem, state, how)
    return out.states, out.last


@_solve.def_fwd
def _forward(perturbed, vjp_arg, how: Solve):
    del perturbed
    states, last = _solve(vjp_arg, how)
    return (states, last), states


@_solve.def_bwd
def _backward(states, out_bar, perturbed, vjp_arg, how: Solve):
    del perturbed
    problem, first = vjp_arg
    mesh, has_noise = how.mesh, how.increments is not None
    problem_of = _stratonovich if has_noise and how.stepper.is_ito else _same
    stepper = _backward_stepper(how.stepper, has_noise)
    states_bar = with_zeros(out_bar[0], states)
    filled = spread_over_units(states, mesh)
    states_bar = spread_over_units(states_bar, mesh)
    is_output = jnp.ones(mesh.num_steps // mesh.stride, bool)
    if mesh.picks is not None:
        is_output = (~is_output).at[np.asarray(mesh.picks)].set(True)

    def unit(carry: tuple, xs: tuple) -> tuple[tuple, None]:
        steps, stored, stored_bar, wanted = xs
        state, adjoint, params_bar = carry
        # Start from the forward solve's own state where there is one.
        state = jax.tree.map(lambda a, b: jnp.where(wanted, a, b), stored, state)
        carry = (state, plus(adjoint, stored_bar), params_bar)

        def back(carry: tuple, x: tuple) -> tuple[tuple, None]:
            inc = increment(how, *x)
            return _step_back(stepper, problem, problem_of, inc, carry), None

        return jax.lax.scan(back, carry, steps, reverse=True)

    zeros = jax.tree.map(jnp.zeros_like, first)
    diffable = eqx.filter(problem, eqx.is_inexact_array)
    carry = (zeros, zeros, jax.tree.map(jnp.zeros_like, diffable))
    units = into_units(steps_of(mesh), mesh.stride)
    carry, _ = jax.lax.scan(
        unit, carry, (units, filled, states_bar, is_output), reverse=True
    )
    _, adjoint, params_bar = carry
    return params_bar, adjoint


def _backward_stepper(stepper: AbstractStepper, has_noise: bool) -> RungeKuttaStepper:
    """The solver of the backward pass, which is for Stratonovich equations."""
    if isinstance(stepper, RungeKuttaStepper) and not (has_noise and stepper.is_ito):
        return stepper
    heun = stepper_for(diffrax.Heun())
    assert isinstance(heun, RungeKuttaStepper)
    return heun


def _same(problem: Problem) -> Problem:
    return problem


def _stratonovich(p: Problem) -> Problem:
    """An Itô problem in Stratonovich form, with the same u = (f_q - f_p) / g."""
    drift = ito_to_stratonovich(p.drift, p.diffusion)
    prior = p.prior_drift
    if prior is not None:
        on_state = lambda t, y, args: prior_on(p.prior_drift(t, y, args), y)
        prior = ito_to_stratonovich(on_state, p.diffusion)
    return Problem(drift, p.diffusion, prior, p.args, p.path_kl)


def _step_back(
    stepper: RungeKuttaStepper,
    problem: Problem,
    problem_of: Any,
    inc: Increment,
    carry: tuple,
) -> tuple:
    """One step from `inc.t1` to `inc.t0`."""
    dt = inc.t1 - inc.t0
    stages: list[tuple] = []

    def move(s: tuple, weights: tuple) -> tuple:
        for weight, stage in zip(weights, stages, strict=True):
            s = jax.tree.map(lambda x, k, w=weight: x + w * k, s, stage)
        return s

    for row, c in zip(stepper.a_lower, stepper.c, strict=True):
        state, adjoint, _ = move(carry, row)
        t = inc.t1 - c * dt

        def forward(p: Problem, s: State, t: Any = t) -> State:
            zero = jax.tree.map(jnp.zeros_like, s)
            return advance(zero, problem_of(p).rates(t, s), inc)

        moved, pull = eqx.filter_vjp(forward, problem, state)
        params_bar, state_bar = pull(adjoint)
        backwards = jax.tree.map(jnp.negative, moved)
        stages.append((backwards, state_bar, params_bar))
    return move(carry, stepper.b_sol)
