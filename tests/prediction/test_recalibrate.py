"""Temperature scaling and isotonic regression against independent fits."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.isotonic import IsotonicRegression as OneClass

from ornstein.evaluation._evaluate import evaluate
from ornstein.likelihood import Bernoulli, Categorical, Gaussian
from ornstein.prediction import (
    Prediction,
    TemperatureScaling,
    isotonic_regression,
    temperature_scaling,
)


def classes(
    num_rows: int, *, temperature: float = 1.0, num_draws: int = 1, seed: int = 0
) -> tuple[Prediction, np.ndarray]:
    """Logits that are `temperature` times too large, in noisy draws, and classes."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((num_rows, 4))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(1).astype(np.int32)
    noise = 0.5 * rng.standard_normal((num_draws, num_rows, 4)) * (num_draws > 1)
    outputs = (temperature * (logits + noise)).astype(np.float32)
    return Prediction(jnp.asarray(outputs), Categorical()), y


def test_temperature_is_scipys_minimum():
    """Catches logits averaged in place of probabilities, and T for 1 / T."""
    prediction, y = classes(500, temperature=1.7, num_draws=5)
    log_probs = np.log(np.asarray(prediction.probs, np.float64))

    def nll(temperature: float) -> float:
        scaled = scipy.special.log_softmax(log_probs / temperature, axis=1)
        return -scaled[np.arange(500), y].mean()

    best = scipy.optimize.minimize_scalar(nll, bounds=(0.1, 10.0), method="bounded")
    scaling = temperature_scaling(prediction, y)
    assert float(scaling.temperature) == pytest.approx(best.x, rel=1e-3)
    found = scaling(prediction)
    np.testing.assert_allclose(-found.log_prob(y).mean(), best.fun, rtol=1e-5)
    np.testing.assert_allclose(found.epistemic, 0.0, atol=1e-6)


def test_planted_temperature_is_recovered():
    """4.5 standard errors of the maximum-likelihood estimate, from its curvature."""
    planted, num_rows = 2.5, 20_000
    prediction, y = classes(num_rows, temperature=planted)
    scaling = temperature_scaling(prediction, y)
    logits = np.asarray(prediction.outputs, np.float64)[0]
    probs = scipy.special.softmax(logits / planted, axis=1)
    mean = (probs * logits).sum(1)
    information = ((probs * logits**2).sum(1) - mean**2).sum()  # of 1 / T
    error = 1 / float(scaling.temperature) - 1 / planted
    assert abs(error) < 4.5 / np.sqrt(information)
    other, y = classes(2_000, temperature=planted, seed=1)
    assert evaluate(scaling(other), y)["ece"] < evaluate(other, y)["ece"] / 2


def test_temperature_of_bernoulli_columns():
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((3_000, 2))
    y = rng.random(logits.shape) < scipy.special.expit(logits)
    outputs = jnp.asarray(3 * logits[None], jnp.float32)
    scaling = temperature_scaling(Prediction(outputs, Bernoulli()), y)
    probs = scipy.special.expit(logits)
    information = (probs * (1 - probs) * (3 * logits) ** 2).sum()
    error = 1 / float(scaling.temperature) - 1 / 3
    assert abs(error) < 4.5 / np.sqrt(information)


def test_certain_rows_leave_temperature_finite():
    """A probability that rounds to 0 at the true class: its logit is held finite."""
    outputs = jnp.asarray([[[200.0, 0.0], *[[3.0, 0.0]] * 99]])
    prediction = Prediction(outputs, Categorical())
    scaling = temperature_scaling(prediction, np.eye(1, 100, dtype=np.int32)[0])
    assert 1 < scaling.temperature < 10
    assert np.all(np.isfinite(scaling(prediction).outputs))


def test_small_probabilities_are_scaled_as_they_are():
    """Log odds of 30 and more, halved. Catches probabilities clipped at 1e-7 before
    their logarithm is taken (seen): 30 becomes 16.
    """
    logits = np.array([[30.0, 0.0], [0.0, 50.0], [1.0, 0.0]], np.float32)
    half = TemperatureScaling(jnp.asarray(2.0))
    found = half(Prediction(jnp.asarray(logits[None]), Categorical()))
    expected = scipy.special.log_softmax(logits / 2, axis=1)
    for k in range(2):
        y = np.full(3, k, np.int32)
        np.testing.assert_allclose(
            found.log_prob(y), expected[:, k], rtol=1e-4, atol=1e-6
        )
    column = np.array([[-30.0], [-80.0], [0.5]], np.float32)
    for sign in (1, -1):  # of yes and of no alike (seen: 30 becomes 16.6)
        found = half(Prediction(jnp.asarray(sign * column[None]), Bernoulli()))
        np.testing.assert_allclose(found.outputs[0], sign * column / 2, rtol=1e-4)


