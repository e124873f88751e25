"""Each corruption against a closed form or a slow twin, on known images."""

import colorsys
import io

import numpy as np
import pytest
import scipy.ndimage
import scipy.stats
from PIL import Image

from ornstein.data import CORRUPTIONS, SEVERITIES, corrupt
from ornstein.data.corruptions._base import to_unit
from ornstein.data.corruptions._plasma import plasma
from ornstein.data.corruptions._zoom import zoom


def flat(value: int, num_rows: int = 60) -> np.ndarray:
    return np.full((num_rows, 32, 32, 3), value, np.uint8)


def point(size: int = 15) -> np.ndarray:
    """White in the middle of black."""
    image = np.zeros((1, size, size, 1), np.uint8)
    image[0, size // 2, size // 2] = 255
    return image


def assert_moments(found: np.ndarray, mean: float, variance: float, kurtosis=3.0):
    found, count = found.astype(np.float64), found.size
    z_mean = (found.mean() - mean) / np.sqrt(variance / count)
    z_variance = (found.var() / variance - 1) / np.sqrt((kurtosis - 1) / count)
    assert abs(z_mean) < 4.5, z_mean
    assert abs(z_variance) < 4.5, z_variance


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("name", "value"), [("gaussian", 128), ("speckle", 90)])
def test_noise_has_its_deviation(name: str, value: int, severity: int):
    """Catches ImageNet-C's constants, and rounding for cutting (0.5 in the mean)."""
    sds = {
        "gaussian": (0.04, 0.06, 0.08, 0.09, 0.10),
        "speckle": tuple(c * 90 / 255 for c in (0.06, 0.10, 0.12, 0.16, 0.20)),
    }
    found = corrupt(flat(value), f"{name}_noise", severity)
    sd = 255 * sds[name][severity - 1]
    assert_moments(found, value - 0.5, sd**2 + 1 / 12)
    # A speckle of black is black.
    assert (corrupt(flat(0, 2), "speckle_noise", severity) == 0).all()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_shot_noise_is_poisson(severity: int):
    """The moments of every count's byte, summed over its probability."""
    photons, value = (500, 250, 100, 75, 50)[severity - 1], 60
    counts = np.arange(2 * photons)
    bytes_ = np.floor(255 * np.minimum(counts / photons, 1) + 1e-4)
    pmf = scipy.stats.poisson(value / 255 * photons).pmf(counts)
    mean = pmf @ bytes_
    variance, fourth = (pmf @ (bytes_ - mean) ** power for power in (2, 4))
    found = corrupt(flat(value), "shot_noise", severity)
    assert_moments(found, mean, variance, fourth / variance**2)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_impulses_are_as_many_as_they_should_be(severity: int):
    """Half salt, half pepper, in each channel alone; all else as it was."""
    share = (0.01, 0.02, 0.03, 0.05, 0.07)[severity - 1]
    found = corrupt(flat(100, 200), "impulse_noise", severity)
    assert set(np.unique(found)) == {0, 100, 255}
    for value in (0, 255):
        sd = np.sqrt(share / 2 * (1 - share / 2) / found.size)
        assert abs((found == value).mean() - share / 2) < 4.5 * sd
    both = ((found[..., 0] != 100) & (found[..., 1] != 100)).mean()
    assert abs(both - share**2) < 4.5 * np.sqrt(share**2 / found[..., 0].size)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_blur_of_a_point_is_its_kernel(severity: int):
    sigma = (0.4, 0.6, 0.7, 0.8, 1.0)[severity - 1]
    x = np.arange(-7, 8)
    weights = np.where(
        np.abs(x) <= int(4 * sigma + 0.5), np.exp(-0.5 * (x / sigma) ** 2), 0
    )
    weights /= weights.sum()
    found = corrupt(point(), "gaussian_blur", severity)[0, ..., 0]
    assert np.abs(found - 255 * np.outer(weights, weights) + 0.5).max() <= 0.51


def test_defocus_of_a_point_is_its_disk():
    """By hand: a pixel blurred to its neighbours, a cross of 5, a square of 9."""
    found = [corrupt(point(), "defocus_blur", s)[0, 5:10, 5:10, 0] for s in SEVERITIES]
    for image, sigma in zip(found, (0.4, 0.5, 0.6), strict=False):
        side = np.exp(-0.5 / sigma**2)
        middle, edge = 1 / (1 + 2 * side), side / (1 + 2 * side)
        line = np.array([0, edge, middle, edge, 0])
        assert np.array_equal(image, np.floor(255 * np.outer(line, line) + 1e-3))
    cross = np.abs(np.arange(5) - 2) + np.abs(np.arange(5) - 2)[:, None] <= 1
    assert np.abs(found[3] - 51.0 * cross).max() <= 1
    square = np.pad(np.ones((3, 3)), 1)
    assert np.abs(found[4] - 255 / 9 * square).max() <= 1


