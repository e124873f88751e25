"""Convolutions that XLA's CPU backend runs on all threads.

It gives most of more than 16 channels to YNNPACK, which (jaxlib 0.10.2) runs a
convolution on one thread unless a reduction follows it; Eigen runs it on all. Those
whose output has more rows than their image it leaves to Eigen, so a row or two are
computed that nobody asked for. Milliseconds of 128 images, by themselves but for the
last, on two cores of an AMD EPYC with AVX2:

                                          as it is    as here    Eigen
    16×16, 64 to 64 channels                    42         22       18
    14×14, 32 to 128, 2×2 taps                  14          7        6
    28×28, 32 to 32, stride 2, in a scan        19         10      6.5
"""

from jax import numpy as jnp
from jax.typing import DTypeLike

from ..._types import Array
from ._geometry import Geometry
from ._xla import convolve

_MOST_CHANNELS = 16
"""Up to which Eigen has convolutions as they are."""
_MOST_EXTRA = 1 / 4
"""Of the rows that were asked for."""


def is_extendable(
    geometry: Geometry, num_in: int, num_out: int, dtype: DTypeLike
) -> bool:
    """Whether some more rows make more of them than the image has."""
    rows = geometry.out_shape[0]
    extra = geometry.image_shape[0] + 1 - rows
    is_other = max(num_in, num_out) > _MOST_CHANNELS
    return geometry.stride == 1 and is_other and 0 < extra <= _MOST_EXTRA * rows


def extended_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """At stride 1, with a row more than the image has."""
    rows = geometry.out_shape[0]
    (low, high), columns = geometry.pads
    extra = geometry.image_shape[0] + 1 - rows
    y = convolve(x, kernel, 1, ((low, high + extra), columns))
    return y[:, :rows]


def is_strided(geometry: Geometry, num_in: int, num_out: int, dtype: DTypeLike) -> bool:
    is_other = max(num_in, num_out) > _MOST_CHANNELS
    is_exact = jnp.finfo(dtype).bits >= 32  # a sum of what was rounded
    return geometry.stride > 1 and is_other and is_exact


def row_phases_conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """At a stride s, as a sum over the images of every s-th row, each at stride (1, s).

    Output row i is Σ_t k[t] x[s i + t - a], with a the zeros before. The taps with
    t - a = s d + r meet row i + d of the r-th image.
    """
    stride, rows = geometry.stride, geometry.out_shape[0]
    (low, _), columns = geometry.pads
    num_taps, height = geometry.kernel_shape[0], geometry.image_shape[0]
    num_rows = max(rows, -(-height // stride) + 1)
    shape = (x.shape[0], num_rows, geometry.out_shape[1], kernel.shape[3])
    total = jnp.zeros(shape, x.dtype)
    for phase in range(stride):
        first = (phase + low) % stride
        part, taps = x[:, phase::stride], kernel[first::stride]
        if first >= num_taps or part.shape[1] == 0:
            continue
        before = -((first - low - phase) // stride)
        after = num_rows - part.shape[1] - before + taps.shape[0] - 1
        total += convolve(part, taps, (1, stride), ((before, after), columns))
    return total[:, :rows]
