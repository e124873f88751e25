"""Augmentation and corruption against slow twins and counts."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein.data as od


def numbered(batch=3000):
    """Images whose every pixel tells its place."""
    image = jnp.arange(1.0, 5 * 6 * 2 + 1).reshape(1, 5, 6, 2)
    return jnp.broadcast_to(image, (batch, 5, 6, 2))


@pytest.mark.parametrize(
    ("augment", "padding"),
    [
        (od.RandomShift(2), {"mode": "edge"}),
        (od.RandomCrop(2, 7.0), {"mode": "constant", "constant_values": 7.0}),
    ],
    ids=["shift", "crop"],
)
def test_windows_are_all_and_equally_likely(augment, padding):
    """Each image is one of the 25 windows of NumPy's padding, each equally often.

    Catches an offset range one too small, one shift for the whole batch, wrong axes.
    """
    x = numbered()
    out = np.asarray(jax.jit(augment)(x, key=jr.key(0)))
    padded = np.pad(np.asarray(x[0]), ((2, 2), (2, 2), (0, 0)), **padding)
    windows = [padded[i : i + 5, j : j + 6] for i in range(5) for j in range(5)]
    counts = [np.all(out == window, axis=(1, 2, 3)).sum() for window in windows]
    assert sum(counts) == len(x)
    chi2 = np.sum((np.array(counts) - 120) ** 2 / 120)
    assert abs(chi2 - 24) < 4.5 * np.sqrt(48)


def test_fill_is_a_colour():
    out = od.RandomCrop(1, np.array([3.0, 4.0], np.float32))(
        numbered(50), key=jr.key(0)
    )
    place = np.asarray(numbered(1))
    new = np.asarray(out)[~np.isin(np.asarray(out), place[place > 4])]
    assert set(np.unique(new)) <= {1.0, 2.0, 3.0, 4.0}
    assert {3.0, 4.0} <= set(np.unique(np.asarray(out)))


def test_half_are_mirrored():
    x = numbered()
    out = np.asarray(od.RandomFlip()(x, key=jr.key(1)))
    same = np.all(out == np.asarray(x), axis=(1, 2, 3))
    mirrored = np.all(out == np.asarray(x)[:, :, ::-1], axis=(1, 2, 3))
    assert np.all(same ^ mirrored)
    assert abs(mirrored.sum() - 1500) < 4.5 * np.sqrt(3000 / 4)


def test_composition_draws_each_step_alone():
    """Two equal shifts move by their sum, whose variance is twice one's."""
    x = jnp.zeros((4000, 21, 21, 1)).at[:, 10, 10].set(1.0)
    out = od.Compose((od.RandomShift(2), od.RandomShift(2)))(x, key=jr.key(2))
    row = np.argmax(np.asarray(out)[..., 0].max(2), axis=1)
    variance = 2 * 2.0  # of uniform steps -2 … 2: 2
    z = (row.var() - variance) / (variance * np.sqrt(2 / 4000))
    assert abs(z) < 4.5


@pytest.mark.parametrize(
    ("name", "moves", "flips"),
    [
        ("digits", 1, False),
        ("mnist", 2, False),
        ("fashion_mnist", 2, True),
        ("cifar10", 4, True),
        ("cifar100", 4, True),
        ("own.npz", 0, False),
    ],
)
def test_defaults_keep_the_class(name, moves, flips):
    """A digit is never mirrored; what is not known is left alone."""
    # One bright pixel in the middle, its right neighbour less bright.
    x = jnp.zeros((500, 15, 15, 1)).at[:, 7, 7].set(2.0).at[:, 7, 8].set(1.0)
    out = np.asarray(od.default_augmentation(name)(x, key=jr.key(3)))[..., 0]
    bright = np.argwhere(out == 2)
    dim = np.argwhere(out == 1)
    assert np.abs(bright[:, 1:] - 7).max() == moves
    assert (np.any(dim[:, 2] < bright[:, 2])) == flips


def test_padding_is_black_where_the_scale_is_known():
    scaling = od.Standardisation(np.full((1, 1, 1), 100.0), np.full((1, 1, 1), 50.0))
    augment = od.default_augmentation("cifar10", scaling)
    out = augment(jnp.ones((100, 8, 8, 1)), key=jr.key(4))
    assert set(np.unique(np.asarray(out))) == {1.0, -2.0}


