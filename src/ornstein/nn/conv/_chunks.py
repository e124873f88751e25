"""Some images at a time, so that what is made of them stays in a processor's cache."""

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp

from ..._mesh import num_row_parts
from ..._types import Array
from ._geometry import Geometry

Run: TypeAlias = Callable[[Geometry, Array, Array], Array]


def of_images(fn: Run) -> Run:
    """A form of images and a kernel whose images may lie on several devices."""

    @functools.wraps(fn)
    def run(geometry: Geometry, x: Array, kernel: Array) -> Array:
        if not _is_cut(x):
            return fn(geometry, x, kernel)
        y = jax.vmap(lambda x: fn(geometry, x, kernel))(_parts(x))
        return y.reshape(-1, *y.shape[2:])

    return run


def over_images(fn: Run) -> Run:
    """A form that adds up over images, which may lie on several devices."""

    @functools.wraps(fn)
    def run(geometry: Geometry, x: Array, g: Array) -> Array:
        if not _is_cut(x):
            return fn(geometry, x, g)
        of_part = functools.partial(fn, geometry)
        return jax.vmap(of_part)(_parts(x), _parts(g)).sum(0)

    return run


def _is_cut(images: Array) -> bool:
    num = num_row_parts()
    return num > 1 and len(images) % num == 0


def _parts(images: Array) -> Array:
    """Each device's images: a loop over all would bring every one to every device."""
    return images.reshape(num_row_parts(), -1, *images.shape[1:])


def chunks(
    images: Sequence[Array], bytes_each: int, most_bytes: int
) -> tuple[Array, ...]:
    """Images as (chunks, images of a chunk, ...); zeros fill the last chunk.

    Args:
        images: arrays of as many images.
        bytes_each: what is made of one image.
        most_bytes: of one chunk, unless one image alone has more.
    """
    num = len(images[0])
    num_chunks = max(1, -(-num // max(1, most_bytes // bytes_each)))
    size = -(-num // num_chunks)
    fill = size * num_chunks - num
    zeros = ((0, fill), (0, 0), (0, 0), (0, 0))
    return tuple(
        (jnp.pad(a, zeros) if fill else a).reshape(num_chunks, size, *a.shape[1:])
        for a in images
    )
