"""Maps without parameters that change an array's shape."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._types import Array, Float


class Augment(eqx.Module):
    """Appends zeros to the last axis (Dupont et al., 2019).

    Args:
        num_features: how many.
    """

    num_features: int = eqx.field(static=True)

    def __check_init__(self):
        if self.num_features < 0:
            raise ValueError(
                f"`num_features` must not be negative, got {self.num_features}."
            )

    def __call__(self, x: Float[Array, "*lead features"]) -> Float[Array, "*lead more"]:
        """Apply to an array of any leading axes."""
        return jnp.pad(x, ((0, 0),) * (x.ndim - 1) + ((0, self.num_features),))


def space_to_depth(
    x: Float[Array, "*lead height width channels"], factor: int = 2
) -> Float[Array, "*lead less_height less_width more_channels"]:
    """Squares of `factor` by `factor` pixels into channels (Dinh et al., 2016).

    Args:
        x: images.
        factor: the side of a square; height and width are divided by it, channels
            multiplied by its square.

    Raises:
        ValueError: if the pixels don't divide into squares.
    """
    *lead, height, width, channels = x.shape
    blocks = _blocks(x, factor)
    axes = (*range(len(lead)), *(len(lead) + i for i in (0, 2, 1, 3, 4)))
    shape = (*lead, height // factor, width // factor, factor**2 * channels)
    return blocks.transpose(axes).reshape(shape)


def depth_to_space(
    x: Float[Array, "*lead height width channels"], factor: int = 2
) -> Float[Array, "*lead more_height more_width less_channels"]:
    """The inverse of `space_to_depth`.

    Args:
        x: images.
        factor: by which height and width grow.

    Raises:
        ValueError: if the channels don't divide by factor².
    """
    *lead, height, width, channels = x.shape
    if factor < 1 or channels % factor**2 != 0:
        raise ValueError(
            f"`depth_to_space` with factor {factor} needs a multiple of {factor**2} "
            f"channels, got {channels}."
        )
    less = channels // factor**2
    x = x.reshape(*lead, height, width, factor, factor, less)
    axes = (*range(len(lead)), *(len(lead) + i for i in (0, 2, 1, 3, 4)))
    return x.transpose(axes).reshape(*lead, factor * height, factor * width, less)


def average_pool(
    x: Float[Array, "*lead height width channels"], window: int = 2
) -> Float[Array, "*lead less_height less_width channels"]:
    """Means of squares of `window` by `window` pixels, next to each other.

    By reshape: the gradient of XLA's own windowed reduction is slow on a CPU.

    Args:
        x: images.
        window: the side of a square.

    Raises:
        ValueError: if the pixels don't divide into squares.
    """
    return jnp.mean(_blocks(x, window), (-4, -2))


def max_pool(
    x: Float[Array, "*lead height width channels"],
    window: int = 2,
    *,
    stride: int | None = None,
    padding: int = 0,
) -> Float[Array, "*lead less_height less_width channels"]:
    """Maxima of squares of `window` by `window` pixels.

    By slices, rows and then columns: the gradient of XLA's own windowed reduction is
    slow on a CPU.

    Args:
        x: images.
        window: the side of a square.
        stride: pixels from one square to the next; `None` puts them next to each
            other, and they must fill the image. With a number, pixels past the last
            whole square are left out, as in PyTorch.
        padding: pixels of -∞ at each side, at most half a window.

    Raises:
        ValueError: if the pixels don't divide into squares, or no square fits.
    """
    if stride is None and padding == 0:
        blocks = _blocks(x, window)
        return _pair_maxima(blocks) if window == 2 else jnp.max(blocks, (-4, -2))
    stride = window if stride is None else stride
    if window < 1 or stride < 1 or not 0 <= 2 * padding <= window:
        raise ValueError(
            "`max_pool` needs a window and a stride of at least 1 and a padding of at "
            f"most half a window, got window {window}, stride {stride}, padding "
            f"{padding}."
        )
    shape = (x.shape[-3], x.shape[-2])
    if min(shape) + 2 * padding < window:
        raise ValueError(
            f"A window of {window} by {window} does not fit images of {shape[0]} by "
            f"{shape[1]} padded by {padding}: use larger images."
        )
    pads = ((0, 0),) * (x.ndim - 3) + ((padding, padding),) * 2 + ((0, 0),)
    x = jnp.pad(x, pads, constant_values=-jnp.inf) if padding else x
    return _window_maxima(_window_maxima(x, window, stride, -3), window, stride, -2)


def _pair_maxima(blocks: Array) -> Array:
    """Of 2×2: the gradient of `jnp.max` over two axes takes twice as long."""
    rows = [
        jnp.maximum(blocks[..., i, :, 0, :], blocks[..., i, :, 1, :]) for i in (0, 1)
    ]
    return jnp.maximum(*rows)


def _window_maxima(x: Array, window: int, stride: int, axis: int) -> Array:
    last = (x.shape[axis] - window) // stride * stride
    slices = (lax.slice_in_dim(x, i, i + last + 1, stride, axis) for i in range(window))
    return functools.reduce(jnp.maximum, slices)


class MaxPool(eqx.Module):
    """`max_pool` with its numbers, as one of a network's modules.

    Args:
        window: the side of a square.
        stride: pixels from one square to the next.
        padding: pixels of -∞ at each side.
    """

    window: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    padding: int = eqx.field(static=True, default=0)

    def __call__(
        self, x: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "*lead less_height less_width channels"]:
        """Apply to images of any leading axes."""
        return max_pool(x, self.window, stride=self.stride, padding=self.padding)


def adaptive_average_pool(
    x: Float[Array, "*lead height width channels"], size: int
) -> Float[Array, "*lead size size channels"]:
    """Means over windows that cover the images, placed as PyTorch places them.

    Window i of an axis of n pixels goes from ⌊i n / size⌋ to ⌈(i + 1) n / size⌉; where
    `size` doesn't divide n, neighbours overlap. Two small matrix products.

    Args:
        x: images.
        size: pixels of a side that come out.

    Raises:
        ValueError: for a size below 1.
    """
    if size < 1:
        raise ValueError(f"`size` must be at least 1, got {size}.")
    height, width = x.shape[-3:-1]
    if (height, width) == (size, size):
        return x
    rows = _window_means(height, size).astype(x.dtype)
    columns = _window_means(width, size).astype(x.dtype)
    return jnp.einsum("...hwc,ih,jw->...ijc", x, rows, columns)


def _window_means(num_pixels: int, size: int) -> np.ndarray:
    means = np.zeros((size, num_pixels))
    for i in range(size):
        window = slice(i * num_pixels // size, -(-(i + 1) * num_pixels // size))
        means[i, window] = 1 / (window.stop - window.start)
    return means


def _blocks(
    x: Float[Array, "*lead height width channels"], factor: int
) -> Float[Array, "*lead less_height factor less_width factor channels"]:
    *lead, height, width, channels = x.shape
    if factor < 1 or height % factor != 0 or width % factor != 0:
        raise ValueError(
            f"Images of {height} by {width} pixels don't divide into squares of "
            f"{factor} by {factor}: pad or crop them to a multiple of {factor}."
        )
    return x.reshape(*lead, height // factor, factor, width // factor, factor, channels)
