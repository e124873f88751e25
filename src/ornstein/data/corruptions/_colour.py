"""Brightness, contrast and saturation."""

import numpy as np

from ..images import Images
from ._base import as_colour, to_bytes, to_unit

# By severity, from `make_cifar_c.py` (Hendrycks & Dietterich, 2019).
BRIGHTNESS = (0.05, 0.10, 0.15, 0.20, 0.30)
CONTRAST = (0.75, 0.50, 0.40, 0.30, 0.15)
SATURATE = ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2))  # factor, shift


def brightness(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """The value of HSV raised, at the same hue and saturation."""
    del rng
    x = to_unit(images)
    value = x.max(axis=-1, keepdims=True)
    raised = np.minimum(value + np.float32(BRIGHTNESS[severity - 1]), 1)
    is_black = value == 0
    x = np.where(is_black, raised, x * (raised / np.where(is_black, 1, value)))
    return to_bytes(x, images.shape[-1])


def contrast(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Each channel of each image drawn towards its mean."""
    del rng
    x = to_unit(images)
    mean = x.mean(axis=(1, 2), keepdims=True)
    return to_bytes(mean + CONTRAST[severity - 1] * (x - mean), x.shape[-1])


def saturate(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """The saturation of HSV scaled and shifted, at the same hue and value.

    Grey has the hue of red, and turns red where saturation is shifted.
    """
    del rng
    factor, shift = SATURATE[severity - 1]
    x = as_colour(to_unit(images))
    value = x.max(axis=-1, keepdims=True)
    chroma = value - x.min(axis=-1, keepdims=True)
    is_grey = chroma == 0
    # A colour is value (1 - saturation * paleness), and hue decides the paleness.
    red = np.array([0, 1, 1], np.float32)
    paleness = np.where(is_grey, red, (value - x) / np.where(is_grey, 1, chroma))
    saturation = chroma / np.where(value == 0, 1, value)
    saturation = np.clip(factor * saturation + np.float32(shift), 0, 1)
    return to_bytes(value * (1 - saturation * paleness), images.shape[-1])
