"""How good a prediction of series is: by hand, and where the truth is known."""

import math
import sys

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import ornstein as orn
from ornstein.evaluation import nll_gain
from ornstein.likelihood import OverTime
from ornstein.prediction import Prediction

# Two draws of two series with two times and two features; noise of variance 1.
OUTPUTS = np.zeros((2, 2, 2, 2), np.float32)
OUTPUTS[1] = 2.0
Y = orn.Series.of(
    np.array([0.0, 1.0]),
    np.array([[[0.0, 2.0], [2.0, np.nan]], [[1.0, np.nan], [np.nan, np.nan]]]),
)
LIKELIHOOD = OverTime(orn.Gaussian(1.0))


def phi(z: float) -> float:
    return math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


# A value of 0 or 2 is met by one draw and missed by 2; one of 1 is missed by 1 twice.
END, MIDDLE = math.log((phi(0) + phi(2)) / 2), math.log(phi(1))


def test_nll_is_of_values_and_joint_nll_of_series():
    """By hand. Catches paths' densities averaged in place of values' (the joint one),
    a mean of series' means, a mask left out, and an error over values or of the joint.
    """
    prediction = Prediction(jnp.asarray(OUTPUTS), LIKELIHOOD)
    scores = orn.evaluate(prediction, Y)
    nll = -(3 * END + MIDDLE) / 4
    assert scores["nll"] == pytest.approx(nll, rel=1e-5)
    path_1 = math.log((phi(0) * phi(2) ** 2 + phi(2) * phi(0) ** 2) / 2)
    assert scores["joint_nll"] == pytest.approx(-(path_1 + MIDDLE) / 2, rel=1e-5)
    # Residuals t_i + nll n_i add up to 0: (3 END + 3 nll), and its opposite.
    residual = 3 * END + 3 * nll
    error = math.sqrt(2 * residual**2 / 2) / 2
    assert scores["nll_se"] == pytest.approx(error, rel=1e-4)
    values = np.asarray(prediction.value_log_prob(Y))
    expected = [[[END, END], [END, 0]], [[MIDDLE, 0], [0, 0]]]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    spoilt = orn.Series(Y.ts, np.where(Y.mask, Y.values, np.nan), Y.mask)
    np.testing.assert_array_equal(prediction.value_log_prob(spoilt), values)


def test_values_of_rows_without_times():
    """Every column by itself. Catches columns summed before draws are averaged."""
    y = np.array([[0.3, -1.0], [2.0, 0.5]], np.float32)
    outputs = OUTPUTS[:, :, 0]
    density = scipy.stats.norm.pdf(y, outputs, 0.7).mean(axis=0)
    prediction = Prediction(jnp.asarray(outputs), orn.Gaussian(0.7))
    np.testing.assert_allclose(prediction.value_log_prob(y), np.log(density), rtol=1e-5)
    with pytest.raises(ValueError, match="real targets, got `Categorical`"):
        Prediction(jnp.asarray(outputs), orn.Categorical()).value_log_prob(y)


def test_streamed_series_have_no_nll():
    """A mean over draws of densities needs the draws."""
    kept = Prediction(jnp.asarray(OUTPUTS), LIKELIHOOD)
    streamed = Prediction(None, LIKELIHOOD, summary=kept.summary)
    for ask in (streamed.value_log_prob, streamed.row_scores, streamed.log_prob):
        with pytest.raises(ValueError, match="with `keep_draws=True`"):
            ask(Y)


def test_strangeness_of_series_is_the_width_over_all_times():
    """Wider bands at one time of one feature. Catches (seen) an error of NumPy's."""
    inside = np.zeros((2, 3, 2, 2), np.float32)
    outside = np.zeros((2, 4, 2, 2), np.float32)
    outside[1, :, 1, 1] = 5.0
    found = orn.evaluate_ood(
        *(Prediction(jnp.asarray(draws), LIKELIHOOD) for draws in (inside, outside))
    )
    assert found == {"auroc": 1.0, "aupr": 1.0, "fpr95": 0.0}


