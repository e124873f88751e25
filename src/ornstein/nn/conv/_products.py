"""Convolutions as one matrix product each, for a CPU.

`rows(x) @ matrix(k)`, whose adjoints are `rows`' transpose of `g @ matrix(k).T` and
`matrix`' transpose of `rows(x).T @ g`. Eigen's convolution, which XLA may run on a CPU,
copies each output pixel's window one tap at a time and multiplies matrices with as many
columns as there are channels: with few channels both are slow.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
from jax import lax, numpy as jnp
from jax.typing import DTypeLike

from ..._types import Array
from ._chunks import chunks, over_images
from ._geometry import Geometry

# What `SHIFTS` makes of one chunk's images. Kernel gradients of 128 images in a scan
# had, in GFLOP/s of two cores (AMD EPYC, AVX-512), with so many images at a time:
#                                  2    4    8   16   32   64  128
#   28×28, 32 channels, stride 2  144  140  150  138  106   83   53
#   28×28, 32 channels             58  177  163   98   80   69   56
#   32×32, 16                     141  145  136  122   54   39   32
#   8×8, 128                      233  253  279  289  246  219  159
_CHUNK_BYTES = 3 * 2**20

_BLOCK = 4  # beats 8, or as good, on all shapes tried; a whole row is slower


class Product(NamedTuple):
    """A way to write a convolution as a matrix product.

    Attributes:
        rows: of images, (n · height · blocks, anything).
        matrix: of a kernel, (anything, block · out_channels), where a block is so many
            neighbours in a row of the output; those past its end are dropped.
    """

    rows: Callable[[Geometry, Array], Array]
    matrix: Callable[[Geometry, Array], Array]

    def conv(self, geometry: Geometry, x: Array, kernel: Array) -> Array:
        y = self.rows(geometry, x) @ self.matrix(geometry, kernel)
        return _images(geometry, y, x.shape[0], kernel.shape[3])

    def input_gradient(self, geometry: Geometry, g: Array, kernel: Array) -> Array:
        shape = (g.shape[0], *geometry.image_shape, kernel.shape[2])
        x = jax.ShapeDtypeStruct(shape, g.dtype)
        return _transpose(lambda x: self.conv(geometry, x, kernel), x, g)

    def kernel_gradient(self, geometry: Geometry, x: Array, g: Array) -> Array:
        (num, *_, num_in), num_out = x.shape, g.shape[3]
        shape = (*geometry.kernel_shape, num_in, num_out)
        kernel = jax.ShapeDtypeStruct(shape, x.dtype)
        matrix = lambda kernel: self.matrix(geometry, kernel)
        rows = self.rows(geometry, x)
        y = jax.ShapeDtypeStruct(
            (rows.shape[0], jax.eval_shape(matrix, kernel).shape[1]), g.dtype
        )
        g = _transpose(lambda y: _images(geometry, y, num, num_out), y, g)
        return _transpose(matrix, kernel, _gram(rows, g))


def _gram(a: Array, b: Array) -> Array:
    """aᵀb, the thinner matrix first.

    Eigen takes up to 1.6 times longer in the other order (8,192 rows, 576 and 64
    columns: 9.9 and 6.5 ms on one core), and XLA turns it back unless kept from it.
    """
    if a.shape[1] <= b.shape[1]:
        return a.T @ b
    return lax.optimization_barrier(b.T @ a).T


@over_images
def shifts_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    """That of `SHIFTS`, some images at a time.

    All at once, a 3×3 kernel's copies of the images have nine times their size and go
    to memory and back.
    """

    def add(total: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        return total + SHIFTS.kernel_gradient(geometry, *part), None

    xs, gs = chunks((x, g), shifts_bytes(geometry, x.shape[3], x.dtype), _CHUNK_BYTES)
    if len(xs) == 1:
        return SHIFTS.kernel_gradient(geometry, x, g)
    shape = (*geometry.kernel_shape, x.shape[3], g.shape[3])
    total, _ = lax.scan(add, jnp.zeros(shape, x.dtype), (xs, gs))
    return total


def sums_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """The convolution at stride 1: all taps' products at each pixel, then their sums.

    For few channels out: in one product they have as many columns as there are taps.
    """
    (high, wide, num_in, num_out), (height, width) = kernel.shape, geometry.out_shape
    x = padded(x, *geometry.pads)
    taps = x @ kernel.transpose(2, 0, 1, 3).reshape(num_in, high * wide * num_out)
    taps = taps.reshape(*x.shape[:3], high, wide, num_out)
    met = [
        taps[:, i : i + height, j : j + width, i, j]
        for i in range(high)
        for j in range(wide)
    ]
    return sum(met[1:], met[0])


def shifts_bytes(geometry: Geometry, num_in: int, dtype: DTypeLike) -> int:
    """What `SHIFTS` makes of one image."""
    num_met = math.prod(geometry.out_shape) * math.prod(geometry.kernel_shape)
    return num_met * num_in * jnp.dtype(dtype).itemsize


def band_waste(geometry: Geometry) -> float:
    """Products with the zeros of `BAND` too, per product of the convolution."""
    return _span(geometry) / geometry.kernel_shape[1]


def band_pieces(geometry: Geometry) -> int:
    """How many pieces of an image `BAND` puts side by side."""
    return geometry.kernel_shape[0] * -(-geometry.out_shape[1] // _BLOCK)


def padded(x: Array, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
    """Zeros around images; unlike `jnp.pad` it may also crop."""
    config = ((0, 0, 0), (*rows, 0), (*columns, 0), (0, 0, 0))
    return lax.pad(x, jnp.zeros((), x.dtype), config)


def _images(geometry: Geometry, y: Array, num: int, num_out: int) -> Array:
    height, width = geometry.out_shape
    return y.reshape(num, height, -1, num_out)[:, :, :width]


def _transpose(fn: Callable, of: jax.ShapeDtypeStruct, g: Array) -> Array:
    (transposed,) = jax.linear_transpose(fn, of)(g)
    return transposed


def _pixel_rows(geometry: Geometry, x: Array) -> Array:
    stride = geometry.stride
    return x[:, ::stride, ::stride].reshape(-1, x.shape[3])


def _image_rows(geometry: Geometry, x: Array) -> Array:
    del geometry
    return x.reshape(x.shape[0], -1)


def _shifted_rows(geometry: Geometry, x: Array) -> Array:
    """Every pixel that a tap of the kernel meets, taps side by side."""
    stride, (height, width) = geometry.stride, geometry.out_shape
    x = padded(x, *geometry.pads)
    shifts = [
        x[
            :,
            i : i + stride * (height - 1) + 1 : stride,
            j : j + stride * (width - 1) + 1 : stride,
        ]
        for i in range(geometry.kernel_shape[0])
        for j in range(geometry.kernel_shape[1])
    ]
    x = jnp.concatenate(shifts, axis=-1)
    return x.reshape(-1, x.shape[3])


def _flat_kernel(geometry: Geometry, kernel: Array) -> Array:
    del geometry
    return kernel.reshape(-1, kernel.shape[3])


def _span(geometry: Geometry) -> int:
    """Pixels of a row that a block of output pixels meets."""
    return geometry.kernel_shape[1] + (_BLOCK - 1) * geometry.stride


def _band_rows(geometry: Geometry, x: Array) -> Array:
    """What each block meets in all rows: one pass over the memory in long pieces."""
    stride, (height, width) = geometry.stride, geometry.out_shape
    rows, (left, _) = geometry.pads
    num, _, image_width, num_in = x.shape
    num_blocks, span, step = -(-width // _BLOCK), _span(geometry), stride * _BLOCK
    right = (num_blocks - 1) * step + span - left - image_width
    x = padded(x, rows, (left, right))
    x = x.reshape(num, x.shape[1], -1)
    pieces = [
        x[
            :,
            i : i + stride * (height - 1) + 1 : stride,
            step * block * num_in : (step * block + span) * num_in,
        ]
        for block in range(num_blocks)
        for i in range(geometry.kernel_shape[0])
    ]
    x = jnp.concatenate(pieces, axis=-1)
    return x.reshape(num * height * num_blocks, -1)


def _band_matrix(geometry: Geometry, kernel: Array) -> Array:
    """The kernel once for each pixel of a block, and zeros where it doesn't reach."""
    taps_high, taps_wide, num_in, num_out = kernel.shape
    span = _span(geometry)
    # Made by the program: an array from outside would be a constant of `custom_vjp`,
    # which `Reversible` could then not differentiate past.
    tap, met, pixel = jnp.ogrid[:taps_wide, :span, :_BLOCK]
    one_hot = (met == geometry.stride * pixel + tap).astype(kernel.dtype)
    band = jnp.einsum("jpq,ijco->ipcqo", one_hot, kernel)
    return band.reshape(taps_high * span * num_in, _BLOCK * num_out)


PIXEL = Product(_pixel_rows, _flat_kernel)
"""A 1×1 kernel without padding: the same matrix at every pixel."""

IMAGE = Product(_image_rows, _flat_kernel)
"""A kernel as large as the image, without padding: a dense layer."""

SHIFTS = Product(_shifted_rows, _flat_kernel)
"""Any kernel, all of its taps' pixels side by side."""

BAND = Product(_band_rows, _band_matrix)
"""Four neighbours of a row at once, from all pixels they meet: a banded matrix.

Its zeros cost `band_waste` times the operations, and buy rows that are copied in long
pieces and four times as many columns.
"""
