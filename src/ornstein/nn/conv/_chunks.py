"""Some images at a time, so that what is made of them stays in a processor's cache."""

from collections.abc import Sequence

import jax.numpy as jnp

from ..._types import Array


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
