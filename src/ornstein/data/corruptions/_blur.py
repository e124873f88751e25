"""Images out of focus: Gaussian, defocused, through glass, moving, zooming."""

import numpy as np
import scipy

from ..images import Images
from ._base import Unit, to_bytes, to_unit
from ._motion import move
from ._zoom import zoom

# By severity, from `make_cifar_c.py` (Hendrycks & Dietterich, 2019).
GAUSSIAN_SIGMA = (0.4, 0.6, 0.7, 0.8, 1.0)
GLASS = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))  # sigma, passes
DEFOCUS = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))  # radius, sigma
MOTION = ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))  # radius, sigma
MOTION_DEGREES = 45
# Zooms go in hundredths from 1 to below these, by NumPy's rounding (which lets the
# first two in, and decides the size that 1.25 enlarges to).
ZOOM_ENDS = (1.06, 1.11, 1.16, 1.21, 1.26)


def gaussian_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A Gaussian kernel; edges are repeated."""
    del rng
    return to_bytes(
        _gaussian(to_unit(images), GAUSSIAN_SIGMA[severity - 1]), images.shape[-1]
    )


def _gaussian(x: Unit, sigma: float) -> Unit:
    return scipy.ndimage.gaussian_filter(x, (0, sigma, sigma, 0), mode="nearest")


def glass_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Pixels taken from next to them, between two Gaussian blurs.

    As in the published files each pixel is a copy of itself or of its neighbour above,
    to the left, or both: their loop meant to exchange pixels, but copied one through a
    view of the other, and its offsets are -1 and 0. The first two rows and columns keep
    theirs.
    """
    sigma, num_passes = GLASS[severity - 1]
    num_rows, height, width, channels = images.shape
    shape = (num_rows, num_passes, 2, height - 2, width - 2)
    offsets = rng.integers(-1, 1, shape)
    x = to_bytes(_gaussian(to_unit(images), sigma), channels)
    rows = np.arange(num_rows)[:, None, None]
    down, right = np.arange(2, height)[:, None], np.arange(2, width)
    for i in range(num_passes):
        dy, dx = offsets[:, i, 0], offsets[:, i, 1]
        x[:, 2:, 2:] = x[rows, down + dy, right + dx]
    return to_bytes(_gaussian(to_unit(x), sigma), channels)


def defocus_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A disk that is itself blurred; edges are mirrored."""
    del rng
    kernel = _disk(*DEFOCUS[severity - 1])[None, :, :, None]
    x = scipy.ndimage.correlate(to_unit(images), kernel, mode="mirror")
    return to_bytes(x, images.shape[-1])


def _disk(radius: float, sigma: float) -> np.ndarray:
    """Pixels within `radius`, blurred by the three middle weights of a Gaussian."""
    place = np.arange(-2, 3)
    disk = (place**2 + place[:, None] ** 2 <= radius**2).astype(np.float32)
    side = np.exp(-0.5 / sigma**2)
    weights = np.array([side, 1, side], np.float32) / (1 + 2 * side)
    kernel = np.outer(weights, weights) / disk.sum()
    return scipy.ndimage.correlate(disk, kernel, mode="constant")


def motion_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A streak in one direction for each image, within 45 degrees of level."""
    radius, sigma = MOTION[severity - 1]
    degrees = rng.uniform(-MOTION_DEGREES, MOTION_DEGREES, len(images))
    x = move(to_unit(images), degrees, radius=radius, sigma=sigma)
    return np.round(255 * x).astype(np.uint8)


def zoom_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """The mean of an image and of itself at growing zooms."""
    del rng
    x = to_unit(images)
    factors = np.arange(1, ZOOM_ENDS[severity - 1], 0.01)
    total = x + sum(zoom(x, float(factor)) for factor in factors)
    return to_bytes(total / np.float32(len(factors) + 1), images.shape[-1])
