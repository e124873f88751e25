"""Bands that hold all: by how much, of rows that hang together, and of series."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

import ornstein as orn
from ornstein.diagnosis._band_holds_all import band_holds_all
from ornstein.diagnosis._coverage import series_coverage
from ornstein.diagnosis._evidence import Evidence
from ornstein.diagnosis.scores._coverage_off import coverage_off


class Same(eqx.Module):
    """What it is given: inputs are outputs."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return x


def evidence(outputs: np.ndarray, likelihood: Any, y: Any) -> Evidence:
    """Of a prediction with these draws, where the fit's own have the first alone."""
    draws, targets = jnp.asarray(outputs, jnp.float32), jax.tree.map(jnp.asarray, y)
    return Evidence(
        orn.Fit(orn.Deterministic(Same()), likelihood, None, {}),
        draws[0],
        targets,
        key=jr.key(0),
        num_draws=1,
        history={},
        num_data=None,
        scored=(orn.Prediction(draws, likelihood), targets),
    )


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def series(values: np.ndarray) -> orn.Series:
    """At whole times; NaN is missing."""
    return orn.Series.of(np.arange(values.shape[1], dtype=np.float32), values)


def test_a_line_of_unknown_slope_has_no_band_that_is_too_wide():
    """Of most such posteriors, all of them right, the band holds all targets.

    Catches binomial errors (seen), and bands ten times too wide that are passed over.
    """
    rng = np.random.default_rng(0)
    x, num_all = normal(rng, 200, 1), 0
    for _ in range(20):
        slopes = normal(rng, 65, 1, 1)
        y = slopes[0] * x + 0.01 * normal(rng, 200, 1)
        result = band_holds_all(evidence(slopes[1:] * x, orn.Gaussian(0.01), y))
        assert result.message is None
        num_all += result.numbers["coverage_90"] >= 0.99
    assert num_all >= 12
    y = x + 0.1 * normal(rng, 200, 1)
    near = (1 + 0.05 * normal(rng, 64, 1, 1)) * x
    result = band_holds_all(evidence(near, orn.Gaussian(1.0), y))
    assert "far too wide" in str(result.message)


def test_bands_of_series_are_those_of_the_prediction():
    """A right posterior of 200 series, some values missing: by hand, value by value.

    Catches (seen) the band of a few draws of the fit in place of those given.
    """
    rng = np.random.default_rng(1)
    paths = normal(rng, 64, 200, 5, 1)
    y = normal(rng, 200, 5, 1) + 0.1 * normal(rng, 200, 5, 1)
    y[:, 1:][rng.random((200, 4, 1)) < 0.4] = np.nan
    likelihood = orn.OverTime(orn.Gaussian(0.1))
    result = band_holds_all(evidence(paths, likelihood, series(y)))
    assert result.message is None
    cdf = scipy.stats.norm.cdf((y - paths.astype(float)) / 0.1).mean(0)
    share = np.mean(np.abs(cdf[~np.isnan(y)] - 0.5) <= 0.45)
    assert result.numbers["coverage_90"] == pytest.approx(share, abs=2e-3)
    assert 0.86 < share < 0.92


@pytest.mark.parametrize(("num_series", "times"), [(60, 50), (200, 5)])
def test_a_series_counts_as_one(num_series: int, times: int):
    """Bands ten times too wide: of 60 series that may be chance, however long they are.

    Catches (seen) times that count as rows.
    """
    zeros = np.zeros((1, num_series, times, 1))
    y = 0.1 * normal(np.random.default_rng(2), num_series, times, 1)
    wide = evidence(zeros, orn.OverTime(orn.Gaussian(1.0)), series(y))
    result = band_holds_all(wide)
    assert result.numbers["coverage_90"] == 1
    assert (result.message is not None) == (num_series > 81)


def test_series_of_unequal_lengths():
    """Values of one series are held or missed together: the error by hand."""
    y = np.zeros((101, 400, 1), np.float32)
    y[1:, 1:] = np.nan
    prediction, of_y = evidence(
        np.zeros((1, *y.shape)), orn.OverTime(orn.Gaussian(1.0)), series(y)
    ).scored
    found = series_coverage(prediction, of_y, 0.9)
    lengths = np.array([400] + 100 * [1])
    error = 0.3 * np.sqrt(np.sum(lengths**2)) / lengths.sum()
    assert found.error == pytest.approx(error)
    assert found.num_targets == 500
    assert found.by_chance == pytest.approx(scipy.stats.norm.sf(0.1 / error))


def test_bands_without_a_width_that_single_precision_sees():
    """Of one draw, and of two: catches (seen) a division by an error that is 0."""
    y = 1e6 + np.ones((100, 1), np.float32)
    for num_draws in (1, 2):
        same = np.full((num_draws, 100, 1), 1e6)
        result = coverage_off(evidence(same, orn.Gaussian(1e-3), y))
        assert result.numbers["coverage_95"] == 0
        assert "they are too narrow" in str(result.message)
