"""Initial weights for networks of rectified units."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import equinox as eqx
import jax.random as jr

from .._normals import scaled_normal
from .._types import PRNGKeyArray
from ._layers import AbstractLayer
from ._nodes import Layer, layers_of

_Module = TypeVar("_Module")

Initialise: TypeAlias = Callable[..., Any]
"""`initialise(network, key=key)`: the network with new initial parameters."""


def he_normal(network: _Module, *, key: PRNGKeyArray) -> _Module:
    """Redraws the weights of all layers as normals of variance 2 / fan-in.

    The variance that rectified units keep from layer to layer. Biases, normalisation
    and all else stay as they are.

    Args:
        network: any tree with linear or convolutional layers, ours or Equinox's.
        key: randomness of the weights.

    References:
        He et al. (2015). Delving deep into rectifiers. ICCV, eq. 10.
    """
    layers = layers_of(network)
    if not layers:
        return network
    keys = jr.split(key, len(layers))
    weights = [
        scaled_normal(
            layer_key,
            layer.weight.shape,
            math.sqrt(2 / _fan_in(layer)),
            layer.weight.dtype,
        )
        for layer_key, layer in zip(keys, layers, strict=True)
    ]
    return eqx.tree_at(lambda n: [a.weight for a in layers_of(n)], network, weights)


def _fan_in(layer: Layer) -> int:
    if isinstance(layer, AbstractLayer):
        return layer.fan_in
    return layer.weight.size // layer.weight.shape[0]
