"""Backpropagation through the steps."""

import diffrax

from .._problem import Problem, State
from .._stepsize import AbstractStepsize
from ._base import AbstractGradient, Outputs, Solve, integrate


class Backprop(AbstractGradient):
    """Differentiate the computation as it is: exact, memory linear in the steps."""

    def check(self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize) -> None:
        """Goes with everything."""
        del solver, stepsize

    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """A plain scan."""
        return integrate(problem, state, how)

    def backward_evaluations(self, how: Solve) -> int:
        """None: the forward pass stored what is needed."""
        del how
        return 0
