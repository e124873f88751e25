"""Kernel gradients with the taps of a row beside x, and those of a column beside g.

`dk[i, j] = Σ_r x[s r + i, j]ᵀ g[r]` over rows r of the output, where `x[., j]` are the
pixels that tap j meets. Put at row s r + i, g is met by all columns' taps at once: one
product of x three times side by side with g three times one below another, for a 3×3
kernel, has all nine taps, of six copies where `SHIFTS` makes nine of x.
"""

import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from ..._types import Array
from ._chunks import chunks, over_images
from ._geometry import Geometry
from ._products import padded

# What is made of the images of one chunk. 128 images in a scan had, in GFLOP/s of two
# cores (AMD EPYC, AVX2; such a machine's speed varies by a third), with so many MB at a
# time:
#                     1    2    3    6
#   16×16, 64 channels  57   99   87   80
#   8×8, 64             65   76   74   53
#   8×8, 128            65   70   78   69
_CHUNK_BYTES = 2 * 2**20


@over_images
def split_kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    """The kernel gradient, some images at a time."""

    def add(total: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        return total + _of_chunk(geometry, *part), None

    num_in, num_out = x.shape[3], g.shape[3]
    each = split_bytes(geometry, num_in, num_out, x.dtype)
    xs, gs = chunks((x, g), each, _CHUNK_BYTES)
    if len(xs) == 1:
        return _of_chunk(geometry, x, g)
    total = jnp.zeros((*geometry.kernel_shape, num_in, num_out), x.dtype)
    return lax.scan(add, total, (xs, gs))[0]


def split_bytes(geometry: Geometry, num_in: int, num_out: int, dtype: DTypeLike) -> int:
    """What it makes of one image."""
    (taps_high, taps_wide), (height, width) = geometry.kernel_shape, geometry.out_shape
    num = num_in * taps_wide * min(geometry.stride, taps_high) + num_out * taps_high
    return num * (height + taps_high - 1) * width * jnp.dtype(dtype).itemsize


def _of_chunk(geometry: Geometry, x: Array, g: Array) -> Array:
    """All products have the pixels last on the left: Eigen is fastest so."""
    stride, (height, width) = geometry.stride, geometry.out_shape
    taps_high, taps_wide = geometry.kernel_shape
    num_in, num_out = x.shape[3], g.shape[3]
    pads = ((0, 0, 0), (0, 0, 0), *((*pad, 0) for pad in geometry.pads))
    x = lax.pad(x.transpose(3, 0, 1, 2), jnp.zeros((), x.dtype), pads)
    by_tap: dict[int, Array] = {}
    # Rows of the image that one phase of the stride has are met by these taps.
    for phase in range(min(stride, taps_high)):
        taps = range(phase, taps_high, stride)
        num_rows = height + len(taps) - 1
        of_phase = x[:, :, phase : phase + stride * (num_rows - 1) + 1 : stride]
        beside = jnp.concatenate(
            [
                of_phase[:, :, :, j : j + stride * (width - 1) + 1 : stride]
                for j in range(taps_wide)
            ]
        )
        below = jnp.concatenate(
            [padded(g, (a, len(taps) - 1 - a), (0, 0)) for a in range(len(taps))], -1
        )
        dk = beside.reshape(taps_wide * num_in, -1) @ below.reshape(
            -1, len(taps) * num_out
        )
        dk = dk.reshape(taps_wide, num_in, len(taps), num_out)
        by_tap |= {tap: dk[:, :, a] for a, tap in enumerate(taps)}
    return jnp.stack([by_tap[tap] for tap in range(taps_high)])
