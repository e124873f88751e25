"""The three faces of a 2-D convolution, each written as ordinary forward convolutions.

With images x, kernels k and outputs g, the number ⟨g, conv(x, k)⟩ is linear in each
of x, k and g, and its partial derivatives are

- `conv(x, k)`, of the shape of g: the convolution;
- `input_gradient(g, k)`, of the shape of x: also the transposed convolution;
- `kernel_gradient(x, g)`, of the shape of k.

XLA's CPU backend is fast only on what an ordinary network's forward pass contains:
NHWC images, HWIO kernels, undilated images. Its own gradients are about 40 times
slower inside a loop (jax issue 12868), hence this file. The thresholds below were
measured inside `lax.scan` by `benchmarks/conv.py` and its relatives, on 128 images of
28×28 with 32 channels.
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from .._types import Array
from ._conv_geometry import Geometry, Pads
from ._conv_products import band_conv, band_waste, image_conv, pixel_conv

Form: TypeAlias = Callable[[Geometry, Array, Array], Array]

_LAYOUT = ("NHWC", "HWIO", "NHWC")

# Up to how many channels, times the waste of `band_conv`, it beats Eigen: see
# `benchmarks/conv.py`.
_BAND_CONV, _BAND_GRADIENT, _BAND_KERNEL = 6.5, 17.0, 10.0


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


def _wrt_image(form: Form, geometry: Geometry, g: Array, kernel: Array) -> Array:
    shape = (g.shape[0], *geometry.image_shape, kernel.shape[2])
    x = jax.ShapeDtypeStruct(shape, g.dtype)
    (dx,) = jax.linear_transpose(lambda x: form(geometry, x, kernel), x)(g)
    return dx


def _wrt_kernel(form: Form, geometry: Geometry, x: Array, g: Array) -> Array:
    shape = (*geometry.kernel_shape, x.shape[3], g.shape[3])
    kernel = jax.ShapeDtypeStruct(shape, x.dtype)
    (dk,) = jax.linear_transpose(lambda k: form(geometry, x, k), kernel)(g)
    return dk


def _flip(kernel: Array) -> Array:
    """The kernel of the input gradient at stride 1, and back."""
    return jnp.flip(kernel, (0, 1)).swapaxes(2, 3)


# As XLA knows them: what a GPU runs, by way of cuDNN.


def plain_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    return _convolve(x, kernel, geometry.stride, geometry.pads)


def plain_input_gradient(geometry: Geometry, g: Array, kernel: Array) -> Array:
    return _wrt_image(plain_conv, geometry, g, kernel)


def plain_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    return _wrt_kernel(plain_conv, geometry, x, g)


# For the CPU.


def _product(geometry: Geometry) -> Form | None:
    """The dense product that the convolution is, if it is one."""
    if any(pad != (0, 0) for pad in geometry.pads):
        return None
    if geometry.kernel_shape == (1, 1):
        return pixel_conv
    if geometry.kernel_shape == geometry.image_shape:
        return image_conv
    return None


def _pays(geometry: Geometry, num_channels: int, most: float) -> bool:
    """Whether the band costs less than what few channels cost Eigen."""
    return num_channels * band_waste(geometry) <= most


def cpu_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    num_in, num_out = kernel.shape[2:]
    product = _product(geometry)
    if product is not None:
        return product(geometry, x, kernel)
    if _pays(geometry, num_in, _BAND_CONV):
        return band_conv(geometry, x, kernel)
    if geometry.stride == 1 and _pays(geometry.flipped, num_out, _BAND_GRADIENT):
        return _wrt_image(band_conv, geometry.flipped, x, _flip(kernel))
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
    product = _product(geometry)
    if product is not None:
        return _wrt_image(product, geometry, g, kernel)
    if _pays(geometry, kernel.shape[2], _BAND_GRADIENT):
        return _wrt_image(band_conv, geometry, g, kernel)
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
    taps_high, taps_wide = geometry.kernel_shape
    num_taps = taps_high * taps_wide
    num_in, num_out = x.shape[3], g.shape[3]
    product = _product(geometry)
    if product is not None:
        return _wrt_kernel(product, geometry, x, g)
    if _pays(geometry, num_in, _BAND_KERNEL):
        return _wrt_kernel(band_conv, geometry, x, g)
    if geometry.stride == 1 and _pays(geometry.flipped, num_out, _BAND_KERNEL):
        return _flip(_wrt_kernel(band_conv, geometry.flipped, g, x))
    # Few channels: one matrix product with all shifts of the thinner array (32 to 3
    # channels: 13.0 ms as a convolution, 3.1 ms so; 3 to 32: 8.8 and 2.8).
    if num_taps * num_in <= 36:
        shifts = _shifts(x, geometry.kernel_shape, geometry.stride, geometry.pads)
        dk = shifts.reshape(-1, num_taps * num_in).T @ g.reshape(-1, num_out)
        return dk.reshape(taps_high, taps_wide, num_in, num_out)
    if num_taps * num_out <= 72 and geometry.stride == 1:
        # Σ_p x[p + i - a] g[p] = Σ_q x[q] g[q - i + a]: shifts of g, taps reversed.
        shifts = _shifts(g, geometry.kernel_shape, 1, geometry.flipped.pads)
        dk = x.reshape(-1, num_in).T @ shifts.reshape(-1, num_taps * num_out)
        dk = dk.reshape(num_in, taps_high, taps_wide, num_out)
        return jnp.flip(dk.transpose(1, 2, 0, 3), (0, 1))
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


def _shifts(x: Array, taps: tuple[int, int], stride: int, pads: Pads) -> Array:
    """Every pixel that a tap of the kernel meets, taps side by side in the channels."""
    config = tuple((low, high, 0) for low, high in ((0, 0), *pads, (0, 0)))
    x = lax.pad(x, jnp.zeros((), x.dtype), config)  # unlike `jnp.pad`, may also crop
    rows = (x.shape[1] - taps[0]) // stride + 1
    columns = (x.shape[2] - taps[1]) // stride + 1
    return jnp.concatenate(
        [
            x[
                :,
                i : i + stride * (rows - 1) + 1 : stride,
                j : j + stride * (columns - 1) + 1 : stride,
            ]
            for i in range(taps[0])
            for j in range(taps[1])
        ],
        axis=-1,
    )
