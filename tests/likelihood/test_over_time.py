"""A likelihood of series against scipy's densities, summed over what was observed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

import ornstein as orn
from ornstein.likelihood import of_one_value

SCALES = np.array([0.5, 2.0], np.float32)
REAL = [
    (orn.Gaussian(SCALES), scipy.stats.norm()),
    (orn.Laplace(SCALES), scipy.stats.laplace()),
    (orn.Cauchy(SCALES), scipy.stats.cauchy()),
    (orn.StudentT(3, SCALES), scipy.stats.t(3)),
]
TIMES = np.arange(4.0)
OUTPUT = np.array(jr.normal(jr.key(0), (5, 3, 4, 2)))
MASK = np.array(jr.bernoulli(jr.key(2), 0.6, (3, 4, 2))) | (np.arange(2) == 0)
VALUES = np.array(3 * jr.normal(jr.key(1), (3, 4, 2)))
SERIES = orn.Series.of(TIMES, VALUES, MASK)


@pytest.mark.parametrize(("likelihood", "standard"), REAL)
def test_log_prob_sums_over_what_was_observed(likelihood, standard):
    """For every draw and row. (A mask left out, and a mean over times, are seen.)"""
    z = (VALUES - OUTPUT) / SCALES
    each = standard.logpdf(z) - np.log(SCALES)
    expected = np.sum(np.where(MASK, each, 0), axis=(-2, -1))
    actual = eqx.filter_jit(orn.OverTime(likelihood).log_prob)(
        jnp.asarray(OUTPUT), SERIES
    )
    np.testing.assert_allclose(actual, expected, rtol=2e-5)


def test_what_is_missing_does_not_matter():
    """Even NaN, in value and in gradient of output and scale."""
    likelihood = orn.OverTime(orn.Gaussian(SCALES, learn_scale=True))
    spoilt = orn.Series(SERIES.ts, np.where(MASK, VALUES, np.nan), MASK)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def total(parts, y):
        likelihood, output = parts
        return jnp.sum(likelihood.log_prob(output, y))

    parts = (likelihood, jnp.asarray(OUTPUT))
    clean, found = total(parts, SERIES), total(parts, spoilt)
    assert eqx.tree_equal(clean, found)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(clean))
    assert np.all(np.asarray(clean[1][1])[:, ~MASK] == 0)


def test_distribution_is_of_whole_series():
    """Samples of all times and outputs, whose log density is that of the parts."""
    likelihood = orn.OverTime(orn.Gaussian(SCALES))
    distribution = likelihood.distribution(jnp.asarray(OUTPUT))
    assert distribution.batch_shape == (5, 3)
    assert distribution.event_shape == (4, 2)
    sample = distribution.sample(jr.key(3))
    z = (np.asarray(sample) - OUTPUT) / SCALES
    expected = np.sum(scipy.stats.norm.logpdf(z) - np.log(SCALES), axis=(-2, -1))
    np.testing.assert_allclose(distribution.log_prob(sample), expected, rtol=2e-5)


def test_labels_are_those_of_the_likelihood_inside():
    labels = lambda learn: orn.OverTime(orn.Laplace(0.1, learn_scale=learn)).labels()
    assert labels(True).likelihood.log_scale == "weights"
    assert labels(False).likelihood.log_scale == "frozen"


def test_the_likelihood_of_one_value():
    inside = orn.Gaussian(0.1)
    assert of_one_value(orn.OverTime(inside)) is inside
    assert of_one_value(inside) is inside


def test_targets_are_a_series_with_a_feature_for_each_output():
    likelihood = orn.OverTime(orn.Gaussian(0.1))
    likelihood.check_targets(SERIES, 2)
    with pytest.raises(
        ValueError, match=r"targets of type ndarray, but needs a `Series"
    ):
        likelihood.check_targets(VALUES, 2)
    with pytest.raises(ValueError, match="network with 3 outputs"):
        likelihood.check_targets(SERIES, 3)
    scales = orn.OverTime(orn.Gaussian(np.ones(3, np.float32)))
    with pytest.raises(ValueError, match=r"scale of shape \(3,\)"):
        scales.check_targets(SERIES, 2)
    with pytest.raises(ValueError, match="targets of shape .* for an output of shape"):
        likelihood.log_prob(jnp.asarray(OUTPUT[:, :, :3]), SERIES)


def test_only_real_targets_have_a_place_in_time():
    inside = lambda likelihood: likelihood.likelihood
    wrong = eqx.tree_at(inside, orn.OverTime(orn.Gaussian(1.0)), orn.Categorical())
    with pytest.raises(TypeError, match="likelihood of real targets, got Categorical"):
        wrong.__check_init__()
