"""Inputs unlike the training data, against NumPy, closed forms and counts."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein.data as od


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
