"""Quantiles of mixtures against SciPy's, row by row."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from ornstein.likelihood import Cauchy, Gaussian, Laplace, StudentT
from ornstein.prediction import Prediction

FAMILIES = [
    (Gaussian, scipy.stats.norm),
    (Laplace, scipy.stats.laplace),
    (Cauchy, scipy.stats.cauchy),
    (lambda scale: StudentT(4.0, scale), scipy.stats.t(4)),
    (lambda scale: StudentT(2.5, scale), scipy.stats.t(2.5)),
]


@pytest.mark.parametrize(("likelihood", "law"), FAMILIES)
def test_levels_that_single_precision_cannot_tell_from_0_or_1(likelihood, law):
    """Seen failing: an interval of 1 - 1e-9 that ended at 5.2 scales, not at 6.1."""
    prediction = Prediction(jnp.zeros((3, 1, 1)), likelihood(1.0))
    for level in (1 - 1e-7, 1 - 1e-9):
        with pytest.raises(ValueError, match=r"rounding error .* at most 1 - 1e-06\."):
            prediction.interval(level)
    for q in (1e-8, 1 - 1e-8):
        with pytest.raises(ValueError, match=r"rounding error .* from 4\.8e-07 to"):
            prediction.quantile([0.5, q])
    # To about an eighth of the probability that is left outside.
    for end in prediction.interval(0.999999):
        outside = law.sf(abs(float(end[0, 0])))
        assert outside == pytest.approx(5e-7, rel=0.25)


@pytest.mark.parametrize(("df", "q"), [(0.3, 4e-6), (0.3, 1 - 4e-6)])
def test_quantiles_that_are_very_far(df: float, q: float):
    """Seen failing: 1e-3 in place of -6e16, where 64 doublings do not reach."""
    prediction = Prediction(jnp.zeros((2, 1, 1)), StudentT(df, 2.0))
    expected = 2 * scipy.stats.t(df).ppf(np.float32(q))
    assert float(prediction.quantile(q)[0, 0]) == pytest.approx(expected, rel=0.05)


def test_quantiles_beyond_all_numbers_are_infinite():
    """Seen failing: numbers of the size of the scale, of either sign."""
    prediction = Prediction(jnp.array([[[0.0]], [[3.0]]]), StudentT(0.05, 1.0))
    low, high = prediction.interval(0.9)
    assert (float(low[0, 0]), float(high[0, 0])) == (-np.inf, np.inf)
    assert 0 < float(prediction.median[0, 0]) < 3


def test_draws_of_half_precision_have_intervals_of_single():
    """Seen failing: a TypeError of JAX's loop."""
    outputs = jr.normal(jr.key(0), (8, 3, 1)).astype(jnp.bfloat16)
    half = Prediction(outputs, Gaussian(1.0))
    whole = Prediction(outputs.astype(jnp.float32), Gaussian(1.0))
    np.testing.assert_array_equal(half.interval(0.9), whole.interval(0.9))
    np.testing.assert_array_equal(half.points(16), whole.points(16))


@pytest.mark.parametrize("num_rows", [1, 1024, 2500])
@pytest.mark.parametrize(("likelihood", "law"), FAMILIES)
def test_many_rows_have_the_quantiles_of_each(likelihood, law, num_rows: int):
    """Catches blocks that overlap, and a last one of other rows' quantiles."""
    locs = 3 * jr.normal(jr.key(0), (7, num_rows, 2))
    scale = np.array([0.3, 2.0], np.float32)
    prediction = Prediction(locs, likelihood(scale))
    for q in (0.001, 0.3, 0.95):
        found = np.asarray(prediction.quantile(q), np.float64)
        assert found.shape == (num_rows, 2)
        cdf = law.cdf((found - np.asarray(locs, np.float64)) / scale).mean(0)
        np.testing.assert_allclose(cdf, q, rtol=3e-4, atol=2e-6)


def test_a_row_s_quantile_depends_on_no_other():
    """Catches rows that go on for as long as the slowest beside them."""
    locs = jr.normal(jr.key(1), (5, 1500, 1)) * jnp.linspace(0, 50, 1500)[None, :, None]
    whole = Prediction(locs, Gaussian(0.1)).quantile(0.9)
    for start in (0, 700, 1400):
        some = Prediction(locs[:, start : start + 100], Gaussian(0.1)).quantile(0.9)
        near = {"rtol": 1e-6, "atol": 1e-6}
        np.testing.assert_allclose(some, whole[start : start + 100], **near)


def test_scales_of_each_draw_make_the_bracket():
    """Sampled scales, a thousand times apart. Catches a search that ends at once."""
    locs = jr.normal(jr.key(2), (6, 3, 1))
    scale = np.geomspace(0.01, 10, 6).astype(np.float32)[:, None, None]
    likelihood = eqx.tree_at(
        lambda it: it.log_scale, StudentT(3.0, 1.0), jnp.log(jnp.asarray(scale))
    )
    for q in (0.02, 0.7):
        found = np.asarray(Prediction(locs, likelihood).quantile(q), np.float64)
        cdf = scipy.stats.t(3).cdf((found - np.asarray(locs)) / scale).mean(0)
        np.testing.assert_allclose(cdf, q, rtol=1e-4)


def test_levels_may_be_an_array():
    """Catches (seen) an array that is asked whether it lies above 0."""
    prediction = Prediction(jr.normal(jr.key(3), (5, 4, 2)), Gaussian(0.3))
    several = prediction.quantile([0.1, 0.9])
    for levels in (np.array([0.1, 0.9]), jnp.array([0.1, 0.9])):
        np.testing.assert_allclose(prediction.quantile(levels), several, rtol=1e-5)
    for bad in (np.array([0.1, 1.0]), np.array([]), []):
        with pytest.raises(ValueError, match="above 0 and below 1, got"):
            prediction.quantile(bad)


def test_draws_that_agree_have_their_own_quantile():
    """A bracket without width, far from 0. Catches one that rounding leaves."""
    for loc in (0.0, 1e3, -1e6):
        locs = jnp.full((8, 2, 1), loc, jnp.float32)
        found = np.asarray(Prediction(locs, Gaussian(1.0)).quantile(0.975), np.float64)
        exact = loc + scipy.stats.norm.ppf(0.975)
        np.testing.assert_allclose(found, exact, rtol=3e-7, atol=2e-6)
