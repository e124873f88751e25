"""Rows that count more or less than one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.likelihood import Weighted, WeightedTargets
from ornstein.prediction import FittedModel


def test_log_prob_is_times_the_weight():
    base = orn.Gaussian(0.5)
    output, y = jnp.array([[0.0], [1.0]]), jnp.array([[0.3], [0.5]])
    weight = jnp.array([2.0, 0.0])
    found = Weighted(base).log_prob(output, WeightedTargets(y, weight))
    np.testing.assert_allclose(found, weight * base.log_prob(output, y))
    draws = Weighted(base).log_prob(output[None] + 1, WeightedTargets(y, weight))
    assert draws.shape == (1, 2)


@pytest.mark.parametrize("weight", [[-1.0, 1.0], [0.0, 0.0], [np.nan, 1.0]])
def test_wrong_weights_are_refused(weight):
    targets = WeightedTargets(np.zeros((2, 1)), np.array(weight))
    with pytest.raises(ValueError, match="Weights of rows run from"):
        Weighted(orn.Gaussian(1.0)).check_targets(targets, 1)


def test_a_learned_scale_stays_learned():
    labels = Weighted(orn.Gaussian(1.0, learn_scale=True)).labels()
    assert labels.base.log_scale == "weights"


class Line(eqx.Module):
    """Through zero."""

    slope: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.slope * x


@pytest.mark.parametrize("base", [orn.Gaussian(0.5), orn.Bernoulli()])
def test_the_base_predicts(base):
    """Seen failing: no mean and no interval of a fit with weights; and scores that had
    weights inside of the mean over draws."""
    model = orn.MeanField(Line(jnp.ones(1)), init_scale=0.1)
    x, y = np.ones((3, 1), np.float32), np.ones((3, 1), np.float32)
    predictions = [
        orn.predict(FittedModel(model, of), x, key=jr.key(0), num_draws=4)
        for of in (base, Weighted(base))
    ]
    alone, weighted = ((p.mean, *p.interval(0.9)) for p in predictions)
    np.testing.assert_array_equal(weighted, alone)
    assert orn.evaluate(predictions[1], y) == orn.evaluate(predictions[0], y)
    with pytest.raises(
        ValueError, match=r"count each row once.* give the targets alone"
    ):
        orn.evaluate(predictions[1], WeightedTargets(y, np.ones(3, np.float32)))
