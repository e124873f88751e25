"""Series from a user's arrays: what they mean, and what is refused."""

import equinox as eqx
import jax
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import DataError, Series, Split

TIMES = np.array([0.0, 0.5, 2.0])
VALUES = np.arange(12.0).reshape(2, 3, 2)


def test_times_are_repeated_and_everything_is_observed():
    series = Series.of(TIMES, VALUES)
    np.testing.assert_array_equal(series.ts, [TIMES, TIMES])
    np.testing.assert_array_equal(series.values, VALUES)
    assert series.mask.all()
    assert (len(series), series.num_times, series.num_features) == (2, 3, 2)
    assert series.values.dtype == series.ts.dtype == np.float32


def test_double_precision_stays_where_jax_has_it(x64):
    assert Series.of(TIMES, VALUES).ts.dtype == np.float64


def test_one_series_is_one_row():
    series = Series.of(list(TIMES), VALUES[0].tolist())
    assert series.shape == (1, 3, 2)
    assert Series.of(TIMES, VALUES[0], np.ones((3, 2), bool)).mask.all()


def test_missing_by_nan_or_by_mask():
    """Both put zeros there. (A mask turned round is seen.)"""
    missing = np.zeros((2, 3, 2), bool)
    missing[0, 1] = missing[1, 2, 0] = True
    by_nan = Series.of(TIMES, np.where(missing, np.nan, VALUES))
    by_mask = Series.of(TIMES, np.where(missing, np.inf, VALUES), ~missing)
    assert jax.tree.all(jax.tree.map(np.array_equal, by_nan, by_mask))
    np.testing.assert_array_equal(by_nan.mask, ~missing)
    np.testing.assert_array_equal(by_nan.values, np.where(missing, 0, VALUES))


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_a_mask_of_times_is_for_all_features(shape):
    mask = np.broadcast_to([True, False, True], shape)
    found = Series.of(TIMES, VALUES, mask).mask
    np.testing.assert_array_equal(found, np.broadcast_to(mask[..., None], (2, 3, 2)))


def test_rows_are_picked_together():
    series = Series.of(np.stack([TIMES, 2 * TIMES]), VALUES)
    second = series[1:]
    assert len(second) == 1
    np.testing.assert_array_equal(second.ts, [2 * TIMES])
    np.testing.assert_array_equal(second.values, VALUES[1:])
    part = Split(series, series).rows(np.array([1]))
    assert jax.tree.all(jax.tree.map(np.array_equal, part.x, second))


def test_extended_asks_for_the_future():
    series = Series.of(TIMES, VALUES).extended([3.0, 4.0])
    np.testing.assert_array_equal(series.ts[1], [0.0, 0.5, 2.0, 3.0, 4.0])
    assert series.mask[:, :3].all()
    assert not series.mask[:, 3:].any()
    np.testing.assert_array_equal(series.values[:, :3], VALUES)


def test_first_hides_what_comes_later():
    series = Series.of(TIMES, VALUES).first(2)
    assert series.mask[:, :2].all()
    assert not series.mask[:, 2:].any()
    assert series.num_times == 3


def test_padded_series_end_with_nothing():
    """As far apart as the last two, and increasing: what `fit` can batch."""
    short, long = Series.of(TIMES[:2], VALUES[:1, :2]), Series.of(TIMES, VALUES)
    both = Series.padded([short, long])
    np.testing.assert_array_equal(both.ts, [[0.0, 0.5, 1.0], TIMES, TIMES])
    assert not both.mask[0, 2].any()
    assert both.mask[1:].all()
    np.testing.assert_array_equal(both.values[0, :2], VALUES[0, :2])


def test_padding_steps_no_further_than_a_series_mostly_does():
    """Catches (seen) a far last time, whose gap was gone again and again. Where single
    precision has no smaller step, it is the last gap still."""
    short = Series.of([0.0, 1.0, 2.0, 50.0], np.ones((4, 1)))
    near = Series.of([0.0, 1e-4, 2e-4, 3000.0], np.ones((4, 1)))
    long = Series.of(np.arange(7.0), np.ones((7, 1)))
    padded = Series.padded([short, near, long])
    np.testing.assert_array_equal(padded.ts[0, 4:], [51, 52, 53])
    assert np.all(np.diff(padded.ts[1]) > 0)
    assert padded.ts[1, -1] < 3001


