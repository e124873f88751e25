"""Metrics of regressors against quadrature and numbers worked out by hand."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from ornstein import metrics

Y = np.asarray(jr.normal(jr.key(0), (6, 2)))


def crps_by_quadrature(cdf, y):
    below, _ = scipy.integrate.quad(lambda t: cdf(t) ** 2, -30, y, limit=200)
    above, _ = scipy.integrate.quad(lambda t: (1 - cdf(t)) ** 2, y, 30, limit=200)
    return below + above


def test_gaussian_crps():
    """Catches a lost factor 2 or 1 / sqrt(pi)."""
    for mean, std, y in [(0.0, 1.0, 0.3), (1.0, 2.5, -4.0), (-2.0, 0.1, -1.5)]:
        expected = crps_by_quadrature(scipy.stats.norm(mean, std).cdf, y)
        actual = metrics.gaussian_crps(np.array(mean), np.array(std), np.array(y))
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_sample_crps():
    """Catches ranks that start at 0, and the unbiased variant's S - 1."""
    samples = np.asarray(jr.normal(jr.key(1), (7, 6, 2)))
    spread = np.abs(samples[:, None] - samples[None]).mean((0, 1)) / 2
    expected = np.abs(samples - Y).mean(0) - spread
    np.testing.assert_allclose(metrics.sample_crps(samples, Y), expected, rtol=1e-4)
    quantiles = scipy.stats.norm.ppf((np.arange(400) + 0.5) / 400)
    many = metrics.sample_crps(quantiles[:, None], np.array([0.7]))
    exact = metrics.gaussian_crps(np.zeros(1), np.ones(1), np.array([0.7]))
    np.testing.assert_allclose(many, exact, rtol=1e-3)


def test_sample_crps_far_from_zero():
    """Catches a sum over ranks that cancels (14 % of it, seen)."""
    samples = np.random.default_rng(1).normal(1e6, 1.0, (1000, 5)).astype(np.float32)
    y = samples[:5].diagonal()
    wide = samples.astype(np.float64)
    gaps = np.abs(wide[:, None] - wide[None]).mean((0, 1))
    expected = np.abs(wide - y).mean(0) - gaps / 2
    np.testing.assert_allclose(metrics.sample_crps(samples, y), expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_numbers_of_half_precision(dtype):
    """As the same numbers in single precision. Catches (seen) errors of 300 with an
    RMSE of infinity, and ranks of 512 samples with a CRPS of NaN."""
    rng = np.random.default_rng(0)
    y = (100 * rng.normal(size=40)).astype(dtype)
    samples = (100 * rng.normal(size=(512, 40))).astype(dtype)
    std = np.full(40, 100, dtype)
    wide = lambda a: a.astype(np.float32)
    for found, expected in (
        (metrics.rmse(y + std, -y), metrics.rmse(wide(y + std), wide(-y))),
        (metrics.sample_crps(samples, y), metrics.sample_crps(wide(samples), wide(y))),
        (
            metrics.gaussian_crps(samples[0], std, y),
            metrics.gaussian_crps(wide(samples[0]), wide(std), wide(y)),
        ),
    ):
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    means = (10 * samples).astype(dtype)
    found = metrics.split_variance(means, means**0)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(
        found, metrics.split_variance(wide(means), wide(means**0)), rtol=1e-5
    )
    cdf = rng.uniform(size=1_000).astype(dtype)
    assert float(metrics.regression_calibration_error(cdf)) == pytest.approx(
        float(metrics.regression_calibration_error(wide(cdf))), abs=1e-6
    )


def test_a_column_is_no_vector(unchecked):
    """Catches (seen) a table of all pairs that is averaged: a perfect guess with an
    error of 1.7."""
    mean, y = np.linspace(-2, 2, 50)[:, None], np.linspace(-2, 2, 50)
    ones = np.ones_like(mean)
    calls = {
        "mean": lambda: metrics.rmse(mean, y),
        "lower": lambda: metrics.interval_coverage(mean - 1, mean + 1, y),
        "std": lambda: metrics.gaussian_crps(y, ones, y),
        "samples": lambda: metrics.sample_crps(mean[None], y),
    }
    for name, call in calls.items():
        match = rf"`{name}` has shape \(.*50, 1\) and `y` \(50,\)"
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(ValueError, match=r"has shape \(50,\) and `y` \(50,\)"):
        metrics.sample_crps(y, y)
    assert metrics.rmse(mean, y[:, None]) == 0
    assert np.shape(metrics.gaussian_crps(0.0, 1.0, y)) == (50,)
    assert np.isnan(metrics.regression_calibration_error(np.array([0.5, np.nan])))


def test_rmse_by_hand():
    guess = np.array([[1.0], [2.0], [5.0]])
    np.testing.assert_allclose(
        metrics.rmse(guess, np.array([[1.0], [2.0], [2.0]])), np.sqrt(3), rtol=1e-6
    )


def test_coverage_includes_ends():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    ones = np.ones(4)
    np.testing.assert_allclose(metrics.interval_coverage(ones, 2 * ones, y), 0.5)


def test_regression_calibration_by_hand():
    """Catches shares above a level in place of those below."""
    # Levels 1/4 1/2 3/4 have 2/4, 2/4 and 3/4 of the values below or at them.
    values = np.array([0.1, 0.25, 0.6, 0.9])
    error = metrics.regression_calibration_error(values, num_levels=3)
    np.testing.assert_allclose(error, 0.25 / 3, rtol=1e-6)
    grid = (np.arange(1000) + 0.5) / 1000
    calibrated = metrics.regression_calibration_error(grid)
    assert calibrated < 2e-3
    # All just below 1/2: gaps 0.05 ... 0.45, 0.5, 0.45 ... 0.05 at 19 levels.
    wide = metrics.regression_calibration_error(np.full(10, 0.5 - 1e-6))
    np.testing.assert_allclose(wide, 5 / 19, rtol=1e-4)


def test_variance_split():
    means = np.asarray(jr.normal(jr.key(2), (5, 6, 2)))
    variances = np.asarray(jr.uniform(jr.key(3), (5, 6, 2)))
    total, aleatoric, epistemic = metrics.split_variance(means, variances)
    np.testing.assert_allclose(aleatoric, variances.mean(0), rtol=1e-5)
    np.testing.assert_allclose(epistemic, means.var(0), rtol=1e-5)
    np.testing.assert_allclose(total, variances.mean(0) + means.var(0), rtol=1e-5)
