"""A model on the same Brownian paths, with its own steps and with half of them."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from ..functions import GridIncrements, Integrator
from ..sde import Fixed

_Model = TypeVar("_Model")


def on_finer_path(model: _Model) -> _Model:
    """The model with its own steps, on paths that half steps can follow.

    Models that solve nothing, and solves with other steps than `Fixed`, stay as they
    are.
    """
    return _with_steps(model, lambda step: Fixed(step.dt, noise_dt=_finer(step)))


def halved(model: _Model) -> _Model:
    """What `on_finer_path` returned, with half the steps on the same paths."""
    return _with_steps(model, lambda step: Fixed(step.dt / 2, noise_dt=step.noise_dt))


def has_fixed_steps(model: Any) -> bool:
    """Whether there is a solve whose steps can be halved.

    A path that is given by its increments says nothing of times between its steps.
    """
    is_part = lambda node: isinstance(node, Integrator | GridIncrements)
    parts = jax.tree.leaves(model, is_leaf=is_part)
    if any(isinstance(part, GridIncrements) for part in parts):
        return False
    return any(map(_is_fixed, parts))


def _finer(step: Fixed) -> float:
    """The largest spacing of the noise that keeps the path and divides dt / 2."""
    noise_dt = step.dt if step.noise_dt is None else step.noise_dt
    return noise_dt if round(step.dt / noise_dt) % 2 == 0 else noise_dt / 2


def _with_steps(model: _Model, change: Callable[[Fixed], Fixed]) -> _Model:
    def changed(node: Any) -> Any:
        if not _is_fixed(node):
            return node
        return dataclasses.replace(node, stepsize=change(node.stepsize))

    return jax.tree.map(changed, model, is_leaf=_is_integrator)


def _is_integrator(node: Any) -> bool:
    return isinstance(node, Integrator)


def _is_fixed(node: Any) -> bool:
    return _is_integrator(node) and isinstance(node.stepsize, Fixed)
