"""Noise in every number of its own: Gaussian, shot, impulse, speckle."""

import numpy as np

from ..images import Images
from ._base import to_bytes, to_unit

# By severity, from `make_cifar_c.py` (Hendrycks & Dietterich, 2019).
GAUSSIAN_SD = (0.04, 0.06, 0.08, 0.09, 0.10)
SHOT_PHOTONS = (500, 250, 100, 75, 50)  # that white stands for
IMPULSE_SHARE = (0.01, 0.02, 0.03, 0.05, 0.07)
SPECKLE_SD = (0.06, 0.10, 0.12, 0.16, 0.20)


def gaussian_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    r"""$x + \sigma \varepsilon$: as of a sensor in low light."""
    x = to_unit(images)
    noise = rng.standard_normal(x.shape, np.float32)
    return to_bytes(x + GAUSSIAN_SD[severity - 1] * noise, x.shape[-1])


def shot_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Poisson counts of photons, as many as white has of them on average."""
    photons = SHOT_PHOTONS[severity - 1]
    counts = rng.poisson(to_unit(images) * photons)
    return to_bytes((counts / photons).astype(np.float32), images.shape[-1])


def impulse_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Salt and pepper, as many of one as of the other, in each channel alone."""
    share = IMPULSE_SHARE[severity - 1]
    u = rng.random(images.shape, np.float32)
    salt, pepper = u < share / 2, u > 1 - share / 2
    return np.where(salt, 255, np.where(pepper, 0, images)).astype(np.uint8)


def speckle_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    r"""$x + \sigma x \varepsilon$: noise as large as what it falls on."""
    x = to_unit(images)
    noise = rng.standard_normal(x.shape, np.float32)
    return to_bytes(x + SPECKLE_SD[severity - 1] * x * noise, x.shape[-1])
