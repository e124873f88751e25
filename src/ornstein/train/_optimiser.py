"""One optimiser for all that is trained, or one for each label; and Muon."""

import dataclasses
import numbers
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import optax
from optax.contrib import MuonDimensionNumbers, muon as optax_muon

from .._kinds import check_kind
from .._types import Array, PyTree
from ..functions import FROZEN, WEIGHTS, AbstractFamily, check_labels
from ..nn import Conv2d, ConvTranspose2d, Linear
from ._schedule import AbstractSchedule, Constant
from .ivon import IVON, POINTS, BoundIVON

_OUT_LAST = (Linear, Conv2d, ConvTranspose2d)
_OUT_FIRST = (eqx.nn.Linear, eqx.nn.Conv, eqx.nn.ConvTranspose)
_RMS = 0.2  # of Adam's steps, as found by Liu et al.
# CIFAR-10 by a small SDE-BNN without noise, 312 steps: 64 % of validation images right
# with a quarter of a rate of 0.02, 61 % with all of 0.03 (`results/muon.json` has the
# first).
VECTORS_RATE = 0.25
"""Adam's rate beside Muon, as a part of Muon's."""


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

    def init(self, params: PyTree, frozen: PyTree) -> PyTree:
        """The optimiser's state before the first step.

        Args:
            params: trained leaves.
            frozen: the others.

        Raises:
            TypeError: for an optimiser that asks for more than a step gives it.
        """

        def first_update(params, frozen):
            state = self.transform.init(params)
            return self.transform.update(params, state, params, frozen=frozen)

        try:
            eqx.filter_eval_shape(first_update, params, frozen)
        except (TypeError, AttributeError) as error:
            raise TypeError(
                "`optimiser` must move parameters by their gradients, which is all "
                f"that `fit` gives it (no loss), and this one stops ({error}): choose "
                "another, such as `optax.adam`."
            ) from error
        return self.transform.init(params)


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
        TypeError: for what is no optimiser, no rate or no schedule.
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
        if not callable(rule):
            raise TypeError(_not_a_rule(rule))
        rate = _entry("learning_rate", learning_rate, name)
        shape = _entry("schedule", schedule, name)
        rates[name] = _as_schedule(rate, shape, num_steps)
        made = rule(rates[name])
        if not (hasattr(made, "init") and hasattr(made, "update")):
            raise TypeError(_not_a_rule(rule))
        transforms[name] = made
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
    fall = Constant() if callable(own) else shape
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
    modules: tuple[PyTree, ...], labels: tuple[PyTree[str], ...]
) -> tuple[PyTree, PyTree, PyTree[str]]:
    """The trained leaves, the others, and the labels of the trained ones.

    Each with `None` in place of the rest.

    Args:
        modules: any.
        labels: what their `labels()` say.

    Raises:
        ValueError: if labels are none, or stand on what no optimiser can move, or
            nothing is to be trained.
    """
    for module, names in zip(modules, labels, strict=True):
        check_labels(module, names)
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


def _not_a_rule(given: object) -> str:
    if isinstance(given, optax.MultiSteps):
        return (
            "`optimiser` is an `optax.MultiSteps`, which is a wrapper: give what its "
            "`gradient_transformation()` returns."
        )
    return (
        "`optimiser` must be a rule from a rate to an optax transformation, or such a "
        f"transformation, got {given!r}: write optimiser=optax.adam."
    )


def _as_schedule(rate: Rate, shape: AbstractSchedule, num_steps: int) -> optax.Schedule:
    if callable(rate):
        return rate
    is_number = isinstance(rate, numbers.Real) or getattr(rate, "shape", None) == ()
    if not is_number:
        raise TypeError(
            "`learning_rate` must be a number or an optax schedule, got "
            f"{rate!r}: start from 1e-3 with Adam."
        )
    rate = float(rate)  # of NumPy's or JAX's, too
    if not rate > 0:
        raise ValueError(
            f"`learning_rate` must be positive, got {rate}: start from 1e-3 with Adam."
        )
    remedy = "`schedule=orn.train.Cosine()` (a schedule of optax's is `learning_rate`)"
    check_kind("schedule", shape, AbstractSchedule, remedy)
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


def decayed(params: PyTree, is_decayed: Callable[[Array], bool]) -> PyTree[bool]:
    """Which leaves decay: of a variational family none but means.

    A standard deviation's decay would lead to softplus(0), which is no smaller weight.

    Args:
        params: what is trained.
        is_decayed: whether an array does, if it is no standard deviation.
    """

    def of_node(node: Any) -> PyTree[bool]:
        if not isinstance(node, AbstractFamily):
            return is_decayed(node)
        nothing = jax.tree.map(lambda _: False, node)
        # Of a family of one's own the means may be computed, or have another name.
        if "mean" not in {field.name for field in dataclasses.fields(node)}:
            return nothing
        means_of = lambda family: family.mean
        means = jax.tree.map(is_decayed, means_of(node))
        return eqx.tree_at(means_of, nothing, means)

    is_family = lambda node: isinstance(node, AbstractFamily)
    return jax.tree.map(of_node, params, is_leaf=is_family)


