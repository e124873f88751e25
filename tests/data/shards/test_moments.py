"""Means and spreads of parts, against NumPy's of the whole."""

import numpy as np
import pytest

from ornstein.data._standardise import Standardisation
from ornstein.data.shards._moments import Moments


def merged(parts, axes=(0,)):
    found = Moments.none(parts[0].shape[-1:])
    for part in parts:
        found = found.with_more(Moments.of(part, axes))
    return found


def test_parts_have_the_moments_of_the_whole():
    """Catches the term between parts, left out (seen): their means differ here."""
    rng = np.random.default_rng(0)
    sizes, far = (1, 17, 400, 0, 3), np.array([0.0, 1e8, -5.0])
    parts = [rng.normal(i, 1 + i, (n, 3)) + far for i, n in enumerate(sizes)]
    found, whole = merged(parts), np.concatenate(parts)
    expected = Standardisation.fit(whole)
    scaling = found.scaling()
    np.testing.assert_allclose(scaling.mean, expected.mean, rtol=1e-14)
    np.testing.assert_allclose(scaling.scale, expected.scale, rtol=1e-7)
    np.testing.assert_array_equal(found.lowest, whole.min(0))
    np.testing.assert_array_equal(found.count, len(whole))


def test_a_block_of_many_values_is_summed_in_parts(monkeypatch: pytest.MonkeyPatch):
    values = np.random.default_rng(0).normal(size=(100, 4))
    whole = Moments.of(values)
    monkeypatch.setattr("ornstein.data.shards._moments._VALUES", 12)
    parts = Moments.of(values)
    np.testing.assert_allclose(parts.squares, whole.squares, rtol=1e-13)


def test_gaps_count_as_nothing():
    values = np.array([[1.0, np.nan], [3.0, 7.0], [np.nan, np.nan]])
    found = Moments.of(values)
    np.testing.assert_array_equal(found.count, [2, 1])
    np.testing.assert_array_equal(found.mean, [2, 7])
    np.testing.assert_array_equal(found.scale, [1, 1])  # of one value: constant


def test_pixels_share_a_channel():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 4, 5, 3)).astype(np.uint8)
    axes = (0, 1, 2)
    scaling = merged([images[:7], images[7:]], axes).scaling(axes)
    expected = Standardisation.fit(images, axes)
    assert scaling.mean.shape == expected.mean.shape
    np.testing.assert_allclose(scaling.mean, expected.mean, rtol=1e-13)
    np.testing.assert_allclose(scaling.scale, expected.scale, rtol=1e-13)


def test_values_beyond_double_precision_are_seen():
    found = Moments.of(np.array([[1e200], [-1e200]]))
    assert not found.scaling().is_possible.any()
