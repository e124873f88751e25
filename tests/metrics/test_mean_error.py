"""A mean over values with an error over rows, against repeated samples."""

import math

import numpy as np
import pytest
import scipy.stats

from ornstein.metrics import mean_and_error


def test_error_is_that_of_repeated_samples():
    """Rows of 1 to 20 values that share a level. Catches an error over values (a
    third of this), of rows' unweighted means, and a mean of those.
    """
    rng = np.random.default_rng(0)
    means, errors = [], []
    for _ in range(4_000):
        counts = rng.integers(1, 21, 40)
        level = 1.0 + 0.1 * counts + rng.standard_normal(40)
        noise = rng.standard_normal(40) * np.sqrt(counts)
        mean, error = mean_and_error(counts * level + noise, counts)
        means.append(mean)
        errors.append(error)
    exact = 1.0 + 0.1 * np.mean(np.arange(1, 21) ** 2) / np.mean(np.arange(1, 21))
    spread = np.std(means)
    assert abs(np.mean(means) - exact) < 4.5 * spread / math.sqrt(4_000) + 0.01
    # To first order in one over the rows; 4,000 repeats know the spread to 1 %.
    assert np.mean(errors) == pytest.approx(spread, rel=0.05)


def test_with_a_value_a_row_it_is_the_means_own():
    values = np.random.default_rng(1).standard_normal(30)
    mean, error = mean_and_error(values)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(scipy.stats.sem(values))
    assert math.isnan(mean_and_error(np.ones(1))[1])


def test_rows_without_values_say_nothing():
    """Catches (seen) an error of rows that hold nothing: 20 of them beside 5 halve it,
    and one beside a single row makes an error of 0."""
    mean, error = mean_and_error([-30.0, 0.0], [20, 0])
    assert mean == -1.5
    assert math.isnan(error)
    totals, counts = [3.0, -1.0, 4.0, 1.0, 5.0], [2, 7, 1, 8, 2]
    padded = mean_and_error(totals + 20 * [0.0], counts + 20 * [0])
    assert padded == mean_and_error(totals, counts)
    with pytest.raises(ValueError, match="no value to average"):
        mean_and_error([0.0, 0.0], [0, 0])