def test_edges_of_blurs_are_not_dark():
    """White stays white: catches zeros beyond the edge and kernels that sum to less."""
    for name in ("gaussian_blur", "defocus_blur", "zoom_blur", "motion_blur"):
        for severity in SEVERITIES:
            assert corrupt(flat(255, 2), name, severity).min() >= 254, (name, severity)


def slow_move(image, degrees, radius, sigma):
    height, width = image.shape
    weights = np.array([np.exp(-(i**2) / 2 / sigma**2) for i in range(2 * radius + 1)])
    weights /= weights.sum()
    out = np.zeros_like(image)
    for y in range(height):
        for x in range(width):
            for i, weight in enumerate(weights):
                dx = np.ceil(i * np.cos(np.radians(degrees)) - 0.5)
                dy = np.ceil(i * np.sin(np.radians(degrees)) - 0.5)
                at_x = int(min(max(x + dx, 0), width - 1))
                at_y = int(min(max(y + dy, 0), height - 1))
                out[y, x] += weight * image[at_y, at_x]
    return out


def test_motion_against_its_slow_twin(photos: np.ndarray):
    """Catches x and y exchanged, a two-sided kernel, one angle for all images."""
    images = photos[:2, :12, :17]
    found = CORRUPTIONS["motion_blur"](images, 4, np.random.default_rng(3))
    degrees = np.random.default_rng(3).uniform(-45, 45, 2)
    for image, out, angle in zip(images, found, degrees, strict=True):
        for channel in range(3):
            twin = slow_move(image[..., channel].astype(float), angle, 8, 2.0)
            assert np.abs(out[..., channel] - twin).max() <= 0.501


def slow_zoom(image, factor):
    """As CIFAR-10-C had it, of a square."""
    size = image.shape[0]
    kept = int(np.ceil(size / factor))
    top = (size - kept) // 2
    middle = image[top : top + kept, top : top + kept]
    large = scipy.ndimage.zoom(middle, (factor, factor, 1), order=1)
    trim = (large.shape[0] - size) // 2
    return large[trim : trim + size, trim : trim + size]


def test_zoom_against_scipy(photos: np.ndarray):
    x = to_unit(photos[:2])
    for factor in (1.0, 1.01, 1.05, 1.13, 1.25, 1.75, 2.25):
        for image, found in zip(x, zoom(x, factor), strict=True):
            np.testing.assert_allclose(found, slow_zoom(image, factor), atol=2e-6)
    for severity, end in zip(SEVERITIES, (1.06, 1.11, 1.16, 1.21, 1.26), strict=True):
        factors = np.arange(1, end, 0.01)
        total = x[0] + sum(slow_zoom(x[0], factor) for factor in factors)
        found = corrupt(photos[:1], "zoom_blur", severity)
        twin = 255 * total / (len(factors) + 1)
        assert np.abs(found[0] - twin + 0.5).max() <= 0.51


@pytest.mark.parametrize("severity", [3, 5])
def test_glass_against_a_loop_over_views(photos: np.ndarray, severity: int):
    """The published loop: from the last pixel to the first, exchanging NumPy views.

    Catches an exchange that is one, and pixels of a pass taken from after it.
    """
    sigma, num_passes = (0.4, severity // 2)
    blur = lambda x: scipy.ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="nearest")
    images = photos[:2]
    found = CORRUPTIONS["glass_blur"](images, severity, np.random.default_rng(0))
    offsets = np.random.default_rng(0).integers(-1, 1, (2, num_passes, 2, 30, 30))
    for image, own, out in zip(images, offsets, found, strict=True):
        x = np.floor(255 * blur(image / 255) + 1e-6).astype(np.uint8)
        for dy, dx in own:
            for i in range(31, 1, -1):
                for j in range(31, 1, -1):
                    y0, x0 = i + dy[i - 2, j - 2], j + dx[i - 2, j - 2]
                    x[i, j], x[y0, x0] = x[y0, x0], x[i, j]
        twin = np.floor(255 * blur(x / 255) + 1e-6)
        # Flat skies blur to a millionth below a whole byte, which single precision
        # doesn't see and double cuts.
        assert np.abs(out - twin).max() <= 1
        assert (out != twin).mean() < 0.06


