"""Drops of water or mud on the lens."""

import numpy as np
import scipy
from jaxtyping import Float, UInt8

from ..images import Images
from ._base import as_colour, to_bytes, to_unit
from ._edges import edges

# By severity, from `make_cifar_c.py` (Hendrycks & Dietterich, 2019): mean, deviation
# and blur of noise, its threshold; then the water's opacity, or the blur of the mud.
WATER = (
    (0.62, 0.1, 0.7, 0.7, 0.5),
    (0.65, 0.1, 0.8, 0.7, 0.5),
    (0.65, 0.3, 1.0, 0.69, 0.5),
)
MUD = ((0.65, 0.1, 0.7, 0.69, 0.6), (0.65, 0.1, 0.5, 0.68, 0.6))
WATER_COLOUR = np.array([175, 238, 238], np.float32) / 255
MUD_COLOUR = np.array([63, 42, 20], np.float32) / 255
MUD_THRESHOLD = 0.8
FARTHEST = 20  # pixels from an edge, beyond which drops look alike
EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


def spatter(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Water up to severity 3, mud beyond.

    Distances in the relief of water are exact, where OpenCV's, which CIFAR-10-C was
    made with, are within a few hundredths.
    """
    is_water = severity <= len(WATER)
    constants = (*WATER, *MUD)[severity - 1]
    mean, sd, sigma, threshold, last = constants
    noise = mean + sd * rng.standard_normal(images.shape[:3], np.float32)
    liquid = _blur(noise, sigma)
    x = as_colour(to_unit(images))
    if is_water:
        liquid = np.where(liquid < threshold, 0, liquid)
        wet = last * _relief(to_bytes(liquid[..., None], 1)[..., 0])
        return to_bytes(x + wet[..., None] * WATER_COLOUR, images.shape[-1])
    wet = _blur((liquid > threshold).astype(np.float32), last)
    wet = np.where(wet < MUD_THRESHOLD, 0, wet)[..., None]
    return to_bytes((1 - wet) * x + wet * MUD_COLOUR, images.shape[-1])


def _blur(x: Float[np.ndarray, "rows h w"], sigma: float) -> np.ndarray:
    return scipy.ndimage.gaussian_filter(x, (0, sigma, sigma), mode="nearest")


def _relief(liquid: UInt8[np.ndarray, "rows h w"]) -> Float[np.ndarray, "rows h w"]:
    """Drops lit from the upper left by their distance from an edge, 0 to 1."""
    far = np.floor(_box(_distance(edges(liquid))) + 1e-3).astype(np.uint8)
    lit = scipy.ndimage.correlate(
        _equalise(far).astype(np.int32), EMBOSS[None], mode="mirror"
    )
    shade = liquid * _box(np.clip(lit, 0, 255).astype(np.float32))
    peak = shade.max(axis=(1, 2), keepdims=True)
    return shade / np.where(peak == 0, 1, peak)


def _box(x: Float[np.ndarray, "rows h w"]) -> Float[np.ndarray, "rows h w"]:
    return scipy.ndimage.uniform_filter(x, 3, mode="mirror", axes=(1, 2))


def _distance(is_edge: np.ndarray) -> Float[np.ndarray, "rows h w"]:
    """From the nearest edge, up to `FARTHEST`."""
    # All images at once, too far from each other to matter; and one more that is all
    # edge, since the nearest of none is undefined.
    is_clear = np.concatenate([~is_edge, np.zeros_like(is_edge[:1])])
    apart = (2 * FARTHEST, 1, 1)
    distance = scipy.ndimage.distance_transform_edt(is_clear, sampling=apart)
    return np.minimum(np.asarray(distance)[:-1], FARTHEST).astype(np.float32)


def _equalise(x: UInt8[np.ndarray, "rows h w"]) -> UInt8[np.ndarray, "rows h w"]:
    """Levels of each image replaced by their ranks, 0 for its lowest, 255 for all."""
    levels = np.arange(FARTHEST + 1)
    counts = (x[:, None] == levels[:, None, None]).sum(axis=(2, 3))
    cumulative = counts.cumsum(axis=1)
    lowest = np.take_along_axis(counts, x.min(axis=(1, 2))[:, None].astype(int), axis=1)
    total = cumulative[:, -1:]
    is_flat = lowest == total
    ranks = 255 * (cumulative - lowest) / np.where(is_flat, 1, total - lowest)
    ranks = np.where(is_flat, levels, np.maximum(ranks, 0)).round().astype(np.uint8)
    return ranks[np.arange(len(x))[:, None, None], x]
