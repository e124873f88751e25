"""Plasma fractals by the diamond-square algorithm."""

import numpy as np
from jaxtyping import Float

_ROUGHNESS = 100.0


def plasma(
    num_rows: int, min_size: int, *, decay: float, rng: np.random.Generator
) -> Float[np.ndarray, "rows size size"]:
    """Heights that go around at the edges, from 0 to 1 in each map.

    Every point is the mean of four around it and a uniform step, which is smaller by
    `decay`² at each halving of the distance.

    Args:
        num_rows: maps.
        min_size: the size is the power of two from here.
        decay: above 1.
        rng: randomness.
    """
    size = 1 << (min_size - 1).bit_length()
    steps = rng.uniform(-1, 1, (num_rows, size, size)).astype(np.float32)
    heights = np.zeros_like(steps)
    distance, roughness = size, _ROUGHNESS
    while distance >= 2:
        half = distance // 2
        on, between = slice(0, None, distance), slice(half, None, distance)

        def fill(
            down: slice, across: slice, around: np.ndarray, amplitude=roughness**2
        ):
            place = (slice(None), down, across)
            heights[place] = around / 4 + amplitude * steps[place]

        corners = heights[:, on, on]
        pairs = corners + np.roll(corners, -1, axis=1)
        fill(between, between, pairs + np.roll(pairs, -1, axis=2))
        middles = heights[:, between, between]
        level = corners + np.roll(corners, -1, axis=2)
        fill(on, between, level + middles + np.roll(middles, 1, axis=1))
        fill(between, on, pairs + middles + np.roll(middles, 1, axis=2))
        distance, roughness = half, roughness / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return heights / heights.max(axis=(1, 2), keepdims=True)
