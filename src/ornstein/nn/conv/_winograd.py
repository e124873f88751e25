r"""3×3 convolutions at stride 1 by Winograd's tiles, some images at a time.

Of each 2×2 tile of the output, all a channel pair's 4 · 9 products are had from 16:
$Y = A^T [(G k G^T) \odot (B^T d B)] A$, with d the 4×4 pixels that the tile meets. Over
channels the 16 are matrix products, which Eigen runs faster than its convolution does;
the kernel gradient has the same 16, $G^T [\sum (B^T d B)^T (A g A^T)] G$. Transformed
tiles are four times the images: they stay in the processor's cache only if few images
are at work, and without that half of the gain is lost on one core. On several, sharing
the work among threads is worth more, and takes many images (`wide`).

That is F(2×2, 3×3). In float32 its error is about 1e-6 of the largest value: A and B
hold ones, G halves. F(4×4, 3×3) has 36 products in place of 144, of tiles of 6×6
pixels, and an error of about 1e-5: its matrices hold numbers from 1/24 to 8. Kernel
gradients have it too: at 16×16, 64 channels, 117 GFLOP/s for 92, at 8×8, 128 channels,
165 for 125, at 32×32, 64 channels 90 for 68 (128 images, one core of an AMD EPYC with
AVX2, processor time beside other work). Of a convolution it gains nothing: 8 images of
16×16, 64 channels take 505 µs of products for 713, but making tiles of them 265 for
172, and putting outputs together 248 for 152; in one program XLA fuses the last with
what it needs again and again, and all took 3.6 ms for 0.9.

Source: Lavin & Gray, "Fast algorithms for convolutional neural networks", 2016,
section 4.1.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from ..._types import Array
from ._chunks import Run, chunks, of_images, over_images
from ._geometry import Geometry
from ._products import padded

# Transformed tiles of one chunk. Kernel gradients of 128 images by a rough version of
# this file had, in GFLOP/s of one core's processor time (AMD EPYC, beside other jobs),
# with so many images at a time:
#                           2    4    8   16   32
#   28×28, 32 channels     99   97   76   68   60
#   14×14, 32              49   78   82   92   67
#   32×32, 64             130  120  110  103   95
#   16×16, 64             139  135  133  129  118
#   8×8, 128              151  195  199  192  191
_CHUNK_BYTES = 2**21

# On several cores XLA cuts up, for its threads, what makes or multiplies arrays of half
# a megabyte and more, and the loop runs on one thread with less: then what an array has
# on average.
_WIDE_BYTES = 2**19

# One image's tiles: of more, one image at a time is as wide as many.
_MOST_WIDE = 2**24

_LEAST_PIXELS = 16


_Map: TypeAlias = Callable[[Sequence[Array]], list[Array]]


class _Tiling(NamedTuple):
    """Tiles of one size, and the maps of one of their sides.

    Attributes:
        num_outputs: along the side; it meets two pixels more.
        meet: B^T.
        unfold: A.
        narrow: G^T.
    """

    num_outputs: int
    meet: _Map
    unfold: _Map
    narrow: _Map


def suits(geometry: Geometry, dtype: DTypeLike) -> bool:
    """Whether the form exists, and its rounding is no worse than the numbers'."""
    return (
        geometry.stride == 1
        and geometry.kernel_shape == (3, 3)
        and math.prod(geometry.out_shape) >= _LEAST_PIXELS
        and jnp.finfo(dtype).bits >= 32
    )


def suits_wide(
    geometry: Geometry, num_channels: int, dtype: DTypeLike, *, is_large: bool
) -> bool:
    """Whether the form of many images exists: not of images whose tiles are many."""
    each = _bytes_each(geometry, num_channels, dtype, _LARGE if is_large else _SMALL)
    return suits(geometry, dtype) and each <= _MOST_WIDE