def adamw(weight_decay: float) -> Rule:
    """AdamW, whose decay is of matrices and kernels alone: arrays of two or more axes.

    Biases stay free (but not those of members of an ensemble, or modes of a path, which
    are stacked), and so do scales: of likelihoods, and the standard deviations of a
    variational family, whose means decay.

    Args:
        weight_decay: times the parameters and the rate, in each step.

    References:
        Loshchilov & Hutter (2019), "Decoupled weight decay regularization".
    """
    mask = lambda params: decayed(params, lambda array: array.ndim > 1)
    return lambda rate: optax.adamw(rate, weight_decay=weight_decay, mask=mask)


def muon(weight_decay: float = 0.0) -> Rule:
    """Muon: of a matrix's momentum only the directions, all at the same length.

    The momentum is made orthogonal by five steps of Newton and Schulz. Matrices are the
    weights of linear layers and, as one of (height · width · in) rows, the kernels of
    convolutions, of `nn` and of Equinox; further axes in front count members, or modes
    of a path. Adam (with Nesterov momentum) moves all else at a quarter of the learning
    rate: biases, norms, arrays of modules of one's own, nodes, and a variational
    family's standard deviations. A matrix's steps have about 0.2 of the rate as root
    mean square, which Adam's have been found to have; four times Adam's rate is a
    start.

    Args:
        weight_decay: of matrices and kernels, as AdamW's: times the parameters and the
            rate, in each step. Beside a prior it shrinks them further (of a variational
            family its means), to where the objective has no optimum.

    References:
        Jordan et al. (2024), "Muon: an optimizer for hidden layers in neural networks";
        Liu et al. (2025), "Muon is scalable for LLM training", section 2.2.
    """

    def rule(rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
        of_vectors = lambda step: (
            VECTORS_RATE * (rate(step) if callable(rate) else rate)
        )
        return optax_muon(
            rate,
            adam_learning_rate=of_vectors,
            weight_decay=weight_decay,
            consistent_rms=_RMS,
            muon_weight_dimension_numbers=_dimensions,
        )

    return rule


def _dimensions(params: PyTree) -> PyTree[MuonDimensionNumbers | None]:
    """Which axes are a matrix's rows and columns; `None` for what Adam moves."""
    return jax.tree.map(_of_node, params, is_leaf=_is_special)


def _is_special(node: Any) -> bool:
    return isinstance(node, (*_OUT_LAST, *_OUT_FIRST, AbstractFamily))


def _of_node(node: Any) -> PyTree[MuonDimensionNumbers | None]:
    nothing = jax.tree.map(lambda _: None, node)
    if isinstance(node, AbstractFamily):
        name, of = "mean", _dimensions  # of a family of one's own they may not exist
    elif _is_special(node):
        name, of = "weight", lambda weight: _of_weight(node, weight)
    else:
        return nothing
    part = getattr(node, name, None)
    # In the place of a weight there may be its prior, or what optax masks it with.
    if part is None or (name == "weight" and not hasattr(part, "ndim")):
        return nothing
    where = lambda whole: getattr(whole, name)
    return eqx.tree_at(where, nothing, of(part), is_leaf=lambda leaf: leaf is None)


def _of_weight(layer: Any, weight: Any) -> MuonDimensionNumbers:
    if isinstance(layer, Linear | eqx.nn.Linear):
        num_axes = 2
    elif isinstance(layer, _OUT_LAST):
        num_axes = 4
    else:
        num_axes = layer.num_spatial_dims + 2
    first, *_, last = axes = range(weight.ndim - num_axes, weight.ndim)
    if isinstance(layer, _OUT_FIRST):
        return MuonDimensionNumbers(tuple(axes[1:]), first)
    return MuonDimensionNumbers(tuple(axes[:-1]), last)


def state_after_skip(before: PyTree, after: PyTree) -> PyTree:
    """The optimiser's state after a step that was passed over: its rates go on.

    But for IVON, whose count is also that of what its momentum has seen.

    Args:
        before: the step.
        after: it, had it been taken.
    """
    is_counted = lambda a: isinstance(a, optax.ScaleByScheduleState)
    return jax.tree.map(
        lambda old, new: new if is_counted(old) else old,
        before,
        after,
        is_leaf=is_counted,
    )
