"""The linear and convolutional layers inside any network, found and replaced.

What acts on a layer rather than on a weight (dropout, noise on a layer's inputs, noise
on its outputs) replaces each layer of a network by one that carries the noise.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import equinox as eqx
import jax

from .._types import Array, Float, PyTree
from ..nn import AbstractLayer, PerRow

Layer: TypeAlias = AbstractLayer | eqx.nn.Linear | eqx.nn.Conv
"""A linear map and a bias; Equinox's take one example, ours any leading axes."""


def is_layer(node: object) -> bool:
    """Whether a node of a network is a linear or convolutional layer."""
    return isinstance(node, Layer)


def layers_of(network: PyTree) -> list[Layer]:
    """The layers of a network, in the order of its tree."""
    return [n for n in jax.tree.leaves(network, is_leaf=is_layer) if is_layer(n)]


def replace_layers(network: PyTree, new: Sequence[Callable]) -> PyTree:
    """The network with its layers replaced, in the order of `layers_of`."""
    nodes, treedef = jax.tree.flatten(network, is_leaf=is_layer)
    replacements = iter(new)
    nodes = [next(replacements) if is_layer(n) else n for n in nodes]
    assert next(replacements, None) is None
    return jax.tree.unflatten(treedef, nodes)


def takes_one_example(layer: Layer) -> bool:
    """Whether a layer has no axis of rows: Equinox's, which run under `vmap`."""
    return not isinstance(layer, AbstractLayer)


def num_inputs(layer: Layer) -> int:
    """Features, or channels, that come into a layer."""
    if isinstance(layer, AbstractLayer):
        return layer.in_features
    size = layer.in_channels if isinstance(layer, eqx.nn.Conv) else layer.in_features
    return 1 if size == "scalar" else int(size)


def dealt(value: Float[Array, "rows ..."], layer: Layer) -> Array | PerRow:
    """Noise of each row's own, in the form in which `layer` will meet it."""
    return PerRow(value) if takes_one_example(layer) else value


def beside(value: Array | PerRow, x: Float[Array, "..."], layer: Layer) -> Array:
    """Numbers for each feature (and row), shaped to multiply a layer's input or output.

    Args:
        value: (features,), shared by all rows; or (rows, features), as `dealt` gave it.
        x: the array to multiply.
        layer: whose input or output x is.
    """
    value = value.value if isinstance(value, PerRow) else value
    if takes_one_example(layer):  # (features, *pixels); `value` is (features,)
        return value.reshape(value.shape + (1,) * (x.ndim - value.ndim))
    between = (1,) * (x.ndim - value.ndim)
    if value.ndim == 1:
        return value.reshape(between + value.shape)
    return value.reshape(value.shape[:1] + between + value.shape[1:])