def _conv_of(*, is_wide: bool) -> Run:
    @of_images
    def run(geometry: Geometry, x: Array, kernel: Array) -> Array:
        """The convolution."""
        num_in, num_out = kernel.shape[2:]
        height, width = geometry.out_shape
        down = [_widen([kernel[i, j] for i in range(3)]) for j in range(3)]
        by_row = [_widen([down[j][i] for j in range(3)]) for i in range(4)]
        transformed = [u for row in by_row for u in row]

        def some(x: Array) -> Array:
            met = _tiles(geometry, x, _SMALL)
            shape = met[0].shape
            pairs = zip(met, transformed, strict=True)
            m = [a.reshape(-1, num_in) @ u for a, u in pairs]
            down = [_fold(m[column::4]) for column in range(4)]
            rows = [_fold([column[row] for column in down]) for row in range(2)]
            y = jnp.stack([jnp.stack(row) for row in rows])
            y = y.reshape(2, 2, *shape[:3], num_out).transpose(2, 3, 0, 4, 1, 5)
            y = y.reshape(shape[0], 2 * shape[1], 2 * shape[2], num_out)
            return y[:, :height, :width]

        (xs,) = _chunks((x,), geometry, num_in + num_out, _SMALL, is_wide=is_wide)
        if len(xs) == 1:
            return some(x)
        y = lax.map(some, xs)
        return y.reshape(-1, *y.shape[2:])[: len(x)]

    return run


