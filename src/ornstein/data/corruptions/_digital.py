"""What storing and reshaping does: JPEG, pixelation, elastic deformation."""

import io

import numpy as np
import scipy
from jaxtyping import Float
from PIL import Image

from ..images import Images
from ._base import Unit, to_bytes, to_unit

# By severity, from `make_cifar_c.py` (Hendrycks & Dietterich, 2019).
JPEG_QUALITY = (80, 65, 58, 50, 40)
PIXELATE = (0.95, 0.90, 0.85, 0.75, 0.65)
# Amplitude and sigma of the displacement and jitter of the corners, as shares of the
# image's side.
ELASTIC = (
    (0.00, 0.00, 0.08),
    (0.05, 0.20, 0.07),
    (0.08, 0.06, 0.06),
    (0.10, 0.04, 0.05),
    (0.10, 0.03, 0.03),
)


def jpeg_compression(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Through JPEG and back, with the encoder's own subsampling of colour."""
    del rng
    out = np.empty_like(images)
    for i, image in enumerate(images):
        file = io.BytesIO()
        _picture(image).save(file, "JPEG", quality=JPEG_QUALITY[severity - 1])
        with Image.open(file) as picture:
            out[i] = np.asarray(picture).reshape(image.shape)
    return out


def pixelate(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """To a smaller size and back by means over boxes."""
    del rng
    height, width = images.shape[1:3]
    scale = PIXELATE[severity - 1]
    small = (int(width * scale), int(height * scale))
    out = np.empty_like(images)
    for i, image in enumerate(images):
        picture = _picture(image).resize(small, Image.Resampling.BOX)
        picture = picture.resize((width, height), Image.Resampling.BOX)
        out[i] = np.asarray(picture).reshape(image.shape)
    return out


def _picture(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


def elastic_transform(
    images: Images, severity: int, rng: np.random.Generator
) -> Images:
    """A random affine map, then a smooth random displacement of every pixel."""
    num_rows, height, width, channels = images.shape
    side = min(height, width)
    amplitude, sigma, jitter = (side * share for share in ELASTIC[severity - 1])
    corners_rng, field_rng = rng.spawn(2)

    # Three corners of a square in the middle, and where they go: (x, y, 1).
    middle, reach = np.array([width // 2, height // 2]), side // 3
    corners = middle + reach * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = corners + corners_rng.uniform(-jitter, jitter, (num_rows, 3, 2))
    moved = np.concatenate([moved, np.ones((num_rows, 3, 1))], axis=-1)
    back = np.linalg.solve(moved, np.broadcast_to(corners, (num_rows, 3, 2)))
    y, x = np.mgrid[:height, :width]
    grid = np.stack([x, y, np.ones_like(x)], axis=-1)
    came_from = np.einsum("hwk,nkd->dnhw", grid, back)
    bent = _sample(to_unit(images), came_from[1], came_from[0], mode="mirror")

    noise = field_rng.uniform(-1, 1, (num_rows, 2, height, width))
    field = scipy.ndimage.gaussian_filter(
        noise, (0, 0, sigma, sigma), mode="reflect", truncate=3
    )
    dx, dy = amplitude * field[:, 0], amplitude * field[:, 1]
    return to_bytes(_sample(bent, y + dy, x + dx, mode="reflect"), channels)


def _sample(
    images: Unit,
    y: Float[np.ndarray, "rows height width"],
    x: Float[np.ndarray, "rows height width"],
    *,
    mode: str,
) -> Unit:
    """Bilinearly at (y, x) of each image."""
    rows = np.broadcast_to(np.arange(len(images))[:, None, None], y.shape)
    sampled = [
        scipy.ndimage.map_coordinates(plane, (rows, y, x), order=1, mode=mode)
        for plane in np.moveaxis(images, -1, 0)
    ]
    return np.stack(sampled, axis=-1)
