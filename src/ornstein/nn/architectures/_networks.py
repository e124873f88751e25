"""Networks: plain, and those that move the hidden units of an SDE-BNN."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import equinox as eqx
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray, RealScalar
from .._activations import tanh
from .._layers import AbstractLayer, Conv2d, ConvTranspose2d, Linear
from .._norm import FilterResponseNorm
from .._parameters import scale_parameters
from .._time import Concat

TimeLayer: TypeAlias = Callable[[RealScalar, Array], Array]
"""A map of (t, x)."""

MakeTimeLayer: TypeAlias = Callable[..., TimeLayer]
"""`make(layer, key=key)`: `Concat` and its family, or a user's own."""


class MLP(eqx.Module):
    """Linear layers with a nonlinearity between them, on the last axis.

    Args:
        in_size: features in.
        out_size: features out.
        width_sizes: of the hidden layers; none makes one linear layer.
        activation: the nonlinearity. Each hidden layer has a copy, so that a trainable
            one is trained by layer.
        output_scale: multiplies the last layer's initial parameters.
        key: randomness of the weights.
    """

    layers: tuple[Linear, ...]
    activations: tuple[Callable[[Array], Array], ...]

    def __init__(
        self,
        in_size: int,
        out_size: int,
        width_sizes: Sequence[int],
        *,
        activation: Callable[[Array], Array] = tanh,
        output_scale: float = 1.0,
        key: PRNGKeyArray,
    ):
        *hidden, last = _linears([in_size, *width_sizes, out_size], key=key)
        self.layers = (*hidden, scale_parameters(last, output_scale))
        self.activations = (activation,) * len(hidden)

    def __call__(
        self, x: Float[Array, "*lead in_size"]
    ) -> Float[Array, "*lead out_size"]:
        """Apply to an array of any leading axes."""
        *hidden, last = self.layers
        for layer, activation in zip(hidden, self.activations, strict=True):
            x = activation(layer(x))
        return last(x)


class TimeMLP(eqx.Module):
    """An MLP of time-dependent layers: (t, h) to dh/dt, for vectors.

    Nothing in it normalises over the batch, which would break the Lipschitz condition
    that the dynamics need.

    Args:
        size: features of h.
        width_sizes: of the hidden layers.
        activation: the nonlinearity; a copy for each hidden layer.
        time: how layers depend on t: `Concat` or another `make(layer, key=key)`.
        output_scale: multiplies the last layer's initial parameters.
        key: randomness of the weights.
    """

    layers: tuple[TimeLayer, ...]
    activations: tuple[Callable[[Array], Array], ...]

    def __init__(
        self,
        size: int,
        width_sizes: Sequence[int],
        *,
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        output_scale: float = 1.0,
        key: PRNGKeyArray,
    ):
        layers_key, time_key = jr.split(key)
        layers = _linears([size, *width_sizes, size], key=layers_key)
        self.layers = _time_layers(layers, time, output_scale, key=time_key)
        self.activations = (activation,) * len(width_sizes)

    def __call__(
        self, t: RealScalar, h: Float[Array, "*lead size"]
    ) -> Float[Array, "*lead size"]:
        """Evaluate at time t."""
        *hidden, last = self.layers
        for layer, activation in zip(hidden, self.activations, strict=True):
            h = activation(layer(t, h))
        return last(t, h)


class ConvBlock(eqx.Module):
    """The SDE-BNN's image block: (t, h) to dh/dt, for images of even size.

    3×3 convolution, 3×3 of stride 2, 3×3 transposed of stride 2, 3×3, each
    time-dependent, with a nonlinearity after all but the last: Xu et al. (2022), whose
    image models use tanh throughout. As in `TimeMLP` nothing normalises.

    Args:
        channels: of h.
        width: channels inside.
        activation: the nonlinearity; a copy for each hidden layer.
        time: how layers depend on t: `Concat` or another `make(layer, key=key)`.
        output_scale: multiplies the last layer's initial parameters.
        key: randomness of the weights.
    """

    layers: tuple[TimeLayer, ...]
    activations: tuple[Callable[[Array], Array], ...]

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        output_scale: float = 1.0,
        key: PRNGKeyArray,
    ):
        in_key, down_key, up_key, out_key, time_key = jr.split(key, 5)
        layers = (
            Conv2d(channels, width, 3, key=in_key),
            Conv2d(width, width, 3, stride=2, key=down_key),
            ConvTranspose2d(width, width, 3, stride=2, key=up_key),
            Conv2d(width, channels, 3, key=out_key),
        )
        self.layers = _time_layers(layers, time, output_scale, key=time_key)
        self.activations = (activation,) * 3

    def __call__(
        self, t: RealScalar, h: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "*lead height width channels"]:
        """Evaluate at time t.

        Raises:
            ValueError: for an odd height or width.
        """
        height, width = h.shape[-3:-1]
        if height % 2 == 1 or width % 2 == 1:
            raise ValueError(
                f"`ConvBlock` halves and doubles its images, so height and width must "
                f"be even, got {height} by {width}: pad the images by a row or column."
            )
        *hidden, last = self.layers
        for layer, activation in zip(hidden, self.activations, strict=True):
            h = activation(layer(t, h))
        return last(t, h)


class NormedConvBlock(eqx.Module):
    """A residual network's branch as (t, h) to dh/dt, for images of any size.

    Filter response normalisation, 3×3 convolution, nonlinearity, normalisation, 3×3
    convolution; convolutions are time-dependent. An image is normalised by itself, and
    how large the first convolution's weights are does not matter: under a wide prior
    hidden units stay as they are, where those of `ConvBlock` saturate.

    Args:
        channels: of h.
        width: channels inside.
        activation: the nonlinearity.
        time: how convolutions depend on t: `Concat` or another `make(layer, key=key)`.
        key: randomness of the weights.
    """

    layers: tuple[TimeLayer, ...]
    norms: tuple[FilterResponseNorm, ...]
    activation: Callable[[Array], Array]

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        key: PRNGKeyArray,
    ):
        in_key, out_key, time_key = jr.split(key, 3)
        layers = (
            Conv2d(channels, width, 3, key=in_key),
            Conv2d(width, channels, 3, key=out_key),
        )
        self.layers = _time_layers(layers, time, 1.0, key=time_key)
        self.norms = (FilterResponseNorm(channels), FilterResponseNorm(width))
        self.activation = activation

    def __call__(
        self, t: RealScalar, h: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "*lead height width channels"]:
        """Evaluate at time t."""
        first, second = self.layers
        h = self.activation(first(t, self.norms[0](h)))
        return second(t, self.norms[1](h))


def _linears(sizes: Sequence[int], *, key: PRNGKeyArray) -> list[Linear]:
    keys = jr.split(key, len(sizes) - 1)
    return [
        Linear(in_size, out_size, key=key)
        for in_size, out_size, key in zip(sizes[:-1], sizes[1:], keys, strict=True)
    ]


def _time_layers(
    layers: Sequence[AbstractLayer],
    time: MakeTimeLayer,
    output_scale: float,
    *,
    key: PRNGKeyArray,
) -> tuple[TimeLayer, ...]:
    keys = jr.split(key, len(layers))
    *hidden, last = (time(a, key=k) for a, k in zip(layers, keys, strict=True))
    return (*hidden, scale_parameters(last, output_scale))
