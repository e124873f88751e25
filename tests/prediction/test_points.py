"""Points that stand for a mixture of draws, against the mixture's own quantiles."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from ornstein.likelihood import Categorical, Cauchy, Gaussian, Laplace, StudentT
from ornstein.prediction import Prediction

LAWS = [
    (Gaussian, scipy.stats.norm),
    (Laplace, scipy.stats.laplace),
    (Cauchy, scipy.stats.cauchy),
    (lambda scale: StudentT(3.0, scale), scipy.stats.t(3)),
]


@pytest.mark.parametrize(("likelihood", "law"), LAWS)
def test_one_draw_gives_its_quantiles(likelihood, law):
    """Catches a scale that is left out, and a family's quantiles for another's."""
    locs = jnp.asarray([[[1.0], [-3.0]]])
    points = Prediction(locs, likelihood(0.5)).points(40)
    locs = np.asarray(locs)
    expected = locs + 0.5 * law.ppf((np.arange(40) + 0.5) / 40)[:, None, None]
    np.testing.assert_allclose(np.sort(points, axis=0), expected, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("spread", [0.0, 0.3, 5.0])
def test_draws_together_have_the_mixture_s_law(spread):
    """Catches draws that all begin at one level: a few quantiles over and over."""
    locs = spread * jr.normal(jr.key(0), (100, 3, 2))
    prediction = Prediction(locs, Gaussian(jnp.asarray([0.5, 2.0])))
    points = np.asarray(prediction.points(512))
    assert points.shape == (600, 3, 2)
    for level in (0.05, 0.3, 0.5, 0.9):
        share = np.mean(points <= np.asarray(prediction.quantile(level)), axis=0)
        np.testing.assert_allclose(share, level, atol=0.02)


def test_rows_are_those_that_are_asked_for():
    locs = jr.normal(jr.key(1), (4, 9, 1))
    prediction = Prediction(locs, Gaussian(1.0))
    some = prediction.points(8, rows=slice(None, None, 4))
    np.testing.assert_array_equal(some, prediction.points(8)[:, ::4])


def test_classes_have_none():
    with pytest.raises(ValueError, match="`points` needs a likelihood of real targets"):
        Prediction(jnp.zeros((2, 3, 4)), Categorical()).points(8)
