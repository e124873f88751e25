"""Muon: orthogonalised momentum for matrices and kernels, Adam for all else."""

from typing import Any

import equinox as eqx
import jax
import optax
from optax.contrib import MuonDimensionNumbers, muon as optax_muon

from .._types import PyTree
from ._optimiser import Rule

# Arrays by their number of axes. Of five and three the first counts members, or modes
# of a path over depth.
_BY_AXES = {
    2: MuonDimensionNumbers(0, 1),
    3: MuonDimensionNumbers(1, 2),
    4: MuonDimensionNumbers((0, 1, 2), 3),
    5: MuonDimensionNumbers((1, 2, 3), 4),
}
_OUT_FIRST = (eqx.nn.Conv, eqx.nn.ConvTranspose)
_SPREADS = "rho"
_RMS = 0.2  # of Adam's steps, as found by Liu et al.
# CIFAR-10 by a small SDE-BNN without noise, 312 steps: 64 % of validation images right
# with a quarter of a rate of 0.02, 61 % with all of 0.03 (`results/muon.json` has the
# first).
_VECTORS_RATE = 0.25


def muon(weight_decay: float = 0.0) -> Rule:
    """Muon: of a matrix's momentum only the directions, all at the same length.

    The momentum is made orthogonal by five steps of Newton and Schulz. A kernel, of
    axes (height, width, in, out) as those of `nn` are, is a matrix of height · width ·
    in rows, and an Equinox layer's, with out first, one of as many columns; arrays with
    one axis more are several (members, or modes of a path). Adam
    moves all else at a quarter of the learning rate: vectors, such as biases and norms,
    and a variational family's standard deviations. A matrix's steps have the root mean
    square of Adam's at the same rate; four times Adam's rate is a start.

    Args:
        weight_decay: of matrices and kernels, as AdamW's: times the parameters and the
            rate, in each step.

    References:
        Jordan et al. (2024), "Muon: an optimizer for hidden layers in neural networks";
        Liu et al. (2025), "Muon is scalable for LLM training", section 2.2.
    """

    def rule(rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
        of_vectors = lambda step: (
            _VECTORS_RATE * (rate(step) if callable(rate) else rate)
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

    def of(path: tuple, node: Any) -> PyTree[MuonDimensionNumbers | None]:
        if any(getattr(key, "name", None) == _SPREADS for key in path):
            return jax.tree.map(lambda _: None, node)
        if isinstance(node, _OUT_FIRST):
            dims = jax.tree.map(lambda _: None, node)
            return eqx.tree_at(
                lambda layer: layer.weight,
                dims,
                _out_first(node.weight, node.num_spatial_dims),
                is_leaf=lambda leaf: leaf is None,
            )
        return _BY_AXES.get(node.ndim)

    is_layer = lambda node: isinstance(node, _OUT_FIRST)
    return jax.tree_util.tree_map_with_path(of, params, is_leaf=is_layer)


def _out_first(weight: Any, num_spatial_dims: int) -> MuonDimensionNumbers | None:
    """Of (out, in, sides), or several of them; `None` of a weight that is not trained."""
    if not hasattr(weight, "ndim"):
        return None
    out = weight.ndim - (num_spatial_dims + 2)
    return MuonDimensionNumbers(tuple(range(out + 1, weight.ndim)), out)
