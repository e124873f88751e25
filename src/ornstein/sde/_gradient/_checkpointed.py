"""Backpropagation with recomputation."""

import math
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax

from ..._types import PyTree
from .._problem import Problem, State
from .._stepsize import AbstractStepsize
from ._base import AbstractGradient, Outputs, Solve, integrate


class Checkpointed(AbstractGradient):
    r"""Store the state every few steps, and recompute between (Griewank, 1992).

    Exact, with any solver. Memory like `every` steps plus `num_steps / every` states:
    $2 \sqrt n$ by default. Costs one more forward pass (two, with many output times
    that are many steps apart).

    Attributes:
        every: steps between checkpoints; `None` for the square root of their number.
    """

    every: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.every is not None and self.every < 1:
            raise ValueError(f"`every` must be at least 1, got {self.every}.")

    def check(self, solver: diffrax.AbstractSolver, stepsize: AbstractStepsize) -> None:
        """Goes with everything."""
        del solver, stepsize

    def solve(self, problem: Problem, state: State, how: Solve) -> Outputs:
        """Scans of checkpointed scans."""
        return integrate(problem, state, how, scan=self.scan)

    def backward_evaluations(self, how: Solve) -> int:
        """Each step once more."""
        return how.stepper.evaluations_per_step * how.mesh.num_steps

    def scan(self, body: Callable, carry: Any, xs: PyTree) -> tuple[Any, PyTree]:
        """`jax.lax.scan`, differentiated so."""
        length = jax.tree.leaves(xs)[0].shape[0]
        every = min(self.every or math.isqrt(max(length - 1, 0)) + 1, length)

        @jax.checkpoint
        def chunk(carry: Any, xs: PyTree) -> tuple[Any, PyTree]:
            return jax.lax.scan(body, carry, xs)

        num_chunks, rest = divmod(length, every)
        head = jax.tree.map(lambda x: x[:rest], xs)
        tail = jax.tree.map(
            lambda x: x[rest:].reshape(num_chunks, every, *x.shape[1:]), xs
        )
        ys = []
        if rest:
            carry, y = chunk(carry, head)
            ys.append(y)
        carry, y = jax.lax.scan(chunk, carry, tail)
        ys.append(jax.tree.map(lambda v: v.reshape(-1, *v.shape[2:]), y))
        return carry, jax.tree.map(lambda *v: jax.numpy.concatenate(v), *ys)
