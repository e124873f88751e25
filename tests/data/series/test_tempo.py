"""Sequences again, faster and slower."""

import numpy as np
import pytest

from ornstein.data import DataError, Series, at_tempos

TIMES = np.array([0.0, 1.0, 3.0, 4.0])
LINE = np.stack([2 * TIMES + 1, -TIMES], axis=-1)


def test_a_straight_line_is_steeper_at_a_faster_tempo():
    found = at_tempos(Series.of(TIMES, LINE), [1.0, 0.5, 1.25])
    np.testing.assert_array_equal(found.values[0], LINE)
    np.testing.assert_array_equal(found.ts, [TIMES] * 3)
    np.testing.assert_allclose(found.values[1, :, 0], 2 * (0.5 * TIMES) + 1)
    np.testing.assert_allclose(found.values[2, :3, 1], -1.25 * TIMES[:3])


def test_tempo_counts_from_the_first_time():
    found = at_tempos(Series.of(TIMES + 10, LINE), [0.5])
    np.testing.assert_allclose(found.values[0, :, 0], 2 * (0.5 * TIMES) + 1)


def test_nothing_is_observed_past_the_end():
    found = at_tempos(Series.of(TIMES, LINE), [1.25, 0.8])
    np.testing.assert_array_equal(found.mask[0].all(-1), [True, True, True, False])
    assert found.mask[1].all()


def test_nothing_is_observed_beside_a_gap():
    mask = np.ones((4, 2), bool)
    mask[1, 1] = False  # at time 1, of the second feature
    found = at_tempos(Series.of(TIMES, LINE, mask), [1.0, 0.5, 1 / 3])
    np.testing.assert_array_equal(found.mask[0], mask)
    # Asked for at times 0, 0.5, 1.5 and 2: the first alone has no missing neighbour.
    np.testing.assert_array_equal(found.mask[1, :, 1], [True, False, False, False])
    assert found.mask[1, :, 0].all()
    np.testing.assert_array_equal(found.mask[2, :, 1], [True, False, False, False])


def test_a_time_of_the_series_itself_needs_no_neighbour():
    mask = np.array([True, False, True, True])
    times = np.arange(4.0)
    found = at_tempos(Series.of(times, LINE, mask), [2.0])
    np.testing.assert_array_equal(found.mask[0, :, 0], [True, True, False, False])
    np.testing.assert_array_equal(found.values[0, 1], LINE[2])
    mask = np.array([True, True, False, True])
    found = at_tempos(Series.of(times, LINE, mask), [1.5])
    np.testing.assert_array_equal(found.mask[0, :, 0], [True, False, True, False])
    np.testing.assert_array_equal(found.values[0, 2], LINE[3])


def test_what_stands_under_the_mask_is_not_read():
    """Catches (seen) NaN that became an observation beside it: 0 times NaN."""
    mask = np.array([[True] * 2, [True] * 2, [False] * 2, [True] * 2])
    spoilt = np.where(mask, LINE, np.nan)
    series = Series(TIMES[None], spoilt[None], mask[None])
    found = at_tempos(series, [0.25, 0.5])
    expected = at_tempos(Series.of(TIMES, LINE, mask), [0.25, 0.5])
    np.testing.assert_array_equal(found.mask, expected.mask)
    np.testing.assert_array_equal(found.values, expected.values)


@pytest.mark.parametrize("tempos", [[], [0.0], [1.0, -2.0], [np.nan]])
def test_tempos_that_are_none_are_refused(tempos):
    with pytest.raises(DataError, match="one or more positive numbers"):
        at_tempos(Series.of(TIMES, LINE), tempos)
