"""The three faces of a 2-D convolution, as forward convolutions or matrix products.

With images x, kernels k and outputs g, the number ⟨g, conv(x, k)⟩ is linear in each
of x, k and g, and its partial derivatives are

- `conv(x, k)`, of the shape of g: the convolution;
- `input_gradient(g, k)`, of the shape of x: also the transposed convolution;
- `kernel_gradient(x, g)`, of the shape of k.

XLA's CPU backend is fast at most on what an ordinary network's forward pass contains
(and not on all of that: `_threads.py`): NHWC images, HWIO kernels, undilated images.
Its own gradients are about 40 times slower inside a loop (jax issue 12868), hence this
file. Which of a face's forms is the fastest depends on the shape and on the processor:
`_choice.py` has it measured.
"""

import math

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from ..._types import Array
from . import _threads, _winograd
from ._choice import Face, Form, Forms, Suits, choose
from ._geometry import Geometry
from ._products import (
    BAND,
    IMAGE,
    PIXEL,
    SHIFTS,
    Product,
    band_pieces,
    band_waste,
    shifts_bytes,
    shifts_kernel_gradient,
    sums_conv,
)
from ._split import split_bytes, split_kernel_gradient
from ._xla import convolve

# The input gradient of a band adds up its pieces in one loop that asks of each pixel
# which of them it is in. Inside a network that loop is repeated where its result is
# used: a step of ResNet-32 with 8, 16 and 32 channels on 28×28 pixels, 21 pieces, takes
# 0.92 s with the band and 0.14 s without (64 images, one core), which no measurement of
# the gradient by itself shows. LeNet's 10 pieces halve its step.
_MOST_PIECES = 16

# Beyond these what a form makes of the images is not worth its memory.
_MOST_BAND = 40  # channels times the waste
_MOST_SUMMED = 4  # taps' products at a pixel, for each channel in
_MOST_SHIFTED_PIXELS = 16  # of the output, for all images at once
_MOST_SHIFTED_BYTES = 2**24  # of one image


def _flip(kernel: Array) -> Array:
    """The kernel of the input gradient at stride 1, and back."""
    return jnp.flip(kernel, (0, 1)).swapaxes(2, 3)


# As XLA knows them: what a GPU runs, by way of cuDNN.


def plain_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    return convolve(x, kernel, geometry.stride, geometry.pads)


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


# For the CPU. What is a dense product is always taken as one.


def _dense(geometry: Geometry) -> Product | None:
    """The dense product that the convolution is, if it is one."""
    if any(pad != (0, 0) for pad in geometry.pads):
        return None
    if geometry.kernel_shape == (1, 1):
        return PIXEL
    if geometry.kernel_shape == geometry.image_shape:
        return IMAGE
    return None


def cpu_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    dense = _dense(geometry)
    if dense is not None:
        return dense.conv(geometry, x, kernel)
    return CONV[form_of("conv", geometry, *kernel.shape[2:], x.dtype)].run(
        geometry, x, kernel
    )


def cpu_input_gradient(geometry: Geometry, g: Array, kernel: Array) -> Array:
    dense = _dense(geometry)
    if dense is not None:
        return dense.input_gradient(geometry, g, kernel)
    name = form_of("input gradient", geometry, *kernel.shape[2:], g.dtype)
    return INPUT_GRADIENT[name].run(geometry, g, kernel)


def cpu_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    dense = _dense(geometry)
    if dense is not None:
        return dense.kernel_gradient(geometry, x, g)
    name = form_of("kernel gradient", geometry, x.shape[3], g.shape[3], x.dtype)
    return KERNEL_GRADIENT[name].run(geometry, x, g)


def form_of(
    face: Face, geometry: Geometry, num_in: int, num_out: int, dtype: DTypeLike
) -> str:
    """The name of the form that the CPU takes."""
    if _dense(geometry) is not None:
        return "dense"
    return choose(face, FORMS[face], geometry, num_in, num_out, dtype)


def forms_of_all(
    geometry: Geometry, num_in: int, num_out: int, dtype: DTypeLike
) -> dict[Face, str]:
    """The forms of a convolution and its two gradients, in words."""
    names: dict[Face, str] = {}
    for face in FORMS:
        name = form_of(face, geometry, num_in, num_out, dtype)
        if name == "phases":
            phased, _ = _phases(geometry, num_in)
            inner = (phased, num_out, geometry.stride**2 * num_in, dtype)
            name = f"phases, {form_of('conv', *inner)}"
        names[face] = name
    return names


def _direct_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    return convolve(x, kernel, geometry.stride, geometry.pads)


def _filled_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """With channels of zeros, to a multiple of four: odd ones aren't vectorised."""
    extra = -x.shape[3] % 4
    x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, extra)))
    kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, extra), (0, 0)))
    return _direct_conv(geometry, x, kernel)


def _flipped_band_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    return BAND.input_gradient(geometry.flipped, x, _flip(kernel))


def _phases(geometry: Geometry, num_in: int) -> tuple[Geometry, tuple]:
    """The convolution of the polyphase form, and how its kernel is padded."""
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
        num_out = geometry.out_shape[axis]
        out_pads.append((last, num_rows - num_out - last + num_taps - 1))
    (rows, *row_pad), (columns, *column_pad) = phases
    pads = (out_pads[0], out_pads[1])
    phased = Geometry(1, pads, geometry.out_shape, (rows, columns))
    return phased, (tuple(row_pad), tuple(column_pad), (0, 0), (0, 0))