def slow_plasma(steps, size, decay):
    """Point by point, each the mean of its four neighbours and a step."""
    heights, distance, roughness = np.zeros((size, size)), size, 100.0

    def fill(y, x, around):
        mean = sum(heights[(y + dy) % size, (x + dx) % size] for dy, dx in around) / 4
        heights[y, x] = mean + roughness**2 * steps[y, x]

    while distance > 1:
        h = distance // 2
        for y in range(h, size, distance):
            for x in range(h, size, distance):
                fill(y, x, [(-h, -h), (-h, h), (h, -h), (h, h)])
        cross = [(-h, 0), (h, 0), (0, -h), (0, h)]
        for y in range(0, size, h):
            for x in range(0, size, h):
                if (y // h + x // h) % 2:
                    fill(y, x, cross)
        distance, roughness = h, roughness / decay
    heights -= heights.min()
    return heights / heights.max()


def test_fog_is_plasma_over_a_darker_image(photos: np.ndarray):
    steps = np.random.default_rng(1).uniform(-1, 1, (2, 32, 32))
    haze = plasma(2, 30, decay=2.0, rng=np.random.default_rng(1))
    for i in range(2):
        np.testing.assert_allclose(haze[i], slow_plasma(steps[i], 32, 2.0), atol=1e-5)
    images = photos[:2, :, :30]
    found = CORRUPTIONS["fog"](images, 4, np.random.default_rng(1))
    for image, out, own in zip(images, found, haze, strict=True):
        x = image / 255
        twin = (x + own[:, :30, None]) * x.max() / (x.max() + 1)
        assert np.abs(out - 255 * np.minimum(twin, 1) + 0.5).max() <= 0.51


def test_snow_against_its_slow_twin(photos: np.ndarray):
    """Catches flakes that don't turn, another threshold, an image whitened wrongly."""
    images = photos[:2]
    found = CORRUPTIONS["snow"](images, 4, np.random.default_rng(2))
    flakes_rng, fall_rng = np.random.default_rng(2).spawn(2)
    noise = 0.25 + 0.3 * flakes_rng.standard_normal((2, 32, 32, 1), np.float32)
    degrees = fall_rng.uniform(-135, -45, 2)
    for image, layer, angle, out in zip(images, noise, degrees, found, strict=True):
        flakes = slow_zoom(layer, 2.25)[..., 0]
        flakes[flakes < 0.6] = 0
        flakes = np.floor(255 * np.clip(flakes, 0, 1)) / 255
        flakes = slow_move(flakes.astype(float), angle, 12, 6.0)
        x = image / 255
        grey = x @ [0.299, 0.587, 0.114]
        x = 0.85 * x + 0.15 * np.maximum(x, 1.5 * grey[..., None] + 0.5)
        x += (flakes + np.rot90(flakes, 2))[..., None]
        assert np.abs(out - 255 * np.clip(x, 0, 1) + 0.5).max() <= 1.51


def test_frost_looks_like_the_photographs():
    """Their mean colour and autocorrelation; catches noise without its scale."""
    black = np.zeros((400, 32, 32, 3), np.uint8)
    found = corrupt(black, "frost", 1) / 0.2
    colours = [(76, 148, 165), (198, 202, 211), (143, 157, 170), (102, 114, 125)]
    means = np.average(colours, axis=0, weights=[1, 2, 1, 1])
    spread = np.std(np.repeat(colours, [1, 2, 1, 1], 0), axis=0) / np.sqrt(400)
    assert (np.abs(found.mean((0, 1, 2)) + 2.5 - means) < 4.5 * (spread + 0.5)).all()
    ice = found[..., 0] - found[..., 0].mean((1, 2), keepdims=True)
    assert 12 < ice.std() < 18
    correlation = [(ice[:, :, k:] * ice[:, :, :-k]).mean() / ice.var() for k in (1, 4)]
    np.testing.assert_allclose(correlation, [0.7, 0.3], atol=0.08)
    grey = corrupt(black + np.uint8(60), "frost", 4).astype(int)
    shift = grey - corrupt(black, "frost", 4)
    assert abs(shift - 0.85 * 60).max() <= 1


@pytest.mark.parametrize("severity", SEVERITIES)
def test_colours_against_hsv(severity: int):
    """Python's own conversion, with grey and black pixels among the others."""
    images = np.random.default_rng(severity).integers(0, 256, (1, 8, 8, 3), np.uint8)
    images[0, 0, :3] = [[0, 0, 0], [90, 90, 90], [255, 255, 255]]
    up = (0.05, 0.10, 0.15, 0.20, 0.30)[severity - 1]
    factor, shift = ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))[severity - 1]
    brighter = corrupt(images, "brightness", severity)
    saturated = corrupt(images, "saturate", severity)
    for y, x in np.ndindex(8, 8):
        h, s, v = colorsys.rgb_to_hsv(*(images[0, y, x] / 255))
        twin = colorsys.hsv_to_rgb(h, s, min(v + up, 1))
        assert np.abs(brighter[0, y, x] - 255 * np.array(twin) + 0.5).max() <= 0.51
        twin = colorsys.hsv_to_rgb(h, min(max(factor * s + shift, 0), 1), v)
        assert np.abs(saturated[0, y, x] - 255 * np.array(twin) + 0.5).max() <= 0.51


