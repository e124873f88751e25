"""Time-dependent layers: each wraps a plain layer into a map (t, x) to y.

The family of FFJORD's `diffeq_layers` (Grathwohl et al., 2019), which Xu et al. (2022)
take over for SDE-BNNs. There, each is written once for matrices and once for kernels;
here, `layer` is any plain layer, W x + b stands for it, and vectors a, c, d have one
number an output feature. Vectors that multiply t start as standard normals (their
fan-in is 1), c starts at 0.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from .._normals import scaled_normal
from .._types import Array, Float, PRNGKeyArray, PyTree, RealScalar
from ._layers import AbstractLayer, expand_like, redraw


class Ignore(eqx.Module):
    """y = W x + b, whatever t.

    Args:
        layer: W and b.
        key: accepted so that all of the family are made alike, and not used.
    """

    layer: AbstractLayer

    def __init__(self, layer: AbstractLayer, *, key: PRNGKeyArray | None = None):
        del key
        self.layer = layer

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        del t
        return self.layer(x)


class Concat(eqx.Module):
    """y = W [x, t] + b: time as one more input feature or channel.

    Nothing is concatenated. That would copy x and make the number of channels odd,
    which is slow; the same y is W x + b + t (V * 1), where the new channel's kernel V
    meets a constant image: a bias map of shape (height, width, out_channels).

    Args:
        layer: W and b, for x alone.
        key: randomness of V, whose scale is that of W.
    """

    layer: AbstractLayer
    time_weight: Float[Array, "*taps 1 out_size"]

    def __init__(self, layer: AbstractLayer, *, key: PRNGKeyArray):
        self.layer = layer
        self.time_weight = _further_weight(layer, 1, key=key)

    @property
    def fan_in(self) -> int:
        """That of the layer with the concatenated input."""
        return _further_fan_in(self.layer, 1)

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        ones = jnp.ones((*_pixels(self.layer, x), 1), x.dtype)
        y = self.layer(x)
        return y + _for_each(t * self.layer.apply_weight(self.time_weight, ones), y)


class ConcatCoord(eqx.Module):
    """y = W [x, t, r, s] + b: time and each pixel's place as further channels.

    r and s, row and column, run from -1 to 1 (in `diffeq_layers` they count pixels, so
    that their size depends on the image's).

    Args:
        layer: a convolution, for x alone.
        key: randomness of the further channels' kernel.

    Raises:
        TypeError: for a layer without pixels.
    """

    layer: AbstractLayer
    coord_weight: Float[Array, "taps taps 3 out_size"]

    def __init__(self, layer: AbstractLayer, *, key: PRNGKeyArray):
        if layer.num_pixel_axes != 2:
            raise TypeError(
                f"`ConcatCoord` needs a convolution, for its pixels' places, and got "
                f"{type(layer).__name__}: use `Concat`."
            )
        self.layer = layer
        self.coord_weight = _further_weight(layer, 3, key=key)

    @property
    def fan_in(self) -> int:
        """That of the layer with the concatenated input."""
        return _further_fan_in(self.layer, 3)

    def __call__(
        self, t: RealScalar, x: Float[Array, "*lead height width in_channels"]
    ) -> Float[Array, "*lead out_height out_width out_channels"]:
        """Evaluate at time t."""
        height, width = _pixels(self.layer, x)
        rows = jnp.linspace(-1, 1, height, dtype=x.dtype)
        columns = jnp.linspace(-1, 1, width, dtype=x.dtype)
        coords = (t * jnp.ones((), x.dtype), rows[:, None], columns[None, :])
        coords = jnp.stack([jnp.broadcast_to(c, (height, width)) for c in coords], -1)
        y = self.layer(x)
        return y + _for_each(self.layer.apply_weight(self.coord_weight, coords), y)


class Squash(eqx.Module):
    """y = (W x + b) ∘ σ(a t + c).

    Args:
        layer: W and b.
        key: randomness of a.
    """

    layer: AbstractLayer
    gate_weight: Float[Array, " out_size"]
    gate_bias: Float[Array, " out_size"]

    def __init__(self, layer: AbstractLayer, *, key: PRNGKeyArray):
        self.layer = layer
        self.gate_weight = jr.normal(key, (layer.out_size,))
        self.gate_bias = jnp.zeros(layer.out_size)

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        y = self.layer(x)
        return y * expand_like(jax.nn.sigmoid(self.gate_weight * t + self.gate_bias), y)


class ConcatSquash(eqx.Module):
    """y = (W x + b) ∘ σ(a t + c) + d t.

    Args:
        layer: W and b.
        key: randomness of a and d.
    """

    layer: AbstractLayer
    gate_weight: Float[Array, " out_size"]
    gate_bias: Float[Array, " out_size"]
    time_bias: Float[Array, " out_size"]

    def __init__(self, layer: AbstractLayer, *, key: PRNGKeyArray):
        gate_key, bias_key = jr.split(key)
        self.layer = layer
        self.gate_weight = jr.normal(gate_key, (layer.out_size,))
        self.gate_bias = jnp.zeros(layer.out_size)
        self.time_bias = jr.normal(bias_key, (layer.out_size,))

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        y = self.layer(x)
        gate = jax.nn.sigmoid(self.gate_weight * t + self.gate_bias)
        return y * expand_like(gate, y) + expand_like(self.time_bias * t, y)


class Gated(eqx.Module):
    """y = f(x) ∘ σ(g(x)) with two layers of the same shape; t is ignored.

    Args:
        layer_f: the values.
        layer_g: the gates.
    """

    layer_f: AbstractLayer
    layer_g: AbstractLayer

    def __check_init__(self):
        _check_alike(self.layer_f, self.layer_g)

    @staticmethod
    def from_layer(layer: AbstractLayer, *, key: PRNGKeyArray) -> "Gated":
        """Gate `layer` by one of the same shape and new weights."""
        return Gated(layer, redraw(layer, key=key))

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        del t
        return self.layer_f(x) * jax.nn.sigmoid(self.layer_g(x))


class Blend(eqx.Module):
    """y = (1 - t) f₀(x) + t f₁(x): from one layer to another, for t from 0 to 1.

    Args:
        layer0: the layer at t = 0.
        layer1: the layer at t = 1.
    """

    layer0: AbstractLayer
    layer1: AbstractLayer

    def __check_init__(self):
        _check_alike(self.layer0, self.layer1)

    @staticmethod
    def from_layer(layer: AbstractLayer, *, key: PRNGKeyArray) -> "Blend":
        """Blend `layer` into one of the same shape and new weights."""
        return Blend(layer, redraw(layer, key=key))

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        if not isinstance(self.layer0, AbstractLayer):
            # What has taken their place, such as noise on inputs, is of each.
            y0, y1 = self.layer0(x), self.layer1(x)
            return y0 + jnp.asarray(t, y0.dtype) * (y1 - y0)
        # As y is linear in the parameters, one layer does for two.
        layer = jax.tree.map(
            lambda p0, p1: p0 + t * (p1 - p0), self.layer0, self.layer1
        )
        return layer(x)


class Hyper(eqx.Module):
    """y = W(t) x + b(t), the parameters θ(t) = θ₀ + Σₖ Vₖ tanh(aₖ t + cₖ).

    A net from t to all parameters, of one hidden layer, whose output bias θ₀ is the
    given layer. (In `diffeq_layers` the net for kernels has no hidden layer.)

    Args:
        layer: θ₀.
        width_size: hidden units, k = 1 to `width_size`.
        key: randomness of a and V. V's scale is a tenth of a fan-in's, so that the
            layer starts near θ₀.
    """

    layer: AbstractLayer
    hidden_weight: Float[Array, " width_size"]
    hidden_bias: Float[Array, " width_size"]
    heads: PyTree[Float[Array, "width_size ..."]]

    def __init__(self, layer: AbstractLayer, *, width_size: int = 8, key: PRNGKeyArray):
        if width_size < 1:
            raise ValueError(f"`width_size` must be at least 1, got {width_size}.")
        hidden_key, heads_key = jr.split(key)
        leaves, treedef = jax.tree.flatten(layer)
        keys = jr.split(heads_key, len(leaves))
        scale = 0.1 * (width_size * layer.fan_in) ** -0.5
        self.layer = layer
        self.hidden_weight = jr.normal(hidden_key, (width_size,))
        self.hidden_bias = jnp.zeros(width_size)
        self.heads = jax.tree.unflatten(
            treedef,
            [
                scale * jr.normal(key, (width_size, *leaf.shape))
                for key, leaf in zip(keys, leaves, strict=True)
            ],
        )

    def __call__(self, t: RealScalar, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Evaluate at time t."""
        hidden = jnp.tanh(self.hidden_weight * t + self.hidden_bias)
        layer = jax.tree.map(
            lambda leaf, head: leaf + jnp.tensordot(hidden, head, 1),
            self.layer,
            self.heads,
        )
        return layer(x)


def _for_each(v: Array, y: Array) -> Array:
    """`v` for each of the leading axes that `y` has more, as a matrix product.

    Its gradient is a sum over images for each pixel, which XLA's CPU backend takes 4 ms
    for as a reduction and 0.2 ms as a product (128 images of 28×28, 32 channels, alone
    in a program; two cores of an AMD EPYC).
    """
    if v.ndim < 3:
        return expand_like(v, y)
    num = math.prod(y.shape[: y.ndim - v.ndim])
    return (jnp.ones((num, 1), v.dtype) @ v.reshape(1, -1)).reshape(y.shape)


def _pixels(layer: AbstractLayer, x: Array) -> tuple[int, ...]:
    return x.shape[x.ndim - 1 - layer.num_pixel_axes : x.ndim - 1]


def _further_weight(
    layer: AbstractLayer, num_features: int, *, key: PRNGKeyArray
) -> Array:
    """The weight of further input features, distributed as the layer's own."""
    shape = (*layer.weight.shape[:-2], num_features, layer.out_size)
    return scaled_normal(key, shape, layer.fan_in**-0.5)


def _further_fan_in(layer: AbstractLayer, num_features: int) -> int:
    return round(layer.fan_in * (1 + num_features / layer.in_size))


def _check_alike(first: AbstractLayer, second: AbstractLayer) -> None:
    shapes = [jax.tree.map(jnp.shape, layer) for layer in (first, second)]
    if not eqx.tree_equal(*shapes):
        raise ValueError(
            f"Both layers must have the same shape, got {first} and {second}: make "
            "the second by `from_layer(layer, key=key)`."
        )


TIME_LAYERS: dict[str, Callable[..., eqx.Module]] = {
    "blend": Blend.from_layer,
    "concat": Concat,
    "concat_coord": ConcatCoord,
    "concat_squash": ConcatSquash,
    "gated": Gated.from_layer,
    "hyper": Hyper,
    "ignore": Ignore,
    "squash": Squash,
}
"""The family by name, each to be called as `make(layer, key=key)`."""