def spoilt(value):
    values = VALUES.copy()
    values[1, 2, 0] = value
    return values


NONE_SEEN = np.array([True, False])[:, None, None] & np.ones((2, 3, 2), bool)
REFUSED = {
    "unsorted": (
        lambda: Series.of(TIMES[[0, 2, 1]], VALUES),
        r"times of series 0 are unsorted \(2 is followed by 0.5\)",
    ),
    "repeated": (
        lambda: Series.of(np.stack([TIMES, [0.0, 1.0, 1.0]]), VALUES),
        r"times of series 1 repeat \(1 is followed by 1\)",
    ),
    "one point": (
        lambda: Series.of([0.0], np.zeros((1, 2))),
        "A series of one point has no path",
    ),
    "nothing observed": (
        lambda: Series.of(TIMES, VALUES, NONE_SEEN),
        "1 of 2 series have no observed value, first series 1",
    ),
    "nothing left": (
        lambda: Series.of(TIMES, VALUES, np.array([False, True, True])).first(1),
        "2 of 2 series have no observed value",
    ),
    "NaN where observed": (
        lambda: Series.of(TIMES, spoilt(np.nan), np.ones((2, 3, 2), bool)),
        "1 observed values are NaN or infinite, first feature 0 at point 2 of series 1",
    ),
    "infinite": (lambda: Series.of(TIMES, spoilt(np.inf)), "1 observed values are NaN"),
    "no time": (
        lambda: Series.of([0.0, np.nan, 1.0], VALUES),
        "1 times are NaN or infinite",
    ),
    "mixed times": (
        lambda: Series.of([0.0, None, 1.0], VALUES),
        r"times are of mixed type \(NoneType, float\)",
    ),
    "text": (lambda: Series.of(["a", "b", "c"], VALUES), "times are of type <U1, not"),
    "dates": (
        lambda: Series.of(np.array(["2020", "2021"], "M8[Y]"), np.zeros((2, 1))),
        "times are of type datetime64.*not numbers",
    ),
    "ragged": (
        lambda: Series.of([[0.0, 1.0], [0.0]], VALUES),
        "times are rows of different lengths.*Series.padded",
    ),
    "shape of values": (
        lambda: Series.of(TIMES, TIMES),
        r"`values` has shape \(3,\).*values\[..., None\]",
    ),
    "shape of times": (
        lambda: Series.of(TIMES[:2], VALUES),
        r"`ts` has shape \(2,\) for values of shape \(2, 3, 2\): give \(3,\)",
    ),
    "shape of the mask": (
        lambda: Series.of(TIMES, VALUES, np.ones((2, 2), bool)),
        r"`mask` has shape \(2, 2\)",
    ),
    "type of the mask": (
        lambda: Series.of(TIMES, VALUES, np.ones((2, 3, 2))),
        "`mask` is of type float64: give booleans",
    ),
    "the past": (
        lambda: Series.of(TIMES, VALUES).extended([1.0]),
        r"are unsorted \(2 is followed by 1\)",
    ),
    "a future for other rows": (
        lambda: Series.of(TIMES, VALUES).extended(np.full((3, 1), 3.0)),
        r"`extended` got times of shape \(3, 1\) for 2 series",
    ),
    "features": (
        lambda: Series.padded(
            [Series.of(TIMES, VALUES), Series.of(TIMES, VALUES[..., :1])]
        ),
        r"series of \[1, 2\] features",
    ),
    "no series": (lambda: Series.padded([]), "got no series"),
    "bare arrays": (
        lambda: eqx.tree_at(
            lambda series: series.ts, Series.of(TIMES, VALUES), TIMES
        ).__check_init__(),
        r"times of shape \(3,\), values of shape \(2, 3, 2\)",
    ),
    "traced": (
        lambda: jax.jit(lambda ts: Series.of(ts, VALUES).ts)(TIMES),
        "`Series.of` got traced times",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input(case):
    build, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        build()


def test_top_level_name():
    assert orn.Series is Series
