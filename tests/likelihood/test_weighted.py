"""Rows that count more or less than one."""

import jax.numpy as jnp
import numpy as np
import pytest

import ornstein as orn
from ornstein.likelihood import Weighted, WeightedTargets


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