def test_gain_is_of_values():
    """Catches a gain of whole series, nats a row."""
    ours = Prediction(jnp.asarray(OUTPUTS), LIKELIHOOD)
    other = Prediction(jnp.asarray(OUTPUTS[:1]), LIKELIHOOD)
    gain, gain_se = nll_gain(ours, other, Y)
    nll = [orn.evaluate(p, Y)["nll"] for p in (other, ours)]
    assert gain == pytest.approx(nll[0] - nll[1], rel=1e-5)
    differences = np.array([3 * END - sum(map(log_phi, (0, 2, 2))), 0.0])
    residuals = differences - gain * np.array([3, 1])
    error = math.sqrt(np.sum(residuals**2) / 2) / 2
    assert gain_se == pytest.approx(error, rel=1e-4)


def log_phi(z: float) -> float:
    return math.log(phi(z))


RATE, NOISE = 5.0, 0.2
NUM_SERIES, NUM_DRAWS, TS = 40, 200, np.linspace(0.0, 4.0, 40)


def paths(level: np.ndarray, *, seed: int) -> np.ndarray:
    """Stationary ones of variance 1 about each level, by their exact transitions."""
    rng = np.random.default_rng(seed)
    decay = math.exp(-RATE * TS[1])
    z = [rng.standard_normal(level.shape)]
    for _ in TS[1:]:
        step = math.sqrt(1 - decay**2) * rng.standard_normal(level.shape)
        z.append(decay * z[-1] + step)
    return (level[..., None] + np.stack(z, axis=-1))[..., None]


def test_the_true_law_is_better_than_a_constant(monkeypatch: pytest.MonkeyPatch):
    """An Ornstein-Uhlenbeck process about a level that is known of each series: so is
    its density of a value. By the best of 200 draws the code before ranked the constant
    first: its `nll` was `joint_nll`, 10.8 and 1.9 a value.
    """
    monkeypatch.setattr(
        sys.modules["ornstein.evaluation._evaluate"], "_NUM_CRPS_POINTS", 1
    )
    level = 1.5 * np.random.default_rng(0).standard_normal(NUM_SERIES)
    z = paths(level, seed=1)
    y = z + NOISE * np.random.default_rng(2).standard_normal(z.shape)
    draws = paths(np.broadcast_to(level, (NUM_DRAWS, NUM_SERIES)), seed=3)
    asked = orn.Series.of(TS, y)
    truth = Prediction(jnp.asarray(draws, jnp.float32), OverTime(orn.Gaussian(NOISE)))
    scores = orn.evaluate(truth, asked)

    residual = y - level[:, None, None]
    log_density = scipy.stats.norm.logpdf(residual, 0, math.sqrt(1 + NOISE**2))
    # The mean of N(y; z, r^2)^2, by which S draws fall short of the density's log.
    square = scipy.stats.norm.pdf(residual, 0, math.sqrt(1 + NOISE**2 / 2))
    square = square / (2 * math.sqrt(math.pi) * NOISE)
    short = (square / np.exp(2 * log_density) - 1) / (2 * NUM_DRAWS)
    expected = np.mean(short - log_density)
    # Its deviation is at most that of whole series: the square root of 2 short / N.
    deviation = math.sqrt(2 * np.mean(short) / NUM_SERIES)
    assert abs(scores["nll"] - expected) < 4.5 * deviation < 0.2
    of_series = np.asarray(truth.value_log_prob(asked), np.float64).mean((1, 2))
    assert scores["nll_se"] == pytest.approx(scipy.stats.sem(of_series), rel=1e-4)

    middle = jnp.full((1, *y.shape), y.mean(), jnp.float32)
    constant = OverTime(orn.Gaussian(float(y.std())))
    guessed = orn.evaluate(Prediction(middle, constant), asked)
    entropy = math.log(y.std()) + (1 + math.log(2 * math.pi)) / 2
    assert guessed["nll"] == pytest.approx(entropy, rel=1e-4)
    assert scores["nll"] < guessed["nll"] - 0.3
    assert scores["joint_nll"] > 3 * guessed["joint_nll"]  # why it is no headline
