"""Water and mud, and the edges they are made of, against loops over pixels."""

import numpy as np
import pytest
import scipy.ndimage

from ornstein.data import corrupt
from ornstein.data.corruptions import _spatter
from ornstein.data.corruptions._edges import edges


def slow_edges(image: np.ndarray) -> np.ndarray:
    """Canny's, a pixel at a time, with angles for slopes and a flood for hysteresis."""
    padded = np.pad(image.astype(int), 1, mode="edge")
    height, width = image.shape
    gx, gy = np.zeros((2, height, width))
    for y, x in np.ndindex(height, width):
        p = padded[y : y + 3, x : x + 3]
        gx[y, x] = (p[:, 2] - p[:, 0]) @ [1, 2, 1]
        gy[y, x] = (p[2] - p[0]) @ [1, 2, 1]
    size = np.pad(np.abs(gx) + np.abs(gy), 1)
    weak = np.zeros(image.shape, bool)
    for y, x in np.ndindex(height, width):
        here = size[y + 1, x + 1]
        degrees = np.degrees(np.arctan2(gy[y, x], gx[y, x])) % 180
        if 22.5 < degrees < 67.5:
            is_ridge = here > size[y, x] and here > size[y + 2, x + 2]
        elif 67.5 <= degrees <= 112.5:
            is_ridge = here > size[y, x + 1] and here >= size[y + 2, x + 1]
        elif 112.5 < degrees < 157.5:
            is_ridge = here > size[y, x + 2] and here > size[y + 2, x]
        else:
            is_ridge = here > size[y + 1, x] and here >= size[y + 1, x + 2]
        weak[y, x] = is_ridge and here > 50
    strong = weak & (size[1:-1, 1:-1] > 150)
    eight = np.ones((3, 3), bool)
    return scipy.ndimage.binary_propagation(strong, structure=eight, mask=weak)


@pytest.fixture(scope="module")
def drops() -> np.ndarray:
    noise = np.random.default_rng(0).normal(0.5, 0.4, (3, 16, 19))
    x = scipy.ndimage.gaussian_filter(noise, (0, 1, 1))
    return np.floor(255 * np.clip(np.where(x < 0.55, x / 3, x), 0, 1)).astype(np.uint8)


def test_edges_against_a_loop(drops: np.ndarray):
    """Catches a threshold, a direction, and edges that touch other images'."""
    found = edges(drops)
    assert 0.05 < found.mean() < 0.4
    for image, own in zip(drops, found, strict=True):
        assert np.array_equal(own, slow_edges(image))


def test_weak_edges_need_strong_ones():
    faint = np.zeros((2, 12, 12), np.uint8)
    faint[:, :, 6:] = 20  # a gradient of 80
    faint[1, :3, 6:] = 60  # which goes on as one of 240
    found = edges(faint)
    assert not found[0].any()
    assert found[1, :, 5:7].any(axis=1).all()


def test_distance_and_levels_against_loops(drops: np.ndarray):
    is_edge = edges(drops)
    is_edge[1] = False
    found = _spatter._distance(is_edge)
    ys, xs = np.nonzero(is_edge[0])
    for y, x in np.ndindex(16, 19):
        assert found[0, y, x] == pytest.approx(np.hypot(ys - y, xs - x).min(), abs=1e-5)
    assert (found[1] == 20).all()

    far = np.floor(found).astype(np.uint8)
    far[2] = np.where(far[2] == 0, 3, far[2])  # the lowest level is not always 0
    levels = _spatter._equalise(far)
    assert (levels[1] == 20).all()  # one level stays
    for image, own in zip(far[[0, 2]], levels[[0, 2]], strict=True):
        low = (image == image.min()).sum()
        for y, x in np.ndindex(16, 19):
            rank = ((image <= image[y, x]).sum() - low) / (image.size - low)
            assert own[y, x] == round(255 * rank)


def test_relief_of_one_drop():
    """Zero where it is dry, one at its brightest, lit by OpenCV's own kernel."""
    drop = np.zeros((2, 20, 20), np.uint8)
    drop[0, 6:14, 5:15] = 200
    relief = _spatter._relief(drop)
    assert (relief[0][drop[0] == 0] == 0).all()
    assert relief[0].max() == 1
    assert (relief[1] == 0).all()
    distance = scipy.ndimage.distance_transform_edt(~edges(drop)[0])
    far = np.floor(scipy.ndimage.uniform_filter(distance, 3, mode="mirror") + 1e-6)
    low = (far == far.min()).sum()
    rank = np.array([[(far <= v).sum() - low for v in line] for line in far])
    level = np.round(255 * rank / (far.size - low))
    lit = np.zeros((20, 20))
    mirrored = np.pad(level, 1, mode="reflect")
    for y, x in np.ndindex(20, 20):
        kernel = [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]
        lit[y, x] = np.clip(np.sum(mirrored[y : y + 3, x : x + 3] * kernel), 0, 255)
    twin = scipy.ndimage.uniform_filter(lit, 3, mode="mirror") * drop[0]
    np.testing.assert_allclose(relief[0], twin / twin.max(), atol=1e-5)


def test_water_is_turquoise_and_mud_is_brown():
    """On black: half the colour at most; on white: mud covers 80 % or nothing."""
    black = np.zeros((40, 32, 32, 3), np.uint8)
    for severity in (1, 2, 3):
        water = corrupt(black, "spatter", severity)
        assert np.array_equal(water[..., 1], water[..., 2])
        assert abs(water[..., 0] * (238 / 175) - water[..., 1]).max() <= 2.5
        assert set(water[..., 1].max(axis=(1, 2))) <= {118, 119}
    for severity in (4, 5):
        mud = corrupt(black + np.uint8(255), "spatter", severity)
        wet = (mud != 255).any(axis=-1)
        assert 0.005 < wet.mean() < 0.4
        assert mud[wet, 0].max() <= 255 - 0.8 * (255 - 63) + 1
        assert (mud[wet] >= [62, 41, 19]).all()


@pytest.mark.parametrize("severity", [1, 4, 5])
def test_wet_pixels_are_where_noise_is_high(severity: int):
    """Blurred noise above its threshold; catches a blur or threshold of another row."""
    mean, sigma, threshold = {
        1: (0.62, 0.7, 0.7),
        4: (0.65, 0.7, 0.69),
        5: (0.65, 0.5, 0.68),
    }[severity]
    noise = np.random.default_rng(6).standard_normal((30, 32, 32), np.float32)
    liquid = scipy.ndimage.gaussian_filter(
        mean + np.float32(0.1) * noise, (0, sigma, sigma), mode="nearest"
    )
    wet = liquid >= threshold
    if severity > 3:
        wet = scipy.ndimage.gaussian_filter(
            wet.astype(np.float32), (0, 0.6, 0.6), mode="nearest"
        )
        wet = wet >= 0.8
    white = np.full((30, 32, 32, 3), 255 if severity > 3 else 0, np.uint8)
    found = _spatter.spatter(white, severity, np.random.default_rng(6))
    changed = (found != white).any(axis=-1)
    assert not (changed & ~wet).any()
    if severity > 3:
        assert np.array_equal(changed, wet)
