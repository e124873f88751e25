"""Blur along a line, as ImageMagick's `MotionBlurImage` has it."""

import numpy as np
from jaxtyping import Float

from ._base import Unit


def move(
    x: Unit, degrees: Float[np.ndarray, " rows"], *, radius: int, sigma: float
) -> Unit:
    r"""Each pixel the mean of those that lie ahead of it.

    $\sum_i k_i x(p + i u)$ over i = 0, 1, …, 2 radius with $k_i \propto
    \exp(-i^2 / 2 \sigma^2)$, i u rounded to whole pixels; edges are repeated.

    Args:
        x: images.
        degrees: of $u$, clockwise from the right, for each image.
        radius: decides how many pixels; in pixels.
        sigma: in pixels.
    """
    height, width = x.shape[1:3]
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    weights = (weights / weights.sum()).astype(x.dtype)
    angles = np.deg2rad(degrees)[:, None]
    right = np.ceil(steps * np.cos(angles) - 0.5).astype(int)
    down = np.ceil(steps * np.sin(angles) - 0.5).astype(int)
    rows = np.arange(len(x))[:, None, None]
    total = np.zeros_like(x)
    for i, weight in enumerate(weights):
        ys = np.clip(np.arange(height) + down[:, i, None], 0, height - 1)
        xs = np.clip(np.arange(width) + right[:, i, None], 0, width - 1)
        total += weight * x[rows, ys[:, :, None], xs[:, None, :]]
    return total
