"""Convolutions as one matrix product each, for a CPU; their adjoints are transposes.

Eigen's convolution, which XLA runs on a CPU, copies each output pixel's window one tap
at a time, and multiplies matrices with as many columns as there are channels: with few
channels both are slow (28×28, 1 to 6 channels, 5×5: 7 of 160 GFLOP/s, and its input
gradient, 1.7).
"""

import numpy as np
from jax import lax, numpy as jnp

from .._types import Array
from ._conv_geometry import Geometry

_BLOCK = 4  # faster than 2, 8 and the whole row on all shapes of `benchmarks/conv.py`


def pixel_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """A 1×1 kernel without padding: the same matrix at every pixel."""
    stride = geometry.stride
    return x[:, ::stride, ::stride] @ kernel[0, 0]


def image_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """A kernel as large as the image, without padding: a dense layer."""
    del geometry
    num_out = kernel.shape[3]
    y = x.reshape(x.shape[0], -1) @ kernel.reshape(-1, num_out)
    return y.reshape(-1, 1, 1, num_out)


def band_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """A banded matrix: four neighbours of a row at once, from all pixels they meet.

    Its zeros cost `band_waste` times the operations, and buy rows of the product that
    are copied in long pieces, four times fewer, and four times as many columns.
    """
    stride, (height, width) = geometry.stride, geometry.out_shape
    taps_high, taps_wide, num_in, num_out = kernel.shape
    num_blocks = -(-width // _BLOCK)
    span = _span(geometry)
    pieces = _row_pieces(geometry, x, num_blocks, span)
    one_hot = np.zeros((taps_wide, span, _BLOCK), kernel.dtype)
    for tap in range(taps_wide):
        for pixel in range(_BLOCK):
            one_hot[tap, stride * pixel + tap, pixel] = 1
    band = jnp.einsum("jpq,ijco->ipcqo", one_hot, kernel)
    y = pieces @ band.reshape(taps_high * span * num_in, _BLOCK * num_out)
    y = y.reshape(-1, height, num_blocks * _BLOCK, num_out)
    return y[:, :, :width]


def band_waste(geometry: Geometry) -> float:
    """Products with the band's zeros too, per product of the convolution."""
    return _span(geometry) / geometry.kernel_shape[1]


def _span(geometry: Geometry) -> int:
    """Pixels of a row that a block of output pixels meets."""
    return geometry.kernel_shape[1] + (_BLOCK - 1) * geometry.stride


def _row_pieces(geometry: Geometry, x: Array, num_blocks: int, span: int) -> Array:
    """For each block, what it meets in all rows: (n · height · blocks, taps · span · c).

    One concatenation of slices, which XLA makes in a single pass over the memory.
    """
    stride, (height, _) = geometry.stride, geometry.out_shape
    taps_high = geometry.kernel_shape[0]
    (top, bottom), (left, _) = geometry.pads
    num, _, width, num_in = x.shape
    step = stride * _BLOCK
    right = (num_blocks - 1) * step + span - left - width
    config = ((0, 0, 0), (top, bottom, 0), (left, right, 0), (0, 0, 0))
    x = lax.pad(x, jnp.zeros((), x.dtype), config)  # unlike `jnp.pad`, may also crop
    x = x.reshape(num, x.shape[1], -1)
    pieces = [
        x[
            :,
            i : i + stride * (height - 1) + 1 : stride,
            step * block * num_in : (step * block + span) * num_in,
        ]
        for block in range(num_blocks)
        for i in range(taps_high)
    ]
    pieces = jnp.concatenate(pieces, axis=-1)
    return pieces.reshape(num * height * num_blocks, taps_high * span * num_in)
