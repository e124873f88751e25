"""What the corruptions of CIFAR-10-C share: a contract, and its units.

Hendrycks & Dietterich, "Benchmarking neural network robustness to common corruptions
and perturbations" (ICLR 2019). Constants are those that made CIFAR-10-C (their
`make_cifar_c.py`), milder than ImageNet-C's; lengths are in pixels whatever the size of
the image, but for `elastic_transform`. Pixels are shares of white, 0 to 1, inside a
corruption.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from ..images import Images

Unit: TypeAlias = Float[np.ndarray, "rows height width channels"]
"""Shares of white."""

Corruption: TypeAlias = Callable[[Images, int, np.random.Generator], Images]
"""`(images, severity, rng)` to images alike; severity is one of `SEVERITIES`.

Whatever is random is drawn in one call, rows first, from a generator of its own, so
that the first rows get the same corruption whether or not others follow.
"""

SEVERITIES = (1, 2, 3, 4, 5)
"""From mild to harsh."""

# For single precision, in which a byte could lose 1 on its way there and back.
_SLACK = 1e-4


def to_unit(images: Images) -> Unit:
    """Bytes to shares of white."""
    return images.astype(np.float32) / 255


def to_bytes(x: Float[np.ndarray, "rows height width _"], num_channels: int) -> Images:
    """Shares of white to bytes: clipped, and cut as in CIFAR-10-C, not rounded.

    Args:
        x: of three channels or `num_channels`.
        num_channels: of the result; grey is the mean of the colours.
    """
    x = np.clip(x, 0, 1)
    if x.shape[-1] != num_channels:
        x = x.mean(axis=-1, keepdims=True)
    return np.floor(255 * x + _SLACK).astype(np.uint8)


def as_colour(x: Unit) -> Float[np.ndarray, "rows height width 3"]:
    """Three channels, alike where there was one."""
    return np.broadcast_to(x, (*x.shape[:-1], 3))
