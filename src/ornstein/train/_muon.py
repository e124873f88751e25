"""Muon: orthogonalised momentum for matrices and kernels, Adam for all else."""

from typing import Any

import equinox as eqx
import jax
import optax
from optax.contrib import MuonDimensionNumbers, muon as optax_muon

from .._types import PyTree
from ..functions import AbstractFamily
from ..nn import Conv2d, ConvTranspose2d, Linear
from ._optimiser import Rule

_OUT_LAST = (Linear, Conv2d, ConvTranspose2d)
_OUT_FIRST = (eqx.nn.Linear, eqx.nn.Conv, eqx.nn.ConvTranspose)
_RMS = 0.2  # of Adam's steps, as found by Liu et al.
# CIFAR-10 by a small SDE-BNN without noise, 312 steps: 64 % of validation images right
# with a quarter of a rate of 0.02, 61 % with all of 0.03 (`results/muon.json` has the
# first).
VECTORS_RATE = 0.25
"""Adam's rate beside Muon, as a part of Muon's."""


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
            rate, in each step.

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
