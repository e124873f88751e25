"""Photographs to corrupt."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image


@pytest.fixture(scope="session")
def photos() -> np.ndarray:
    """Pieces of two photographs, 32 x 32."""
    pieces = []
    for name in ("china.jpg", "flower.jpg"):
        photo = Image.fromarray(load_sample_image(name)).reduce(4)
        pixels = np.asarray(photo)
        pieces += [
            pixels[i : i + 32, j : j + 32]
            for i in range(0, pixels.shape[0] - 31, 24)
            for j in range(0, pixels.shape[1] - 31, 24)
        ]
    return np.stack(pieces)