def _kernel_gradient_of(tiling: _Tiling, *, is_wide: bool) -> Run:
    num_pixels = tiling.num_outputs + 2

    @over_images
    def run(geometry: Geometry, x: Array, g: Array) -> Array:
        """The gradient of ⟨g, conv(x, k)⟩ with respect to k."""
        num_in, num_out = x.shape[3], g.shape[3]

        def some(x: Array, g: Array) -> Array:
            met, spread = _tiles(geometry, x, tiling), _spread(g, tiling)
            flat = lambda a: a.reshape(-1, a.shape[-1])
            pairs = zip(met, spread, strict=True)
            return jnp.stack([flat(a).T @ flat(b) for a, b in pairs])

        def add(total: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
            return total + some(*part), None

        xs, gs = _chunks((x, g), geometry, num_in + num_out, tiling, is_wide=is_wide)
        if len(xs) == 1:
            total = some(x, g)
        else:
            zeros = jnp.zeros((num_pixels**2, num_in, num_out), x.dtype)
            total, _ = lax.scan(add, zeros, (xs, gs))
        sides = range(num_pixels)
        rows = [
            tiling.narrow([total[num_pixels * i + j] for j in sides]) for i in sides
        ]
        columns = [tiling.narrow([rows[i][j] for i in sides]) for j in range(3)]
        return jnp.stack(
            [jnp.stack([column[i] for column in columns]) for i in range(3)]
        )

    return run


def _chunks(
    images: Sequence[Array],
    geometry: Geometry,
    num_channels: int,
    tiling: _Tiling,
    *,
    is_wide: bool,
) -> tuple[Array, ...]:
    """Chunks of images by the bytes of their transformed tiles, both sides'."""
    each = _bytes_each(geometry, num_channels, images[0].dtype, tiling)
    num_arrays = 2 * (tiling.num_outputs + 2) ** 2
    return chunks(images, each, num_arrays * _WIDE_BYTES if is_wide else _CHUNK_BYTES)


def _bytes_each(
    geometry: Geometry, num_channels: int, dtype: DTypeLike, tiling: _Tiling
) -> int:
    """Of one image's transformed tiles, both sides'."""
    num_tiles = math.prod(-(-size // tiling.num_outputs) for size in geometry.out_shape)
    num_pixels = (tiling.num_outputs + 2) ** 2
    return num_pixels * num_tiles * num_channels * jnp.dtype(dtype).itemsize


def _tiles(geometry: Geometry, x: Array, tiling: _Tiling) -> list[Array]:
    """B^T d B of all tiles: arrays (images, tiles down, tiles across, in)."""
    step = tiling.num_outputs
    down, across = (-(-size // step) for size in geometry.out_shape)
    pads = [
        (low, step * tiles + 2 - size - low)
        for tiles, size, (low, _) in zip(
            (down, across), geometry.image_shape, geometry.pads, strict=True
        )
    ]
    x = padded(x, *pads)
    sides = range(step + 2)
    of = lambda first, tiles: slice(first, first + step * (tiles - 1) + 1, step)
    rows = tiling.meet([x[:, of(i, down)] for i in sides])
    return [
        tile
        for row in rows
        for tile in tiling.meet([row[:, :, of(j, across)] for j in sides])
    ]


def _spread(g: Array, tiling: _Tiling) -> list[Array]:
    """A g A^T of all tiles of the output: arrays (images, down, across, out)."""
    step = tiling.num_outputs
    g = jnp.pad(g, ((0, 0), (0, -g.shape[1] % step), (0, -g.shape[2] % step), (0, 0)))
    rows = tiling.unfold([g[:, i::step] for i in range(step)])
    return [
        tile
        for row in rows
        for tile in tiling.unfold([row[:, :, j::step] for j in range(step)])
    ]


def _meet(d: Sequence[Array]) -> list[Array]:
    """B^T d."""
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _fold(m: Sequence[Array]) -> list[Array]:
    """A^T m."""
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def _unfold(g: Sequence[Array]) -> list[Array]:
    """A g."""
    return [g[0], g[0] + g[1], g[0] - g[1], -g[1]]


def _widen(k: Sequence[Array]) -> list[Array]:
    """G k."""
    ends, middle = (k[0] + k[2]) / 2, k[1] / 2
    return [k[0], ends + middle, ends - middle, k[2]]


def _narrow(m: Sequence[Array]) -> list[Array]:
    """G^T m."""
    total, difference = (m[1] + m[2]) / 2, (m[1] - m[2]) / 2
    return [m[0] + total, difference, total + m[3]]


# The same three maps of F(4×4, 3×3), in the order of the points 0, 1, -1, 2, -2, ∞.


def _meet_large(d: Sequence[Array]) -> list[Array]:
    ones, twos = (d[4] - 4 * d[2], d[3] - 4 * d[1]), (d[4] - d[2], 2 * (d[3] - d[1]))
    return [
        4 * d[0] - 5 * d[2] + d[4],
        ones[0] + ones[1],
        ones[0] - ones[1],
        twos[0] + twos[1],
        twos[0] - twos[1],
        4 * d[1] - 5 * d[3] + d[5],
    ]


def _unfold_large(g: Sequence[Array]) -> list[Array]:
    ones, twos = (g[0] + g[2], g[1] + g[3]), (g[0] + 4 * g[2], 2 * g[1] + 8 * g[3])
    return [
        g[0],
        ones[0] + ones[1],
        ones[0] - ones[1],
        twos[0] + twos[1],
        twos[0] - twos[1],
        g[3],
    ]


def _narrow_large(m: Sequence[Array]) -> list[Array]:
    ones, twos = (m[1] + m[2], m[1] - m[2]), (m[3] + m[4], m[3] - m[4])
    return [
        m[0] / 4 - ones[0] / 6 + twos[0] / 24,
        twos[1] / 12 - ones[1] / 6,
        twos[0] / 6 - ones[0] / 6 + m[5],
    ]


_SMALL = _Tiling(2, _meet, _unfold, _narrow)
_LARGE = _Tiling(4, _meet_large, _unfold_large, _narrow_large)

conv = _conv_of(is_wide=False)
"""The convolution, by tiles of 2×2 outputs."""

wide_conv = _conv_of(is_wide=True)
"""The same, of many images at a time."""

kernel_gradient = _kernel_gradient_of(_SMALL, is_wide=False)
"""The kernel gradient by tiles of 2×2 outputs."""

large_kernel_gradient = _kernel_gradient_of(_LARGE, is_wide=False)
"""The kernel gradient by tiles of 4×4 outputs."""

wide_kernel_gradient = _kernel_gradient_of(_LARGE, is_wide=True)
"""The same, of many images at a time."""
