"""How the differential equations inside a random function are solved."""

import dataclasses
from typing import Any, TypeVar

import diffrax
import equinox as eqx
import jax

from ...sde import (
    AbstractGradient,
    AbstractStepsize,
    Adaptive,
    Backprop,
    EulerMaruyama,
    Fixed,
    Grid,
    check_adaptive,
    noise_free_solver,
)

_Model = TypeVar("_Model")


class Integrator(eqx.Module):
    """Solver, steps and gradient, in one place of a model.

    Attributes:
        solver: one of `ornstein.sde`'s.
        stepsize: `Fixed`, `Grid` or `Adaptive`; depth runs from 0 to 1.
        gradient: how the solve is differentiated.
        roughness_order: K of the $R_K$ that each solve reports (`SolveReport`); 0 for
            none. `fit(regularise_dynamics=...)` sets it.
    """

    solver: diffrax.AbstractSolver = EulerMaruyama()
    stepsize: AbstractStepsize = Fixed(dt=0.05)
    gradient: AbstractGradient = Backprop()
    roughness_order: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if self.roughness_order not in (0, 1, 2):
            raise ValueError(
                f"`roughness_order` must be 0, 1 or 2, got {self.roughness_order}: "
                "dynamics are regularised by their first or second derivative in depth."
            )
        self.gradient.check(self.solver, self.stepsize)
        if isinstance(self.stepsize, Adaptive):
            check_adaptive(self.solver, has_noise=True)

    def without_noise(self) -> "Integrator":
        """For the same equation without its noise, which some solvers need."""
        return dataclasses.replace(self, solver=noise_free_solver(self.solver))


def with_solver(
    model: _Model,
    *,
    solver: diffrax.AbstractSolver | None = None,
    stepsize: AbstractStepsize | None = None,
    gradient: AbstractGradient | None = None,
) -> _Model:
    """The model with other numerics and the same parameters: speed against precision.

    Args:
        model: a random function that solves differential equations.
        solver: the new solver; `None` keeps the old one, and so below.
        stepsize: the new steps.
        gradient: the new gradient.

    Raises:
        TypeError: a model without a differential equation.
        ValueError: choices that do not go together.
    """
    _check_kinds(solver, stepsize, gradient)
    changes = {"solver": solver, "stepsize": stepsize, "gradient": gradient}
    changes = {name: value for name, value in changes.items() if value is not None}
    if not has_integrator(model):
        raise TypeError(
            f"`with_solver` needs a model that solves a differential equation, such "
            f"as `SDEBNN`, got {type(model).__name__}."
        )
    if stepsize is not None:
        knows_steps = lambda node: hasattr(node, "check_steps")
        for node in filter(knows_steps, jax.tree.leaves(model, is_leaf=knows_steps)):
            node.check_steps(stepsize)
    return replace_integrators(model, **changes)


def _check_kinds(solver: Any, stepsize: Any, gradient: Any) -> None:
    for name, value, kind, write in [
        ("solver", solver, diffrax.AbstractSolver, "Heun()"),
        ("stepsize", stepsize, AbstractStepsize, "Fixed(0.05)"),
        ("gradient", gradient, AbstractGradient, "Backprop()"),
    ]:
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f"`{name}` must be one of `ornstein.sde`'s, got {value!r}: write "
                f"{name}={write}."
            )


def check_no_grid(stepsize: AbstractStepsize) -> None:
    """Refuse steps that are arrays, among which a whitened network has its path."""
    if isinstance(stepsize, Grid) and stepsize.ts is not None:
        raise ValueError(
            "A network over standard normals has no other arrays, and the solver's "
            "`Grid(ts)` is one: use `Fixed(dt)`."
        )


def has_integrator(model: Any) -> bool:
    """Whether a model solves a differential equation."""
    nodes = jax.tree.leaves(model, is_leaf=_is_integrator)
    return any(map(_is_integrator, nodes))


def check_calls_layers(network: Any) -> None:
    """Refuse a network whose layers cannot be replaced by layers with noise.

    Raises:
        ValueError: if it solves a differential equation over depth, whose layers take
            their weights and time in parts.
    """
    if has_integrator(network):
        raise ValueError(
            f"`{type(network).__name__}` solves over depth, where layers are used in "
            "parts, and noise on a layer's inputs needs the whole: use "
            "`ornstein.MeanField` or `ornstein.Ensemble`."
        )


def replace_integrators(model: _Model, **changes: Any) -> _Model:
    """The model with these fields of every `Integrator` changed."""
    return jax.tree.map(
        lambda node: (
            dataclasses.replace(node, **changes) if _is_integrator(node) else node
        ),
        model,
        is_leaf=_is_integrator,
    )


def _is_integrator(node: Any) -> bool:
    return isinstance(node, Integrator)