def _phases_input_gradient(geometry: Geometry, g: Array, kernel: Array) -> Array:
    """The polyphase form: one convolution to stride² · C channels, then interleave.

    Along one axis dx[p] = Σ_j g[j] k[p + a - s j], with a the zeros padded before and
    s the stride. At p = s i + r only the taps k[s d + r + a], d = i - j, take part: an
    ordinary convolution over i for each phase r, and no zeros are ever inserted. At
    stride 1 there is one phase, and its kernel is k flipped.
    """
    stride = geometry.stride
    num_in, num_out = kernel.shape[2:]
    phased, kernel_pads = _phases(geometry, num_in)
    rows, columns = phased.kernel_shape
    kernel = jnp.pad(kernel, kernel_pads)
    kernel = kernel.reshape(rows, stride, columns, stride, num_in, num_out)
    kernel = jnp.flip(kernel, (0, 2)).transpose(0, 2, 5, 1, 3, 4)
    kernel = kernel.reshape(rows, columns, num_out, stride**2 * num_in)
    dx = interleave(cpu_conv(phased, g, kernel), stride)
    height, width = geometry.image_shape
    return dx[:, :height, :width]


def _direct_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    """Channels as the batch, the batch as channels, g as the kernel."""
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
    dk = convolve(
        x.transpose(3, 1, 2, 0), g.transpose(1, 2, 0, 3), 1, pads, geometry.stride
    )
    return dk.transpose(1, 2, 0, 3)


# With the roles of x and g exchanged, the kernel gradient is the kernel flipped.


def _flipped_band_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    return _flip(BAND.kernel_gradient(geometry.flipped, g, x))


def _flipped_shifts_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    return _flip(shifts_kernel_gradient(geometry.flipped, g, x))


# Whether a form exists, of geometry, channels in and out, and dtype.

_always: Suits = lambda *_: True

_odd_channels: Suits = lambda geometry, num_in, *_: num_in % 2 == 1 and 1 < num_in < 16

_few_channels: Suits = lambda geometry, num_in, *_: (
    num_in * band_waste(geometry) <= _MOST_BAND
)

_few_pieces: Suits = lambda geometry, *what: (
    _few_channels(geometry, *what) and band_pieces(geometry) <= _MOST_PIECES
)

_tiny: Suits = lambda geometry, *_: (
    math.prod(geometry.out_shape) <= _MOST_SHIFTED_PIXELS
)

_few_out: Suits = lambda geometry, num_in, num_out, dtype: (
    geometry.stride == 1
    and math.prod(geometry.kernel_shape) * num_out <= _MOST_SUMMED * num_in
    and jnp.finfo(dtype).bits >= 32
)

_fits: Suits = lambda geometry, num_in, num_out, dtype: (
    shifts_bytes(geometry, num_in, dtype) <= _MOST_SHIFTED_BYTES
)

_splits: Suits = lambda geometry, *what: (
    geometry.kernel_shape[0] > 1 and split_bytes(geometry, *what) <= _MOST_SHIFTED_BYTES
)

_tiles: Suits = lambda geometry, num_in, num_out, dtype: _winograd.suits(
    geometry, dtype
)


_few_tiles: Suits = lambda geometry, num_in, num_out, dtype: _winograd.suits_wide(
    geometry, num_in + num_out, dtype, is_large=False
)

_few_large_tiles: Suits = lambda geometry, num_in, num_out, dtype: _winograd.suits_wide(
    geometry, num_in + num_out, dtype, is_large=True
)


def _flipped(suits: Suits) -> Suits:
    """The same of g in place of x, which is there at stride 1."""
    return lambda geometry, num_in, num_out, dtype: (
        geometry.stride == 1 and suits(geometry.flipped, num_out, num_in, dtype)
    )


CONV: Forms = {
    "extra row": Form(_threads.extended_conv, _threads.is_extendable),
    "row phases": Form(_threads.row_phases_conv, _threads.is_strided),
    "direct": Form(_direct_conv, _always),
    "filled": Form(_filled_conv, _odd_channels),
    "band": Form(BAND.conv, _few_channels),
    "flipped band": Form(_flipped_band_conv, _flipped(_few_pieces)),
    "shifts": Form(SHIFTS.conv, _tiny),
    "sums": Form(sums_conv, _few_out),
    "winograd": Form(_winograd.conv, _tiles),
    "wide winograd": Form(_winograd.wide_conv, _few_tiles),
}
"""XLA's own, on all threads and as it is; bands, of x or towards g; shifted images;
sums of what is shifted; Winograd's tiles. The first are taken where they are as fast:
the table knows one core from more, and not how many more.
"""

INPUT_GRADIENT: Forms = {
    "phases": Form(_phases_input_gradient, _always),
    "band": Form(BAND.input_gradient, _few_pieces),
}

KERNEL_GRADIENT: Forms = {
    "direct": Form(_direct_kernel_gradient, _always),
    "shifts": Form(shifts_kernel_gradient, _fits),
    "flipped shifts": Form(_flipped_shifts_kernel_gradient, _flipped(_fits)),
    "split taps": Form(split_kernel_gradient, _splits),
    "band": Form(BAND.kernel_gradient, _few_channels),
    "flipped band": Form(_flipped_band_kernel_gradient, _flipped(_few_channels)),
    "winograd": Form(_winograd.kernel_gradient, _tiles),
    "winograd 4": Form(_winograd.large_kernel_gradient, _tiles),
    "wide winograd 4": Form(_winograd.wide_kernel_gradient, _few_large_tiles),
}

FORMS: dict[Face, Forms] = {
    "conv": CONV,
    "input gradient": INPUT_GRADIENT,
    "kernel gradient": KERNEL_GRADIENT,
}


def interleave(x: Array, factor: int) -> Array:
    """(n, h, w, factor² c) to (n, factor h, factor w, c)."""
    num, height, width, channels = x.shape
    if factor == 1:
        return x
    x = x.reshape(num, height, width, factor, factor, channels // factor**2)
    x = x.transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(num, factor * height, factor * width, channels // factor**2)