@pytest.mark.parametrize("y", [[0, 1, 1], [1, 0, 0]], ids=["all right", "all wrong"])
def test_rows_without_a_best_temperature_are_refused(y):
    outputs = jnp.asarray([[[3.0, 0.0], [0.0, 1.0], [0.0, 2.0]]])
    with pytest.raises(ValueError, match="No temperature is best"):
        temperature_scaling(Prediction(outputs, Categorical()), np.array(y))


def test_isotonic_undoes_a_monotone_distortion():
    """Two classes, so that the true map is known: p -> p²."""
    rng = np.random.default_rng(0)
    num_rows = 20_000
    shown = rng.random(num_rows)
    y = (rng.random(num_rows) < shown**2).astype(np.int32)

    def predict(p: np.ndarray) -> Prediction:
        logits = np.log(np.stack([1 - p, p], axis=1))
        return Prediction(jnp.asarray(logits[None], jnp.float32), Categorical())

    regression = isotonic_regression(predict(shown), y)
    grid = np.linspace(0.05, 0.95, 19)
    found = np.asarray(regression(predict(grid)).probs)[:, 1]
    np.testing.assert_allclose(found, grid**2, atol=0.08)  # n^(-1/3), not n^(-1/2)
    assert np.all(np.diff(found) >= 0)


def test_isotonic_is_sklearns_one_against_the_rest():
    """Catches a class's own map used for another, and a missing renormalisation."""
    prediction, y = classes(400, temperature=2.0, num_draws=3)
    other, _ = classes(100, temperature=2.0, num_draws=3, seed=1)
    regression = isotonic_regression(prediction, y)
    train = np.asarray(prediction.probs, np.float64)
    test = np.asarray(other.probs, np.float64)
    columns = [
        OneClass(y_min=0, y_max=1, out_of_bounds="clip")
        .fit(train[:, k], y == k)
        .predict(test[:, k])
        for k in range(4)
    ]
    scores = np.stack(columns, axis=1)
    expected = scores / scores.sum(axis=1, keepdims=True)
    found = regression(other)
    np.testing.assert_allclose(found.probs, expected, atol=1e-5)
    np.testing.assert_allclose(found.epistemic, 0.0, atol=1e-6)
    assert np.all(np.isfinite(found.entropy))


def test_row_that_every_map_sends_to_zero_gets_equal_probabilities():
    outputs = jnp.log(
        jnp.asarray([[[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]])
    )
    prediction = Prediction(outputs, Categorical())
    regression = isotonic_regression(prediction, np.array([0, 1, 2]))
    third = Prediction(jnp.zeros((1, 1, 3)), Categorical())
    low = jnp.asarray([0.2, 0.3, 0.5])
    zeroed = type(regression)((low, low, low), (jnp.zeros(3),) * 3)
    np.testing.assert_allclose(zeroed(third).probs, 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(regression(prediction).probs, np.eye(3), atol=1e-6)


def test_other_likelihoods_are_refused():
    numbers = Prediction(jnp.zeros((2, 3, 1)), Gaussian(1.0))
    columns = Prediction(jnp.zeros((2, 3, 1)), Bernoulli())
    y = np.array([0, 1, 0])
    with pytest.raises(ValueError, match="Probabilities of classes.*`Gaussian`"):
        temperature_scaling(numbers, y)
    with pytest.raises(ValueError, match="one class against the rest.*`Bernoulli`"):
        isotonic_regression(columns, y)
    three, y3 = classes(40)
    two = Prediction(jnp.zeros((1, 3, 2)), Categorical())
    with pytest.raises(ValueError, match="of 4 classes and the prediction of 2"):
        isotonic_regression(three, y3)(two)
    with pytest.raises(ValueError, match="Class numbers run from"):
        temperature_scaling(two, np.array([0, 1, 5]))
