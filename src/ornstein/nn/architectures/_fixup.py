"""Fixup: residual networks trained without normalisation."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float, PRNGKeyArray
from .._initialise import he_normal
from .._nodes import is_layer
from .._norm import BatchNorm, FilterResponseNorm
from .._parameters import scale_parameters
from ._residual import AbstractBlock

_Module = TypeVar("_Module")


class FixupLayer(eqx.Module):
    r"""$a f(x + b) + c$ with three trainable scalars, or some of them.

    Attributes:
        layer: $f$, linear.
        shift: $b$, 0 at first.
        scale: $a$, 1 at first.
        offset: $c$, 0 at first.
    """

    layer: Callable[..., Any]
    shift: Float[Array, ""] | None = None
    scale: Float[Array, ""] | None = None
    offset: Float[Array, ""] | None = None

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Apply as the layer is applied."""
        y = self.layer(x if self.shift is None else x + self.shift)
        y = y if self.scale is None else self.scale * y
        return y if self.offset is None else y + self.offset


def fixup(network: _Module, *, key: PRNGKeyArray) -> _Module:
    r"""Fixup initialisation, for `ResNet(..., norm=None, initialise=fixup)`.

    All weights by `he_normal`; then, with L residual branches of m convolutions each,
    those of a branch times $L^{-1/(2m-2)}$ except the last, which is zero, as is the
    classifier. Every branch is therefore zero at first, and one step of gradient
    descent changes the logits by an amount that does not grow with L. A trainable
    scalar is added in front of every convolution, activation and linear layer, and one
    multiplies each branch; convolutions have no further biases.

    Departs from the paper's code in one number: a projection in a shortcut has a shift
    of its own rather than its branch's.

    Args:
        network: with residual blocks and no normalisation; its last layer outside a
            block is the classifier.
        key: randomness of the weights.

    Raises:
        ValueError: for a network with normalisation, or without residual blocks.

    References:
        Zhang, Dauphin & Ma (2019). Fixup initialization: residual learning without
        normalization. ICLR, section 3.
    """
    is_block = lambda node: isinstance(node, AbstractBlock)
    is_norm = lambda node: isinstance(node, BatchNorm | FilterResponseNorm)
    if any(map(is_norm, jax.tree.leaves(network, is_leaf=is_norm))):
        raise ValueError(
            "Fixup stands in for normalisation, and the network has some: give "
            "`norm=None` too."
        )
    network = he_normal(network, key=key)
    nodes, treedef = jax.tree.flatten(
        network, is_leaf=lambda node: is_block(node) or is_layer(node)
    )
    num_branches = sum(map(is_block, nodes))
    if num_branches == 0:
        raise ValueError(
            f"Fixup rescales residual branches, and `{type(network).__name__}` has "
            "none: use `he_normal`."
        )
    classifier = max(i for i, node in enumerate(nodes) if is_layer(node))
    for i, node in enumerate(nodes):
        if is_block(node):
            nodes[i] = _fix_block(node, num_branches)
        elif i == classifier:
            nodes[i] = FixupLayer(scale_parameters(node, 0.0), shift=_scalar(0.0))
        elif is_layer(node):
            nodes[i] = FixupLayer(_without_bias(node), offset=_scalar(0.0))
    return jax.tree.unflatten(treedef, nodes)


def _fix_block(block: AbstractBlock, num_branches: int) -> AbstractBlock:
    places = [i for i, module in enumerate(block.branch) if is_layer(module)]
    if len(places) < 2:
        raise ValueError(
            f"Fixup needs two layers or more in a residual branch, got {len(places)}."
        )
    factor = num_branches ** (-1 / (2 * len(places) - 2))
    branch = list(block.branch)
    for i in places:
        layer = _without_bias(branch[i])
        if i == places[-1]:
            layer = scale_parameters(layer, 0.0)
            branch[i] = FixupLayer(
                layer, shift=_scalar(0.0), scale=_scalar(1.0), offset=_scalar(0.0)
            )
        else:
            layer = scale_parameters(layer, factor)
            branch[i] = FixupLayer(layer, shift=_scalar(0.0), offset=_scalar(0.0))
    shortcut = tuple(
        FixupLayer(_without_bias(module), shift=_scalar(0.0))
        for module in block.shortcut
    )
    return eqx.tree_at(
        lambda b: (b.branch, b.shortcut), block, (tuple(branch), shortcut)
    )


def _scalar(value: float) -> Array:
    return jnp.array(value, float)


def _without_bias(layer: Any) -> Any:
    return eqx.tree_at(
        lambda layer: layer.bias, layer, None, is_leaf=lambda bias: bias is None
    )
