"""The dial, on a small SDE-BNN away from its prior.

Seen failing: paths that differ from step to step, evaluations of the old step.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X, away_from_prior, small_model

from ornstein.data import Split
from ornstein.evaluation._dial import common_step, dial
from ornstein.functions import Deterministic
from ornstein.likelihood import Gaussian
from ornstein.prediction import FittedModel, predict

SPLIT = Split(X, np.sin(X[:, :1]))


@pytest.fixture(scope="module")
def fitted() -> FittedModel:
    return FittedModel(away_from_prior(small_model()), Gaussian(0.5))


@pytest.fixture(scope="module")
def rows(fitted: FittedModel) -> list[dict]:
    key = jr.key(0)
    return dial(fitted, SPLIT, key=key, num_draws=4, dts=(0.5, 0.25, 0.1, 0.01))


def test_the_step_that_all_share():
    assert common_step((0.5, 0.2)) == pytest.approx(0.1)
    assert common_step((1.0, 1 / 3, 0.25)) == pytest.approx(1 / 12)
    assert common_step(()) is None


@pytest.mark.parametrize("dt", [0.3, 2.0, 0.0, -0.5])
def test_a_step_divides_depth(fitted, dt: float):
    with pytest.raises(ValueError, match="must divide depth"):
        dial(fitted, SPLIT, key=jr.key(0), num_draws=1, dts=(dt,))


def test_evaluations_are_those_of_each_step(rows):
    assert [row["num_drift_evaluations"] for row in rows] == [2, 4, 10, 100]


def test_predictions_converge_along_one_path(fitted, rows):
    """Other paths have other scores."""
    gaps = [abs(row["nll"] - rows[-1]["nll"]) for row in rows[:-1]]
    assert gaps[0] > gaps[2]
    other = dial(fitted, SPLIT, key=jr.key(1), num_draws=4, dts=(0.1,))
    assert abs(other[0]["nll"] - rows[-1]["nll"]) > 5 * gaps[2]


def test_its_own_step_is_its_own_prediction(fitted):
    """dt = 0.2, the model's own, with increments of one step each."""
    (row,) = dial(fitted, SPLIT, key=jr.key(2), num_draws=4, dts=(0.2,))
    prediction = predict(fitted, SPLIT.x, key=jr.key(2), num_draws=4)
    expected = -jnp.mean(prediction.log_prob(SPLIT.y))
    np.testing.assert_allclose(row["nll"], expected, rtol=1e-5)


@pytest.mark.slow
def test_tighter_tolerances_cost_more(fitted):
    rows = dial(fitted, SPLIT, key=jr.key(0), num_draws=2, rtols=(0.5, 0.01))
    costs = [row["num_drift_evaluations"] for row in rows]
    assert costs[0] < costs[1]


def test_a_model_without_a_solver():
    model = Deterministic(eqx.nn.MLP(2, 1, 2, 1, key=jax.random.key(0)))
    with pytest.raises(TypeError, match="which `Deterministic` has none of"):
        dial(
            FittedModel(model, Gaussian(1.0)),
            SPLIT,
            key=jr.key(0),
            num_draws=1,
            dts=(1.0,),
        )
