"""Sequences again from later starts, and noise on what a recognition network sees."""

import jax
import numpy as np
import pytest

from ornstein.data import DataError, ObservationNoise, Series, windows

TIMES = np.array([[0.0, 1.0, 3.0, 4.0], [5.0, 6.0, 7.0, 9.0]])
VALUES = np.arange(16.0).reshape(2, 4, 2)
SERIES = Series.of(TIMES, VALUES)


def test_each_series_begins_again_at_each_start():
    found = windows(SERIES, [0, 2])
    assert len(found) == 4
    np.testing.assert_array_equal(found.values[:2], VALUES)
    np.testing.assert_array_equal(found.values[2:, :2], VALUES[:, 2:])


def test_times_count_from_where_the_series_began():
    found = windows(SERIES, [2])
    np.testing.assert_array_equal(found.ts, [[0.0, 1.0], [5.0, 7.0]])


def test_nothing_is_observed_past_the_end():
    found = windows(SERIES, [0, 1])
    np.testing.assert_array_equal(found.mask[2:, :3], True)
    np.testing.assert_array_equal(found.mask[2:, 3], False)
    np.testing.assert_array_equal(found.ts[2], [0.0, 2.0, 3.0, 4.0])


def test_what_was_missing_stays_missing():
    mask = np.ones((2, 4), bool)
    mask[1, 2] = False
    found = windows(Series.of(TIMES, VALUES, mask), [1])
    np.testing.assert_array_equal(found.mask[..., 0], mask[:, 1:])


@pytest.mark.parametrize("starts", [[], [3], [-1], [0, 7]])
def test_starts_without_two_points_are_refused(starts):
    with pytest.raises(DataError, match="one or more from 0 to 2"):
        windows(SERIES, starts)


def test_rows_without_an_observation_are_left_out():
    mask = np.ones((2, 4), bool)
    mask[1, 2:] = False
    found = windows(Series.of(TIMES, VALUES, mask), [0, 2])
    assert len(found) == 3
    np.testing.assert_array_equal(found.values[2, :2], VALUES[0, 2:])


def test_a_start_after_the_last_observation_is_refused():
    mask = np.ones((2, 4), bool)
    mask[:, 2:] = False
    with pytest.raises(DataError, match="No series has an observed value from point 2"):
        windows(Series.of(TIMES, VALUES, mask), [0, 2])


def test_noise_has_its_scale_for_each_feature():
    series = Series.of(np.arange(500.0), np.zeros((40, 500, 2)))
    noise = ObservationNoise(np.array([0.5, 2.0]))(series, key=jax.random.key(0))
    np.testing.assert_allclose(np.std(noise.values, axis=(0, 1)), [0.5, 2.0], rtol=0.02)
    first, second = np.asarray(noise.values[:2])
    assert abs(np.mean(first * second)) < 0.1


def test_noise_leaves_what_is_missing_alone():
    mask = np.ones((2, 4, 2), bool)
    mask[0, 1, 1] = False
    series = Series.of(TIMES, VALUES, mask)
    noisy = ObservationNoise(1.0)(series, key=jax.random.key(0))
    np.testing.assert_array_equal(noisy.mask, mask)
    assert noisy.values[0, 1, 1] == 0
    assert np.all(np.asarray(noisy.values)[mask] != VALUES[mask])


def test_negative_noise_is_refused():
    with pytest.raises(DataError, match="must not be negative"):
        ObservationNoise(-0.1)
