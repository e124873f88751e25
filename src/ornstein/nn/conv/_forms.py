"""The three faces of a 2-D convolution, as forward convolutions or matrix products.

With images x, kernels k and outputs g, the number ⟨g, conv(x, k)⟩ is linear in each
of x, k and g, and its partial derivatives are

- `conv(x, k)`, of the shape of g: the convolution;
- `input_gradient(g, k)`, of the shape of x: also the transposed convolution;
- `kernel_gradient(x, g)`, of the shape of k.

XLA's CPU backend is fast only on what an ordinary network's forward pass contains:
NHWC images, HWIO kernels, undilated images. Its own gradients are about 40 times
slower inside a loop (jax issue 12868), hence this file; and with few channels matrix
products are faster still (`_products.py`). The thresholds below were measured inside
`lax.scan`, on 128 images.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from ..._types import Array
from . import _winograd
from ._geometry import Geometry, Pads
from ._products import BAND, IMAGE, PIXEL, SHIFTS, Product, band_pieces, band_waste

_LAYOUT = ("NHWC", "HWIO", "NHWC")

# Up to how many channels, times the waste of `BAND`, it beats Eigen. In ms, Eigen's
# (or shifts') and the band's, on two cores and 128 images:
#                             convolution   input gradient   kernel gradient
# 28×28, 1 to 6, 5×5 (1.6)     3.3   0.6      12.5   0.4        5.3   1.2
# 32×32, 3 to 16 (6)           5.0   2.2      10.8   1.9        7.4   4.3
# 28×28, 3 to 32 (6)           3.2   2.3       5.1   2.9        5.3   4.0
# 16×16, 4 to 32 (8)           1.0   1.6       1.2   1.4        0.8   2.8
# 12×12, 6 to 16, 5×5 (9.6)    1.0   0.8       2.4   0.4        0.9   0.7
# 16×16, 8 to 16 (16)          1.3   2.0       2.5   0.9        2.3   4.6
# 32×32, 16 to 16 (32)         7.9  17.6       7.9   9.3       10.7  21.5
_BAND, _BAND_INPUT = 6.5, 10.0

# The input gradient adds up its pieces in one loop that asks of each pixel which of
# them it is in. Inside a network that loop is repeated where its result is used: a
# step of ResNet-32 with 8, 16 and 32 channels on 28×28 pixels, 21 pieces, takes 0.92 s
# with the band and 0.14 s without (64 images, one core). LeNet's 10 pieces halve its
# step.
_MOST_PIECES = 16


def _convolve(
    x: Array, kernel: Array, stride: int, pads: Pads, kernel_dilation: int = 1
) -> Array:
    return lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        pads,
        rhs_dilation=(kernel_dilation, kernel_dilation),
        dimension_numbers=_LAYOUT,
    )


def _flip(kernel: Array) -> Array:
    """The kernel of the input gradient at stride 1, and back."""
    return jnp.flip(kernel, (0, 1)).swapaxes(2, 3)


# As XLA knows them: what a GPU runs, by way of cuDNN.


def plain_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    return _convolve(x, kernel, geometry.stride, geometry.pads)


def plain_input_gradient(geometry: Geometry, g: Array, kernel: Array) -> Array:
    shape = (g.shape[0], *geometry.image_shape, kernel.shape[2])
    x = jax.ShapeDtypeStruct(shape, g.dtype)
    (dx,) = jax.linear_transpose(lambda x: plain_conv(geometry, x, kernel), x)(g)
    return dx


def plain_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    shape = (*geometry.kernel_shape, x.shape[3], g.shape[3])
    kernel = jax.ShapeDtypeStruct(shape, x.dtype)
    (dk,) = jax.linear_transpose(lambda k: plain_conv(geometry, x, k), kernel)(g)
    return dk


# For the CPU.


def _dense(geometry: Geometry) -> Product | None:
    """The dense product that the convolution is, if it is one."""
    if any(pad != (0, 0) for pad in geometry.pads):
        return None
    if geometry.kernel_shape == (1, 1):
        return PIXEL
    if geometry.kernel_shape == geometry.image_shape:
        return IMAGE
    return None


def _pays(geometry: Geometry, num_channels: int, most: float) -> bool:
    """Whether the band costs less than what few channels cost Eigen."""
    return num_channels * band_waste(geometry) <= most


def _pays_backwards(geometry: Geometry, num_channels: int) -> bool:
    """The same of the input gradient."""
    is_cheap = _pays(geometry, num_channels, _BAND_INPUT)
    return is_cheap and band_pieces(geometry) <= _MOST_PIECES


def cpu_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    num_in, num_out = kernel.shape[2:]
    dense = _dense(geometry)
    if dense is not None:
        return dense.conv(geometry, x, kernel)
    if _pays(geometry, num_in, _BAND):
        return BAND.conv(geometry, x, kernel)
    if geometry.stride == 1 and _pays_backwards(geometry.flipped, num_out):
        return BAND.input_gradient(geometry.flipped, x, _flip(kernel))
    if math.prod(geometry.out_shape) <= 4:
        # Eigen falls to 6 GFLOP/s a core on images of 2×2 (128 to 128 channels: 22.9
        # ms, and so 2.1), and is back at 81 on those of 4×4.
        return SHIFTS.conv(geometry, x, kernel)
    if _winograd.conv_pays(geometry, num_in, num_out, x.dtype):
        return _winograd.conv(geometry, x, kernel)
    # An odd number of channels keeps Eigen off its vectorised path; with many the copy
    # costs what it gains.
    if num_in % 2 == 1 and 1 < num_in < 16:
        extra = -num_in % 4
        x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, extra)))
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, extra), (0, 0)))
    return _convolve(x, kernel, geometry.stride, geometry.pads)


def cpu_input_gradient(geometry: Geometry, g: Array, kernel: Array) -> Array:
    """The polyphase form: one convolution to stride² · C channels, then interleave.

    Along one axis dx[p] = Σ_j g[j] k[p + a - s j], with a the zeros padded before and
    s the stride. At p = s i + r only the taps k[s d + r + a], d = i - j, take part: an
    ordinary convolution over i for each phase r, and no zeros are ever inserted. At
    stride 1 there is one phase, and its kernel is k flipped.
    """
    dense = _dense(geometry)
    if dense is not None:
        return dense.input_gradient(geometry, g, kernel)
    if _pays_backwards(geometry, kernel.shape[2]):
        return BAND.input_gradient(geometry, g, kernel)
    stride = geometry.stride
    phases, out_pads = [], []
    for axis in (0, 1):
        before = geometry.pads[axis][0]
        size, taps = geometry.image_shape[axis], geometry.kernel_shape[axis]
        first = -((stride - 1 + before) // stride)  # least d, reached by the last phase
        last = (taps - 1 - before) // stride  # greatest d, reached by phase 0
        num_taps = last - first + 1
        low = -(stride * first + before)
        phases.append((num_taps, low, stride * num_taps - low - taps))
        num_rows = -(-size // stride)
        out_pads.append((last, num_rows - g.shape[1 + axis] - last + num_taps - 1))
    (rows, *row_pad), (columns, *column_pad) = phases
    num_in, num_out = kernel.shape[2:]
    kernel = jnp.pad(kernel, (tuple(row_pad), tuple(column_pad), (0, 0), (0, 0)))
    kernel = kernel.reshape(rows, stride, columns, stride, num_in, num_out)
    kernel = jnp.flip(kernel, (0, 2)).transpose(0, 2, 5, 1, 3, 4)
    kernel = kernel.reshape(rows, columns, num_out, stride**2 * num_in)
    pads = (out_pads[0], out_pads[1])
    phased = Geometry(1, pads, (g.shape[1], g.shape[2]), (rows, columns))
    dx = interleave(cpu_conv(phased, g, kernel), stride)
    height, width = geometry.image_shape
    return dx[:, :height, :width]


def cpu_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    num_in, num_out = x.shape[3], g.shape[3]
    num_taps = math.prod(geometry.kernel_shape)
    undilated = geometry.stride == 1
    dense = _dense(geometry)
    if dense is not None:
        return dense.kernel_gradient(geometry, x, g)
    # With the roles of x and g exchanged, the gradient is the kernel flipped.
    if _pays(geometry, num_in, _BAND):
        return BAND.kernel_gradient(geometry, x, g)
    if undilated and _pays(geometry.flipped, num_out, _BAND):
        return _flip(BAND.kernel_gradient(geometry.flipped, g, x))
    if num_taps * num_in <= 36:
        return SHIFTS.kernel_gradient(geometry, x, g)
    if undilated and num_taps * num_out <= 72:
        return _flip(SHIFTS.kernel_gradient(geometry.flipped, g, x))
    if _winograd.gradient_pays(geometry, num_in, num_out, x.dtype):
        return _winograd.kernel_gradient(geometry, x, g)
    # Channels as the batch, the batch as channels, g as the kernel.
    pads = tuple(
        (low, (rows - 1) * geometry.stride + taps - size - low)
        for (low, _), rows, taps, size in zip(
            geometry.pads,
            geometry.out_shape,
            geometry.kernel_shape,
            geometry.image_shape,
            strict=True,
        )
    )
    dk = _convolve(
        x.transpose(3, 1, 2, 0), g.transpose(1, 2, 0, 3), 1, pads, geometry.stride
    )
    return dk.transpose(1, 2, 0, 3)


def interleave(x: Array, factor: int) -> Array:
    """(n, h, w, factor² c) to (n, factor h, factor w, c)."""
    num, height, width, channels = x.shape
    if factor == 1:
        return x
    x = x.reshape(num, height, width, factor, factor, channels // factor**2)
    x = x.transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(num, factor * height, factor * width, channels // factor**2)
