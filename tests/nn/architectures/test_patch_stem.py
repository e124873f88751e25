"""The stem of photographs: patches that are whitened, and half the size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.functions import ODENet
from ornstein.nn import PatchStem


def photographs(num: int = 300, side: int = 8) -> np.ndarray:
    """Smooth in space and alike in their channels, as photographs are."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(num, side, side, 3)).cumsum(1).cumsum(2)
    images += 2 * images.mean(-1, keepdims=True)
    return ((images - images.mean()) / images.std()).astype(np.float32)


def test_whitened_patches_are_white():
    """Each component has variance 1 and none is another's, up to a camera's noise;
    the second half is minus the first. Catches (seen) patches whose pixels and
    channels are in another order than the kernel's."""
    images = photographs()
    stem = PatchStem(3, 4, key=jax.random.key(0)).whitened(images)
    found = np.asarray(stem.patches(jnp.asarray(images)), np.float64)
    found = found.reshape(-1, 24) - np.asarray(stem.patches.bias)
    np.testing.assert_allclose(found[:, 12:], -found[:, :12], atol=1e-4)
    covariance = np.cov(found[:, :12], rowvar=False)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=2e-3)
    raw = images.reshape(300, 4, 2, 4, 2, 3).transpose(0, 1, 3, 2, 4, 5)
    variances = np.linalg.eigvalsh(np.cov(raw.reshape(-1, 12), rowvar=False))
    expected = variances / (variances + 1e-2)
    np.testing.assert_allclose(np.sort(np.diag(covariance)), expected, rtol=1e-2)


def test_it_halves_images_and_networks_begin_with_it():
    """Odd sides are rounded up; a network after it works at half the size."""
    stem = PatchStem(3, 5, key=jax.random.key(0))
    assert stem(jnp.zeros((2, 9, 8, 3))).shape == (2, 5, 4, 5)
    of = {"blocks": (1, 1), "width": 4, "augment": 0, "is_normalised": True}
    build = lambda **how: ODENet.for_images(
        (16, 16, 3), 10, key=jax.random.key(1), **(of | how)
    )
    network = build(stem=stem)
    assert network.layers[0] is stem
    assert network(jnp.zeros((2, 16, 16, 3))).shape == (2, 10)
    with pytest.raises(ValueError, match="give one of them"):
        build(stem=stem, space_to_depth_first=True)
    with pytest.raises(ValueError, match="must make images of images"):
        build(stem=lambda x: x.reshape(x.shape[0], -1))
    with pytest.raises(ValueError, match="Images of 2 by 2 are too small"):
        ODENet.for_images((4, 4, 3), 10, stem=stem, key=jax.random.key(1), **of)


def test_bad_images():
    stem = PatchStem(3, 4, key=jax.random.key(0))
    assert stem.whitened(np.zeros((0, 8, 8, 3))) is stem
    for shape, match in [
        ((4, 8, 8, 1), r"\(images, height, width, 3\)"),
        ((4, 1, 8, 3), "2 by 2 pixels or more"),
    ]:
        with pytest.raises(ValueError, match=match):
            stem.whitened(np.zeros(shape))
    with pytest.raises(ValueError, match="not finite"):
        stem.whitened(np.full((4, 8, 8, 3), np.nan))
