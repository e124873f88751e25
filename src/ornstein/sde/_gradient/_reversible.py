r"""Exact gradients in constant memory, by walking a reversible solver backwards.

Kidger, Foster, Li and Lyons (2021), "Efficient and Accurate Gradients for Neural SDEs",
algorithms 1 and 2. Notation: $y_k$ state, $z_k$ its shadow ($\hat y$ there), $F_k = (f,
g)(t_k, z_k)$, and for a step $D_k F = f h_k + g \Delta W_k$:

$$z_{k+1} = 2 y_k - z_k + D_k F_k, \quad
y_{k+1} = y_k + \tfrac12 D_k F_k + \tfrac12 D_k F_{k+1}.$$

Backwards, $z_k = 2 y_{k+1} - z_{k+1} - D_k F_{k+1}$ needs no new evaluation, $F_k$ is
then evaluated *and linearised* once, and gives $y_k$. With $\bar y, \bar z$ for the
cotangents, $\bar y_k = \bar y_{k+1} + 2 \bar z_{k+1}$ (plus the output's), and $F_k$
enters $D_k F_k$ with cotangent $\bar z_{k+1} + \tfrac12 \bar y_{k+1}$ and $D_{k-1} F_k$
with $\tfrac12 \bar y_k$: both are known when $F_k$ is linearised, so that one
linearisation a step is enough. Then $\bar z_k = -\bar z_{k+1} + F'(z_k)^T \dots$
"""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from ..._sentence import Choice, OptionError
from ..._types import Array, Float
from .._noise import inner
from .._problem import Problem, Rates, State
from .._solver import Increment, advance, name_of
from .._stepsize import AbstractGridStepsize, AbstractStepsize
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


class Reversible(AbstractGradient):
    """Exact gradients in memory that does not grow with the steps.

    With `ReversibleHeun` on a fixed grid only. The state is reconstructed backwards,
    which is exact up to rounding while the solver is stable: its errors grow like
    exp(rate × T), so keep that near 1, and watch `stats["max_reversible_gap"]`.
    Gradients reach `y0` and what the vector fields close over or have in `args`; not
    the output times. States are kept at every multiple of the largest number of steps
    that divides all output intervals: few for regular times, each step for times such
    as 0, 0.333 and 1.
    """

    def check(self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize) -> None:
        """Refuse anything but `ReversibleHeun` on a fixed grid."""
        if not isinstance(solver, diffrax.ReversibleHeun):
            raise OptionError(
                "{} walks the solver backwards, which {} does not allow; use {}, or "
                "{}.",
                Choice("`Reversible`", "{gradient} reversible"),
                Choice(f"`{name_of(solver)}`", "this {solver}"),
                Choice("`solver=ReversibleHeun()`", "{solver} reversible-heun"),
                Choice("`gradient=Checkpointed()`", "{gradient} checkpointed"),
            )
        if not isinstance(stepsize, AbstractGridStepsize):
            raise OptionError(
                "{} needs a fixed grid, got {}; use {}, or {}.",
                Choice("`Reversible`", "{gradient} reversible"),
                Choice(f"`{type(stepsize).__name__}`", "{rtol} or {atol}"),
                Choice("`stepsize=Fixed(...)`", "{dt}"),
                Choice("`gradient=Backsolve()`", "{gradient} backsolve"),
            )

    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """Forward as ever; the reverse pass is `_backward`."""
        states, ito, last = _solve((problem, state), how)
        return Outputs(states, ito, last)

    def backward_evaluations(self, how: Solve) -> int:
        """One at each grid time."""
        return how.mesh.num_steps + 1


class _Node(NamedTuple):
    """A grid time on the way back: values, cotangents, and the step that led to it."""

    state: State
    shadow: State
    rates: Rates
    state_bar: State
    shadow_bar: State
    inc: Increment
    problem_bar: Any


@eqx.filter_custom_vjp
def _solve(vjp_arg, how: Solve):
    problem, state = vjp_arg
    return tuple(integrate(problem, state, how))


@_solve.def_fwd
def _forward(perturbed, vjp_arg, how: Solve):
    del perturbed
    out = _solve(vjp_arg, how)
    states, ito, last = out
    return out, (last, states, ito)


