"""Snow, frost and fog."""

import numpy as np
import scipy
from jaxtyping import Float

from ..images import Images
from ._base import as_colour, to_bytes, to_unit
from ._motion import move
from ._plasma import plasma
from ._zoom import zoom

# By severity, from `make_cifar_c.py` (Hendrycks & Dietterich, 2019).
# Flakes: mean and deviation of noise, its zoom, its threshold, radius and sigma of
# their fall; and the share of the image that isn't whitened.
SNOW = (
    (0.10, 0.2, 1.00, 0.60, 8, 3.0, 0.95),
    (0.10, 0.2, 1.00, 0.50, 10, 4.0, 0.90),
    (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.90),
    (0.25, 0.3, 2.25, 0.60, 12, 6.0, 0.85),
    (0.30, 0.3, 1.25, 0.65, 14, 12.0, 0.80),
)
SNOW_DEGREES = (-135.0, -45.0)
FROST = ((1.0, 0.20), (1.0, 0.30), (0.90, 0.40), (0.85, 0.40), (0.75, 0.45))
FOG = ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))  # amount, decay

_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601

# Of the five photographs that CIFAR-10-C's frost is cut from, at the size it uses: mean
# colours (two are one picture), and over them all the deviation within a channel and
# its autocorrelation, 0.7, 0.45, 0.35 and 0.25 at 1, 2, 4 and 8 pixels, which is that
# of these two Gaussian blurs of white noise.
_FROST_COLOURS = np.array(
    [[76, 148, 165], [198, 202, 211], [198, 202, 211], [143, 157, 170], [102, 114, 125]]
)
_FROST_SD = 17.0
_FROST_LAYERS = ((0.6, 0.55), (5.0, 0.45))  # sigma in pixels, share of the variance


def snow(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Flakes that fall, and again turned half around, on a whitened image."""
    mean, sd, factor, threshold, radius, sigma, share = SNOW[severity - 1]
    flakes_rng, fall_rng = rng.spawn(2)
    noise = flakes_rng.standard_normal((*images.shape[:3], 1), np.float32)
    flakes = zoom(mean + sd * noise, factor)
    flakes = np.where(flakes < threshold, 0, flakes)
    degrees = fall_rng.uniform(*SNOW_DEGREES, len(images))
    flakes = to_unit(to_bytes(flakes, 1))
    flakes = move(flakes, degrees, radius=radius, sigma=sigma)
    x = as_colour(to_unit(images))
    grey = (x @ _LUMINANCE)[..., None]
    x = share * x + (1 - share) * np.maximum(x, 1.5 * grey + 0.5)
    return to_bytes(x + flakes + flakes[:, ::-1, ::-1], images.shape[-1])


def frost(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Frost on the pane before the image.

    CIFAR-10-C adds cuttings of photographs of frost. Here it is noise with the colours,
    deviation and autocorrelation of those photographs, but not their crystals: errors
    under it are like those under CIFAR-10-C's frost, not equal to them.
    """
    share, amount = FROST[severity - 1]
    colour_rng, *layer_rngs = rng.spawn(1 + len(_FROST_LAYERS))
    shape = images.shape[:3]
    ice = np.zeros(shape, np.float32)
    for (sigma, part), layer_rng in zip(_FROST_LAYERS, layer_rngs, strict=True):
        ice += np.float32(np.sqrt(part)) * _smooth_noise(shape, sigma, layer_rng)
    photographs = colour_rng.integers(len(_FROST_COLOURS), size=len(images))
    colours = _FROST_COLOURS[photographs].astype(np.float32)[:, None, None]
    ice = np.clip(colours + _FROST_SD * ice[..., None], 0, 255) / 255
    x = as_colour(to_unit(images))
    return to_bytes(share * x + amount * ice, images.shape[-1])


def _smooth_noise(
    shape: tuple[int, int, int], sigma: float, rng: np.random.Generator
) -> Float[np.ndarray, "rows height width"]:
    """Blurred white noise of deviation 1."""
    noise = rng.standard_normal(shape, np.float32)
    blurred = scipy.ndimage.gaussian_filter(noise, (0, sigma, sigma), mode="wrap")
    point = np.zeros(8 * int(np.ceil(sigma)) + 1)
    point[point.size // 2] = 1
    kernel = scipy.ndimage.gaussian_filter1d(point, sigma)
    return blurred / np.float32(np.sum(kernel**2))


def fog(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A plasma fractal, darkened with the image to what the image's brightest was."""
    amount, decay = FOG[severity - 1]
    num_rows, height, width, channels = images.shape
    x = to_unit(images)
    brightest = x.max(axis=(1, 2, 3), keepdims=True)
    haze = plasma(num_rows, max(height, width), decay=decay, rng=rng)
    x = x + amount * haze[:, :height, :width, None]
    return to_bytes(x * (brightest / (brightest + amount)), channels)
