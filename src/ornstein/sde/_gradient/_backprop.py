"""Backpropagation through the steps."""

from collections.abc import Callable
from typing import Any

import diffrax
import jax

from ..._types import PyTree
from .._problem import Problem, State
from .._stepsize import AbstractStepsize
from ._base import AbstractGradient, Outputs, Solve, integrate

# Up to this many increments are drawn before the loop, all at once: what a small
# problem gains by it, a large one would pay for in memory where nothing is
# differentiated.
_MOST_DRAWN_FIRST = 2**20


class Backprop(AbstractGradient):
    """Differentiate the computation as it is: exact, memory linear in the steps."""

    def check(self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize) -> None:
        """Goes with everything."""
        del solver, stepsize

    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """A plain scan."""
        size = 0 if how.increments is None else how.increments.size
        is_small = size * how.mesh.num_steps <= _MOST_DRAWN_FIRST
        return integrate(problem, state, how, draws_first=is_small)

    def scan(self, body: Callable, carry: Any, xs: PyTree) -> tuple[Any, PyTree]:
        """`jax.lax.scan`, differentiated so."""
        return jax.lax.scan(body, carry, xs)

    def backward_evaluations(self, how: Solve) -> int:
        """None: the forward pass stored what is needed."""
        del how
        return 0
