"""The linear and convolutional layers inside any network, and their input nodes."""

from typing import TypeAlias

import equinox as eqx
import jax

from .._types import PyTree
from ._layers import AbstractLayer

Layer: TypeAlias = AbstractLayer | eqx.nn.Linear | eqx.nn.Conv
"""A linear map and a bias; Equinox's take one example, ours any leading axes."""


def is_layer(node: object) -> bool:
    """Whether a node of a network is a linear or convolutional layer."""
    return isinstance(node, Layer)


def layers_of(network: PyTree) -> list[Layer]:
    """The layers of a network, in the order of its tree."""
    return [n for n in jax.tree.leaves(network, is_leaf=is_layer) if is_layer(n)]


def num_inputs(layer: Layer) -> int:
    """Features, or channels, that come into a layer."""
    if isinstance(layer, AbstractLayer):
        return layer.in_size
    size = layer.in_channels if isinstance(layer, eqx.nn.Conv) else layer.in_features
    return 1 if size == "scalar" else int(size)


def num_nodes(network: PyTree) -> int:
    """Input features and channels of all linear and convolutional layers together.

    Table 1 of Trinh et al. (2020) counts so, by its caption and in five of its six
    rows; the 23 nodes of its LeNet are the convolutions' alone, and the definition
    gives 207.

    Args:
        network: any tree with layers in it, ours or Equinox's. From
            `eqx.filter_eval_shape` it costs no memory.
    """
    return sum(num_inputs(layer) for layer in layers_of(network))
