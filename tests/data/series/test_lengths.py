"""Sequences again, cut short."""

import numpy as np
import pytest

from ornstein.data import DataError, Series, of_lengths

TIMES = np.array([0.0, 1.0, 3.0, 4.0])
VALUES = np.arange(16.0).reshape(2, 4, 2)
SERIES = Series.of(TIMES, VALUES)


def test_rows_at_each_length_in_turn():
    found = of_lengths(SERIES, [3, 4])
    seen = np.all(found.mask, axis=-1)
    np.testing.assert_array_equal(seen[:2], [[True, True, True, False]] * 2)
    assert seen[2:].all()
    for start in (0, 2):
        np.testing.assert_array_equal(found.ts[start : start + 2], SERIES.ts)
        np.testing.assert_array_equal(found.values[start : start + 2], VALUES)


def test_missing_values_stay_missing():
    mask = np.ones((2, 4, 2), bool)
    mask[0, 1, 1] = False
    found = of_lengths(Series.of(TIMES, VALUES, mask), [2])
    np.testing.assert_array_equal(found.mask[0, :2], mask[0, :2])
    assert not found.mask[:, 2:].any()


def test_series_without_an_observation_are_left_out():
    mask = np.ones((2, 4), bool)
    mask[0, :2] = False
    series = Series.of(TIMES, VALUES, mask)
    found = of_lengths(series, [2, 3])
    np.testing.assert_array_equal(found.values, series.values[[1, 0, 1]])
    with pytest.raises(DataError, match="give greater lengths"):
        of_lengths(series[:1], [2])


@pytest.mark.parametrize("lengths", [[], [0], [2, 5]])
def test_lengths_that_are_none_are_refused(lengths):
    with pytest.raises(DataError, match="whole numbers from 1 to 4"):
        of_lengths(SERIES, lengths)
