"""Zoom into the middle of images."""

import math

import numpy as np
from jaxtyping import Float

from ._base import Unit


def zoom(x: Unit, factor: float) -> Unit:
    """Cut the middle out, enlarge it bilinearly, and cut it to the size it had.

    Args:
        x: images.
        factor: at least 1.
    """
    down, across = (_weights(size, factor).astype(x.dtype) for size in x.shape[1:3])
    planes = np.moveaxis(x, -1, 1)
    return np.moveaxis(down @ planes @ across.T, 1, -1)


def _weights(size: int, factor: float) -> Float[np.ndarray, "size size"]:
    """Of each old pixel in each new one, along one axis.

    The first and last pixels of the cut-out stay the first and last of what is
    enlarged, which is then cut evenly, with the odd pixel off its end.
    """
    kept = math.ceil(size / factor)
    enlarged = round(kept * factor)
    places = np.linspace(0, kept - 1, enlarged)
    trimmed = (enlarged - size) // 2
    places = places[trimmed : trimmed + size] + (size - kept) // 2
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(size)))
