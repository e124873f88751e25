"""Backpropagation through the steps."""

import diffrax

from .._problem import Problem, State
from .._solver import AbstractStepper
from .._stepsize import AbstractStepsize
from ._base import AbstractGradient, Outputs, Solve, integrate


class Backprop(AbstractGradient):
    """Differentiate the computation as it is: exact, memory linear in the steps."""

    def check(
        self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize
    ) -> None:
        """Goes with everything."""
        del solver, stepsize

    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """A plain scan."""
        return integrate(problem, state, how)

    def backward_evaluations(self, stepper: AbstractStepper, num_steps: int) -> int:
        """None: the forward pass stored what is needed."""
        del stepper, num_steps
        return 0
