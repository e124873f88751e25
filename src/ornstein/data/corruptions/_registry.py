"""Every corruption by its name."""

import zlib

import numpy as np

from .._error import DataError, nearest
from ..images import Images
from ._base import SEVERITIES, Corruption
from ._blur import defocus_blur, gaussian_blur, glass_blur, motion_blur, zoom_blur
from ._colour import brightness, contrast, saturate
from ._digital import elastic_transform, jpeg_compression, pixelate
from ._noise import gaussian_noise, impulse_noise, shot_noise, speckle_noise
from ._spatter import spatter
from ._weather import fog, frost, snow

CORRUPTIONS: dict[str, Corruption] = {
    function.__name__: function
    for function in (
        gaussian_noise,
        shot_noise,
        impulse_noise,
        defocus_blur,
        glass_blur,
        motion_blur,
        zoom_blur,
        snow,
        frost,
        fog,
        brightness,
        contrast,
        elastic_transform,
        pixelate,
        jpeg_compression,
        speckle_noise,
        gaussian_blur,
        spatter,
        saturate,
    )
}
"""By the names of CIFAR-10-C's files; the last four are its extra ones."""

MIN_SIDE = 8

_BLOCK = 500  # rows that are in floating point at once


def corrupt(images: Images, corruption: str, severity: int, *, seed: int = 0) -> Images:
    """Corrupt images as CIFAR-10-C was, with the same constants.

    The same seed gives the same images, and a row's do not depend on how many follow.
    They are not the published ones: those came of unknown seeds, and frost of
    photographs. Grey images are corrupted as colour ones that are grey, and the result
    is their mean; noise is drawn once, as strong as in each of three channels.

    Args:
        images: bytes, of one or three channels and at least 8 x 8.
        corruption: a key of `CORRUPTIONS`.
        severity: 1 to 5.
        seed: of the randomness, with `corruption` and `severity`.

    Raises:
        DataError: for images that cannot be corrupted, or no such corruption.
    """
    check_corruption(corruption)
    if severity not in SEVERITIES:
        raise DataError(
            f"There is no severity {severity} of {corruption}: give one of 1 to 5."
        )
    _, height, width, channels = images.shape
    if min(height, width) < MIN_SIDE or channels not in (1, 3):
        raise DataError(
            f"Images of {height} x {width} pixels and {channels} channels cannot be "
            f"corrupted: give grey or colour ones of at least {MIN_SIDE} x {MIN_SIDE}."
        )
    out = np.empty_like(images)
    for i, start in enumerate(range(0, len(images), _BLOCK)):
        block = slice(start, start + _BLOCK)
        entropy = (seed, zlib.crc32(corruption.encode()), severity, i)
        rng = np.random.default_rng(entropy)
        out[block] = CORRUPTIONS[corruption](images[block], severity, rng)
    return out


def check_corruption(corruption: str) -> None:
    """Refuse a name that no corruption has."""
    if corruption not in CORRUPTIONS:
        raise DataError(
            f"There is no corruption {corruption!r}{nearest(corruption, CORRUPTIONS)}: "
            f"give one of {', '.join(CORRUPTIONS)}."
        )