@pytest.mark.parametrize("augment", [od.RandomShift, od.RandomCrop])
def test_pixels_are_positive(augment):
    with pytest.raises(ValueError, match="must be a positive number of pixels, got 0"):
        augment(0)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_quarter_turns(turns):
    """NumPy's. Catches the other direction, and axes of rows or channels."""
    x = np.random.default_rng(0).normal(size=(3, 8, 8, 2)).astype(np.float32)
    out = od.rotate_images(x, 90.0 * turns)
    np.testing.assert_allclose(out, np.rot90(x, turns, axes=(1, 2)), atol=1e-5)
    assert out.dtype == np.float32


def test_turning_is_bilinear():
    """A linear ramp stays linear: rotated exactly, away from the corners."""
    rows, columns = np.mgrid[:21, :21] - 10.0
    x = (2 * rows + columns).astype(np.float32)[None, ..., None]
    angle = np.deg2rad(30.0)
    # What is at (r, c) came from the place turned back, clockwise on the screen.
    r = np.cos(angle) * rows + np.sin(angle) * columns
    c = -np.sin(angle) * rows + np.cos(angle) * columns
    expected = 2 * r + c
    inside = rows**2 + columns**2 < 81
    out = od.rotate_images(x, 30.0)[0, ..., 0]
    np.testing.assert_allclose(out[inside], expected[inside], atol=1e-4)


def test_noise_has_the_splits_moments():
    x = np.random.default_rng(0).normal(3, 2, (500, 20)).astype(np.float32)
    split = od.Split(x, np.zeros(500, np.int32))
    noise = np.asarray(od.gaussian_noise_like(split, key=jr.key(0)))
    assert noise.shape == x.shape
    assert abs(noise.mean() - x.mean()) < 4.5 * 2 / np.sqrt(10_000)
    assert abs(noise.var() - x.var()) < 4.5 * 4 * np.sqrt(2 / 10_000)


def test_mixing_is_the_blend():
    """x = 0 and x = 1 with one key differ by 1 - gamma; noise alone has variance 1."""
    zeros = np.zeros((100, 100), np.float32)
    mixed = [od.mix_with_noise(zeros + c, 0.3, key=jr.key(0)) for c in (0, 1)]
    np.testing.assert_allclose(mixed[1] - mixed[0], 0.7, rtol=1e-5)
    variance = float(jnp.var(mixed[0]))
    assert abs(variance / 0.09 - 1) < 4.5 * np.sqrt(2 / 10_000)
    with pytest.raises(ValueError, match=r"`gamma` must lie between 0 and 1, got 1\.1"):
        od.mix_with_noise(zeros, 1.1, key=jr.key(0))


def test_salt_and_pepper_counts():
    """A tenth each; whole pixels; nothing else touched. Catches salt over pepper.

    Black and white are each channel's own.
    """
    x = np.random.default_rng(0).normal(size=(10, 50, 50, 3)).astype(np.float32)
    x *= np.array([1, 2, 3], np.float32)
    out = np.asarray(od.salt_and_pepper(x, 0.2, key=jr.key(0)))
    dark = np.all(out == x.min((0, 1, 2)), axis=-1)
    bright = np.all(out == x.max((0, 1, 2)), axis=-1)
    for whole in (dark, bright):
        assert abs(whole.sum() - 2500) < 4.5 * np.sqrt(25_000 * 0.1 * 0.9)
    kept = np.logical_not(dark | bright)
    np.testing.assert_array_equal(out[kept], x[kept])


def test_salt_and_pepper_of_single_numbers_grows():
    """Catches channels that are set together, and pixels that change their side."""
    x = np.random.default_rng(0).normal(size=(10, 50, 50, 3)).astype(np.float32)
    little, much = (
        np.asarray(od.salt_and_pepper(x, f, key=jr.key(0), whole_pixels=False))
        for f in (0.2, 0.5)
    )
    is_set = little != x
    assert abs(is_set.sum() - 15_000) < 4.5 * np.sqrt(75_000 * 0.2 * 0.8)
    assert abs(np.all(is_set, -1).sum() - 200) < 4.5 * np.sqrt(200)
    np.testing.assert_array_equal(little[is_set], much[is_set])