@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast_shrinks_each_channel_to_its_mean(photos: np.ndarray, severity: int):
    factor = (0.75, 0.50, 0.40, 0.30, 0.15)[severity - 1]
    x = photos[:4].astype(float)
    mean = x.mean((1, 2), keepdims=True)
    found = corrupt(photos[:4], "contrast", severity)
    assert np.abs(found - (mean + factor * (x - mean)) + 0.5).max() <= 0.51


def test_jpeg_is_pillows(photos: np.ndarray):
    for severity, quality in zip(SEVERITIES, (80, 65, 58, 50, 40), strict=True):
        found = corrupt(photos[:2], "jpeg_compression", severity)
        for image, out in zip(photos[:2], found, strict=True):
            file = io.BytesIO()
            Image.fromarray(image).save(file, "JPEG", quality=quality)
            assert np.array_equal(out, np.asarray(Image.open(file)))


def test_pixels_are_means_over_boxes(photos: np.ndarray):
    """Each small pixel the mean of its box, rounded to bytes in each direction."""
    for severity, small in zip(SEVERITIES, (30, 28, 27, 24, 20), strict=True):
        found = corrupt(photos[:2], "pixelate", severity).astype(float)
        bounds = np.linspace(0, 32, small + 1)
        places = np.arange(32) + 0.5
        # Box filters of Pillow weigh a pixel fully if its middle is in the box.
        weights = (places >= bounds[:-1, None]) & (places < bounds[1:, None])
        weights = weights / weights.sum(1, keepdims=True)
        means = np.einsum(
            "ih,nhwc,jw->nijc", weights, photos[:2].astype(float), weights
        )
        place = np.floor(places * small / 32).astype(int)
        assert np.abs(found - means[:, place][:, :, place]).max() <= 1


def ramps(num_rows: int) -> np.ndarray:
    """Colours that tell the place: 7 levels a pixel, across and down."""
    y, x = np.mgrid[:32, :32]
    image = np.stack([7 * x + 10, 7 * y + 10, 0 * x], axis=-1).astype(np.uint8)
    return np.tile(image, (num_rows, 1, 1, 1))


def test_elastic_moves_corners_where_it_should():
    """At severity 1 it is affine: what lay at three corners lies where they went."""
    found = CORRUPTIONS["elastic_transform"](ramps(5), 1, np.random.default_rng(4))
    corners = 16 + 10 * np.array([[1, 1], [1, -1], [-1, -1]])
    rng = np.random.default_rng(4).spawn(2)[0]
    moved = corners + rng.uniform(-2.56, 2.56, (5, 3, 2))
    for image, places in zip(found.astype(float), moved, strict=True):
        at = places[:, ::-1].T  # rows first
        for channel in (0, 1):
            value = scipy.ndimage.map_coordinates(image[..., channel], at, order=1)
            place = (value + 0.5 - 10) / 7
            np.testing.assert_allclose(place, corners[:, channel], atol=0.15)


def test_elastic_displaces_by_a_blurred_field():
    """What is left of an affine map has the field's deviation, in both directions."""
    found = corrupt(ramps(100), "elastic_transform", 5)[:, 6:-6, 6:-6] / 7
    y, x = np.mgrid[:20, :20].reshape(2, -1)
    basis = np.stack([x, y, np.ones(400)], axis=1)
    seen = found[..., :2].transpose(1, 2, 0, 3).reshape(400, -1)
    residual = seen - basis @ np.linalg.lstsq(basis, seen, rcond=None)[0]
    sigma = 0.03 * 32
    weights = np.exp(-0.5 * (np.arange(-3, 4) / sigma) ** 2)
    weights /= weights.sum()
    sd = 0.1 * 32 * np.sum(weights**2) / np.sqrt(3)
    residual = residual.reshape(400, 100, 2).std((0, 1))
    np.testing.assert_allclose(residual, sd, rtol=0.05)
