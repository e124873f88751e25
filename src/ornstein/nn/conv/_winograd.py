r"""3×3 convolutions at stride 1 by Winograd's F(2×2, 3×3), some images at a time.

Of each 2×2 tile of the output, all a channel pair's 4 · 9 products are had from 16:
$Y = A^T [(G k G^T) \odot (B^T d B)] A$, with d the 4×4 pixels that the tile meets. Over
channels the 16 are matrix products, which Eigen runs faster than its convolution does;
the kernel gradient has the same 16, $G^T [\sum (B^T d B)^T (A g A^T)] G$. Transformed
tiles are four times the images: they stay in the processor's cache only if few images
are at work, and without that half of the gain is lost.

In float32 the error is about 1e-6 of the largest value: A and B hold ones, G halves.

Source: Lavin & Gray, "Fast algorithms for convolutional neural networks", 2016,
section 4.1.
"""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from ..._types import Array
from ._chunks import chunks, of_images, over_images
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

_LEAST_PIXELS = 16


def suits(geometry: Geometry, dtype: DTypeLike) -> bool:
    """Whether the form exists, and its rounding is no worse than the numbers'."""
    return (
        geometry.stride == 1
        and geometry.kernel_shape == (3, 3)
        and math.prod(geometry.out_shape) >= _LEAST_PIXELS
        and jnp.finfo(dtype).bits >= 32
    )


@of_images
def conv(geometry: Geometry, x: Array, kernel: Array) -> Array:
    """The convolution."""
    num_in, num_out = kernel.shape[2:]
    height, width = geometry.out_shape
    down = [_widen([kernel[i, j] for i in range(3)]) for j in range(3)]
    transformed = [u for i in range(4) for u in _widen([down[j][i] for j in range(3)])]

    def some(x: Array) -> Array:
        met = _tiles(geometry, x)
        shape = met[0].shape
        m = [a.reshape(-1, num_in) @ u for a, u in zip(met, transformed, strict=True)]
        down = [_fold(m[column::4]) for column in range(4)]
        rows = [_fold([down[column][row] for column in range(4)]) for row in range(2)]
        y = jnp.stack([jnp.stack(row) for row in rows])
        y = y.reshape(2, 2, *shape[:3], num_out).transpose(2, 3, 0, 4, 1, 5)
        y = y.reshape(shape[0], 2 * shape[1], 2 * shape[2], num_out)
        return y[:, :height, :width]

    (xs,) = chunks((x,), _bytes_each(geometry, x, num_out), _CHUNK_BYTES)
    if len(xs) == 1:
        return some(x)
    y = lax.map(some, xs)
    return y.reshape(-1, *y.shape[2:])[: len(x)]


@over_images
def kernel_gradient(geometry: Geometry, x: Array, g: Array) -> Array:
    """The gradient of ⟨g, conv(x, k)⟩ with respect to k."""
    num_in, num_out = x.shape[3], g.shape[3]

    def some(x: Array, g: Array) -> Array:
        met, spread = _tiles(geometry, x), _spread(g)
        flat = lambda a: a.reshape(-1, a.shape[-1])
        pairs = zip(met, spread, strict=True)
        return jnp.stack([flat(a).T @ flat(b) for a, b in pairs])

    def add(total: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        return total + some(*part), None

    xs, gs = chunks((x, g), _bytes_each(geometry, x, num_out), _CHUNK_BYTES)
    if len(xs) == 1:
        total = some(x, g)
    else:
        total, _ = lax.scan(add, jnp.zeros((16, num_in, num_out), x.dtype), (xs, gs))
    rows = [_narrow([total[4 * i + j] for j in range(4)]) for i in range(4)]
    columns = [_narrow([rows[i][j] for i in range(4)]) for j in range(3)]
    return jnp.stack([jnp.stack([column[i] for column in columns]) for i in range(3)])


def _bytes_each(geometry: Geometry, x: Array, num_out: int) -> int:
    """Of one image's transformed tiles, both sides'."""
    num_tiles = math.prod(-(-size // 2) for size in geometry.out_shape)
    return 16 * num_tiles * (x.shape[3] + num_out) * x.dtype.itemsize


def _tiles(geometry: Geometry, x: Array) -> list[Array]:
    """B^T d B of all tiles: 16 arrays (images, tiles down, tiles across, in)."""
    down, across = (-(-size // 2) for size in geometry.out_shape)
    pads = [
        (low, 2 * tiles + 2 - size - low)
        for tiles, size, (low, _) in zip(
            (down, across), geometry.image_shape, geometry.pads, strict=True
        )
    ]
    x = padded(x, *pads)
    rows = _meet([x[:, i : i + 2 * down : 2] for i in range(4)])
    return [
        tile
        for row in rows
        for tile in _meet([row[:, :, j : j + 2 * across : 2] for j in range(4)])
    ]


def _spread(g: Array) -> list[Array]:
    """A g A^T of all tiles of the output: 16 arrays (images, down, across, out)."""
    g = jnp.pad(g, ((0, 0), (0, g.shape[1] % 2), (0, g.shape[2] % 2), (0, 0)))
    rows = _unfold([g[:, i::2] for i in range(2)])
    return [
        tile for row in rows for tile in _unfold([row[:, :, j::2] for j in range(2)])
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
