"""One optimiser for all that is trained, or one for each label."""

from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

import equinox as eqx
import jax
import optax

from .._types import PyTree
from ..functions import FROZEN, WEIGHTS
from ._schedule import AbstractSchedule, Constant
from .ivon import IVON, POINTS, BoundIVON

Rule: TypeAlias = Callable[[optax.Schedule], optax.GradientTransformation]
"""A learning rate to an optimiser, as `optax.adam` is."""

Optimiser: TypeAlias = Rule | optax.GradientTransformation
Rate: TypeAlias = float | optax.Schedule


class Optimisation(eqx.Module):
    """What moves the trained leaves, and at which rates.

    Attributes:
        transform: the optimiser, for a tree of trained leaves; it is also shown the
            `frozen` ones.
        rates: the learning rate of each label as a map from the step number; a
            finished optax transformation keeps its rate to itself and has none here.
    """

    transform: optax.GradientTransformationExtraArgs
    rates: dict[str, optax.Schedule]


def build_optimisation(
    labels: PyTree[str],
    optimiser: Optimiser | BoundIVON | IVON | Mapping[str, Optimiser | IVON],
    *,
    learning_rate: Rate | Mapping[str, Rate],
    schedule: AbstractSchedule | Mapping[str, AbstractSchedule],
    num_steps: int,
) -> Optimisation:
    """Give each label its optimiser.

    Args:
        labels: `"weights"` or `"noise"` for each trained leaf.
        optimiser: a rule such as `optax.adam`, a finished optax transformation, one
            of them for each label, or IVON, which tells weights and points apart.
        learning_rate: the peak rate, a map from the step number to the rate, or one
            of them for each label.
        schedule: the shape that a peak rate follows, or one for each label.
        num_steps: the length of the run.

    Raises:
        ValueError: for a rate that is not positive, or a label without an entry.
    """
    if isinstance(optimiser, BoundIVON):
        return _with_ivon(
            labels, optimiser, learning_rate, schedule, num_steps=num_steps
        )
    names = sorted(set(jax.tree.leaves(labels)))
    transforms, rates = {}, {}
    for name in names:
        rule = _entry("optimiser", optimiser, name)
        if isinstance(rule, IVON):
            raise ValueError(
                "`IVON` moves a whole model: give it as `optimiser=orn.IVON(...)`, and "
                "what moves points as its `points`."
            )
        if isinstance(rule, optax.GradientTransformation):
            transforms[name] = rule
            continue
        rate = _entry("learning_rate", learning_rate, name)
        shape = _entry("schedule", schedule, name)
        rates[name] = _as_schedule(rate, shape, num_steps)
        transforms[name] = rule(rates[name])
    return Optimisation(optax.partition(transforms, labels), rates)


def _with_ivon(
    labels: PyTree[str],
    ivon: BoundIVON,
    learning_rate: Rate | Mapping[str, Rate],
    schedule: AbstractSchedule | Mapping[str, AbstractSchedule],
    *,
    num_steps: int,
) -> Optimisation:
    """IVON for random weights, and its rule for points for all else."""
    groups = ivon.groups(labels)
    shape = _entry("schedule", schedule, WEIGHTS)
    own = ivon.rule.learning_rate
    rates = {WEIGHTS: _as_schedule(own, shape, num_steps)}
    # A schedule of the user's has no peak that its fall could be told from.
    fall = shape if isinstance(own, float | int) else Constant()
    hessian_rate = fall.build(ivon.rule.hessian_rate(num_steps), num_steps)
    transforms: dict[Hashable, optax.GradientTransformation] = {
        WEIGHTS: ivon.transform(rates[WEIGHTS], hessian_rate)
    }
    if POINTS in jax.tree.leaves(groups):
        rate = _entry("learning_rate", learning_rate, WEIGHTS)
        rates[POINTS] = _as_schedule(rate, shape, num_steps)
        transforms[POINTS] = ivon.rule.points(rates[POINTS])
    return Optimisation(optax.partition(transforms, groups), rates)


def split_trained(
    modules: PyTree, labels: PyTree[str]
) -> tuple[PyTree, PyTree, PyTree[str]]:
    """The trained leaves, the others, and the labels of the trained ones.

    Each with `None` in place of the rest.

    Args:
        modules: a tree of modules.
        labels: what their `labels()` say.

    Raises:
        ValueError: if a label stands on what no optimiser can move, or nothing is
            to be trained.
    """

    def check(leaf, name):
        if name != FROZEN and not eqx.is_inexact_array(leaf):
            raise ValueError(
                f"`labels()` calls a leaf of type {type(leaf).__name__} {name!r}, but "
                "only floating-point arrays can be trained: label it 'frozen'."
            )

    jax.tree.map(check, modules, labels)
    is_frozen = lambda leaf, name: leaf if name == FROZEN else None
    is_trained = lambda leaf, name: None if name == FROZEN else leaf
    params = jax.tree.map(is_trained, modules, labels)
    if not jax.tree.leaves(params):
        raise ValueError(
            "Nothing is to be trained: `labels()` of the model and of the likelihood "
            "call every leaf frozen."
        )
    frozen = jax.tree.map(is_frozen, modules, labels)
    return params, frozen, jax.tree.map(is_trained, labels, labels)


def _as_schedule(rate: Rate, shape: AbstractSchedule, num_steps: int) -> optax.Schedule:
    if not isinstance(rate, float | int):
        return rate
    if not rate > 0:
        raise ValueError(
            f"`learning_rate` must be positive, got {rate}: start from 1e-3 with Adam."
        )
    return shape.build(rate, num_steps)


def _entry(argument: str, value, name: str):
    if not isinstance(value, Mapping):
        return value
    if name not in value:
        raise ValueError(
            f"`{argument}` has entries for {sorted(value)}, but this model also trains "
            f"leaves labelled {name!r}: add that entry, or give one for all."
        )
    return value[name]