@_solve.def_bwd
def _backward(residuals, out_bar, perturbed, vjp_arg, how: Solve):
    del perturbed
    problem, _ = vjp_arg
    (state, (shadow, rates)), states, ito = residuals
    states_bar, ito_bar, end_bar = out_bar
    states_bar = spread_over_units(with_zeros(states_bar, states), how.mesh)
    if ito is not None:
        ito_bar = spread_over_units(with_zeros(ito_bar, ito), how.mesh)
        # A step's u dB is part of this and of every later output.
        ito_bar = jnp.cumsum(ito_bar[::-1])[::-1]

    # The step before the first has length 0: it moves nothing.
    numbers, starts, ends = steps_of(how.mesh)
    before = (numbers - 1, jnp.concatenate([starts[:1], starts[:-1]]), starts)

    # At the last time only the step that led there has used F.
    last_bar = jax.tree.map(lambda x: x[-1], states_bar)
    # A second derivative is also of what a first one's reverse pass starts from.
    is_second = bool(jax.tree.leaves(end_bar))
    if is_second:
        y_bar, (z_bar, rates_bar) = with_zeros(end_bar, residuals[0])
        last_bar = plus(last_bar, y_bar)
    inc = increment(how, numbers[-1], starts[-1], ends[-1])
    _, pull = eqx.filter_vjp(lambda p, z: _products(p, z, inc, inc), problem, shadow)
    half = jax.tree.map(lambda x: x / 2, last_bar)
    nothing = jax.tree.map(jnp.zeros_like, last_bar)
    no_ito = None if ito is None else jnp.zeros_like(ito_bar[-1])
    problem_bar, shadow_bar = pull((nothing, half, no_ito))
    if is_second:
        _, pull = eqx.filter_vjp(lambda p, z: p.rates(inc.t1, z), problem, shadow)
        bars = plus((problem_bar, shadow_bar), pull(rates_bar))
        problem_bar, shadow_bar = bars[0], plus(bars[1], z_bar)
    node = _Node(state, shadow, rates, last_bar, shadow_bar, inc, problem_bar)

    units = into_units(before, how.mesh.stride)
    # The output at a unit's start is the end of the unit before.
    starts_bar = jax.tree.map(
        lambda x: jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]]), states_bar
    )
    is_start = jnp.arange(how.mesh.stride) == 0

    def unit(node: _Node, xs: tuple) -> tuple[_Node, None]:
        steps, start_bar, step_ito_bar = xs

        def back(node: _Node, x: tuple) -> tuple[_Node, None]:
            (number, t0, t1), at_start = x
            extra = None
            if how.mesh.stride != how.mesh.num_steps:
                extra = jax.tree.map(lambda b: jnp.where(at_start, b, 0), start_bar)
            inc = increment(how, number, t0, t1)
            return _step_back(problem, node, inc, step_ito_bar, extra), None

        return jax.lax.scan(back, node, (steps, is_start), reverse=True)

    node, _ = jax.lax.scan(unit, node, (units, starts_bar, ito_bar), reverse=True)
    return node.problem_bar, plus(node.state_bar, node.shadow_bar)


def _step_back(
    problem: Problem,
    node: _Node,
    before: Increment,
    ito_bar: Float[Array, ""] | None,
    output_bar: State | None,
) -> _Node:
    """From grid time k + 1 to grid time k; `before` is the step that led to k."""
    inc = node.inc
    reflected = jax.tree.map(lambda y, z: 2 * y - z, node.state, node.shadow)
    shadow = advance(reflected, node.rates, inc, -1.0)

    def products(p: Problem, z: State) -> tuple[tuple, Rates]:
        rates = p.rates(inc.t0, z)
        return _contract(rates, z, inc, before), rates

    _, pull, rates = eqx.filter_vjp(products, problem, shadow, has_aux=True)
    state = advance(advance(node.state, node.rates, inc, -0.5), rates, inc, -0.5)

    state_bar = jax.tree.map(lambda y, z: y + 2 * z, node.state_bar, node.shadow_bar)
    if output_bar is not None:
        state_bar = plus(state_bar, output_bar)
    here_bar = jax.tree.map(lambda y, z: z + y / 2, node.state_bar, node.shadow_bar)
    before_bar = jax.tree.map(lambda y: y / 2, state_bar)
    problem_bar, pulled = pull((here_bar, before_bar, ito_bar))
    shadow_bar = jax.tree.map(jnp.subtract, pulled, node.shadow_bar)
    return _Node(
        state,
        shadow,
        rates,
        state_bar,
        shadow_bar,
        before,
        plus(node.problem_bar, problem_bar),
    )


def _contract(rates: Rates, like: State, inc: Increment, before: Increment) -> tuple:
    """D_k F, D_{k-1} F and u dB of step k."""
    zero = jax.tree.map(jnp.zeros_like, like)
    ito = None if rates.u is None else inner(rates.u, inc.w)
    return advance(zero, rates, inc), advance(zero, rates, before), ito


def _products(p: Problem, z: State, inc: Increment, before: Increment) -> tuple:
    return _contract(p.rates(inc.t1, z), z, inc, before)
