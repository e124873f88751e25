"""Plain layers: one matrix or one kernel, and a bias, on any leading axes."""

import abc
import math
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp

from .._normals import scaled_normal
from .._types import Array, Float, PRNGKeyArray
from .conv import conv2d, conv2d_transpose


class AbstractLayer(eqx.Module):
    """An affine map of the last axis (and of the pixels, for a convolution).

    Weights start as normals of variance 1 / fan-in (LeCun et al., 1998), biases at 0.

    Attributes:
        weight: taps (none for a linear layer), then in, then out features.
        bias: one number an output feature, or `None`.
    """

    weight: eqx.AbstractVar[Float[Array, "*taps in_size out_size"]]
    bias: eqx.AbstractVar[Float[Array, " out_size"] | None]

    @property
    @abc.abstractmethod
    def fan_in(self) -> int:
        """How many inputs meet in one output: the prior variance's usual divisor."""

    @abc.abstractmethod
    def apply_weight(
        self,
        weight: Float[Array, "*taps in_size out_size"],
        x: Float[Array, "..."],
    ) -> Float[Array, "..."]:
        """The linear part, with any weight of the same taps.

        Time-dependent layers use it for the further input channels that they stand
        for.
        """

    @property
    def in_size(self) -> int:
        """Features or channels that come in."""
        return self.weight.shape[-2]

    @property
    def out_size(self) -> int:
        """Features or channels that go out."""
        return self.weight.shape[-1]

    @property
    def num_pixel_axes(self) -> int:
        """2 for images, 0 for vectors."""
        return self.weight.ndim - 2

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Apply to an array of any leading axes."""
        y = self.apply_weight(self.weight, x)
        return y if self.bias is None else y + expand_like(self.bias, y)


_Layer = TypeVar("_Layer", bound=AbstractLayer)


class Linear(AbstractLayer):
    """y = x W + b on the last axis.

    Args:
        in_size: features in.
        out_size: features out.
        use_bias: whether b is there.
        key: randomness of W.
    """

    weight: Float[Array, "in_size out_size"]
    bias: Float[Array, " out_size"] | None

    def __init__(
        self, in_size: int, out_size: int, *, use_bias: bool = True, key: PRNGKeyArray
    ):
        _check_positive(in_size=in_size, out_size=out_size)
        self.weight = _normal(key, (in_size, out_size), in_size)
        self.bias = jnp.zeros(out_size) if use_bias else None

    @property
    def fan_in(self) -> int:
        """The features in."""
        return self.in_size

    def apply_weight(
        self,
        weight: Float[Array, "in_size out_size"],
        x: Float[Array, "*lead in_size"],
    ) -> Float[Array, "*lead out_size"]:
        """X W, for any W."""
        return x @ weight


class Conv2d(AbstractLayer):
    """Convolution of (..., height, width, channels), zero padding: see `conv2d`.

    Args:
        in_channels: channels in.
        out_channels: channels out.
        kernel_size: taps along both axes.
        stride: pixels from one window to the next, along both axes.
        padding: `"SAME"` (the output has ⌈size / stride⌉ pixels along each axis),
            `"VALID"`, or the zeros at each of the four sides, as PyTorch counts them.
        use_bias: whether there is a number to add for each channel.
        key: randomness of the kernel.
    """

    weight: Float[Array, "kernel_size kernel_size in_channels out_channels"]
    bias: Float[Array, " out_channels"] | None
    stride: int = eqx.field(static=True)
    padding: str | int = eqx.field(static=True)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: str | int = "SAME",
        use_bias: bool = True,
        key: PRNGKeyArray,
    ):
        sizes = dict(in_channels=in_channels, out_channels=out_channels)
        _check_positive(**sizes, kernel_size=kernel_size, stride=stride)
        shape = (kernel_size, kernel_size, in_channels, out_channels)
        self.weight = _normal(key, shape, math.prod(shape[:-1]))
        self.bias = jnp.zeros(out_channels) if use_bias else None
        self.stride = stride
        self.padding = padding

    def __check_init__(self):
        is_count = isinstance(self.padding, int) and self.padding >= 0
        if not is_count and self.padding not in ("SAME", "VALID"):
            raise ValueError(
                '`padding` must be "SAME", "VALID" or the number of zeros at each '
                f"side, got {self.padding!r}."
            )

    @property
    def fan_in(self) -> int:
        """Taps times channels in."""
        return math.prod(self.weight.shape[:-1])

    def apply_weight(
        self,
        weight: Float[Array, "taps taps in_size out_size"],
        x: Float[Array, "*lead height width in_size"],
    ) -> Float[Array, "*lead out_height out_width out_size"]:
        """The convolution with any kernel of the same taps."""
        num_zeros = self.padding
        padding = (
            num_zeros if isinstance(num_zeros, str) else ((num_zeros, num_zeros),) * 2
        )
        return conv2d(x, weight, stride=self.stride, padding=padding)


class ConvTranspose2d(AbstractLayer):
    """Transposed convolution: `stride` times the pixels; see `conv2d_transpose`.

    Args:
        in_channels: channels in.
        out_channels: channels out.
        kernel_size: taps along both axes.
        stride: the factor by which height and width grow.
        use_bias: whether there is a number to add for each channel.
        key: randomness of the kernel.
    """

    weight: Float[Array, "kernel_size kernel_size in_channels out_channels"]
    bias: Float[Array, " out_channels"] | None
    stride: int = eqx.field(static=True)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 2,
        use_bias: bool = True,
        key: PRNGKeyArray,
    ):
        sizes = dict(in_channels=in_channels, out_channels=out_channels)
        _check_positive(**sizes, kernel_size=kernel_size, stride=stride)
        shape = (kernel_size, kernel_size, in_channels, out_channels)
        self.weight = _normal(key, shape, _transposed_fan_in(shape, stride))
        self.bias = jnp.zeros(out_channels) if use_bias else None
        self.stride = stride

    @property
    def fan_in(self) -> int:
        """Taps times channels in over stride², the mean over the output's pixels."""
        return _transposed_fan_in(self.weight.shape, self.stride)

    def apply_weight(
        self,
        weight: Float[Array, "taps taps in_size out_size"],
        x: Float[Array, "*lead height width in_size"],
    ) -> Float[Array, "*lead out_height out_width out_size"]:
        """The transposed convolution with any kernel of the same taps."""
        return conv2d_transpose(x, weight, stride=self.stride)


def redraw(layer: _Layer, *, key: PRNGKeyArray) -> _Layer:
    """A layer of the same shape with new initial weights."""
    weight = _normal(key, layer.weight.shape, layer.fan_in)
    return eqx.tree_at(lambda layer: layer.weight, layer, weight)


def expand_like(v: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """`v` with axes of one in front, as many as `y` has more."""
    return v.reshape((1,) * (y.ndim - v.ndim) + v.shape)


def _normal(key: PRNGKeyArray, shape: tuple[int, ...], fan_in: int) -> Array:
    return scaled_normal(key, shape, fan_in**-0.5)


def _transposed_fan_in(shape: tuple[int, ...], stride: int) -> int:
    return max(1, round(math.prod(shape[:-1]) / stride**2))


def _check_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")
