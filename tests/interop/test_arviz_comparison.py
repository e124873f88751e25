"""Log likelihoods and draws of targets for ArviZ's leave-one-out and comparisons."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from arviz_import import import_arviz
from scipy import stats

import ornstein as orn
from ornstein.functions import PosteriorSamples
from ornstein.interop import to_arviz
from ornstein.likelihood import CustomLikelihood, Weighted
from ornstein.nn import PerExample
from ornstein.prediction import FittedModel, Prediction

arviz = import_arviz()

NUM_ROWS, NOISE = 24, 0.5


def problem() -> tuple[np.ndarray, np.ndarray]:
    """A line with normal noise."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(NUM_ROWS, 1)).astype("float32")
    y = 1.2 * x[:, 0] - 0.3 + NOISE * rng.normal(size=NUM_ROWS)
    return x, y.astype("float32")


def with_ones(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones_like(x)], axis=1).astype(float)


def posterior(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of slope and offset with a standard normal prior: mean and covariance."""
    design = with_ones(x)
    covariance = np.linalg.inv(np.eye(2) + design.T @ design / NOISE**2)
    return covariance @ design.T @ y / NOISE**2, covariance


def exact_samples(x: np.ndarray, y: np.ndarray, num_samples: int = 500):
    """Independent draws of that posterior, as four chains."""
    mean, covariance = posterior(x, y)
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal(mean, covariance, size=(4, num_samples))
    drawn = drawn.astype("float32")
    linear = PerExample(eqx.nn.Linear(1, 1, key=jr.key(0)))
    params, network = eqx.partition(linear, eqx.is_inexact_array)
    where = lambda net: (net.module.weight, net.module.bias)
    params = eqx.tree_at(where, params, (drawn[..., :1, None], drawn[..., 1:]))
    info = {"energy": rng.normal(size=(4, num_samples))}
    return PosteriorSamples(network, orn.Gaussian(NOISE), (params, None), info=info)


def leave_one_out(x: np.ndarray, y: np.ndarray) -> float:
    """The sum of log p(y_i | the other rows), each posterior solved anew."""
    total = 0.0
    for i in range(len(y)):
        mean, covariance = posterior(np.delete(x, i, 0), np.delete(y, i))
        row = with_ones(x)[i]
        variance = NOISE**2 + row @ covariance @ row
        total += float(stats.norm.logpdf(y[i], row @ mean, np.sqrt(variance)))
    return total


def scaled_samples() -> PosteriorSamples:
    """Sample (c, s) has its own weights and scales of two outputs."""
    linear = PerExample(eqx.nn.Linear(1, 2, key=jr.key(0)))
    params, network = eqx.partition(linear, eqx.is_inexact_array)
    rng = np.random.default_rng(1)
    draw = lambda a: rng.normal(size=(3, 5, *a.shape)).astype("float32")
    noise = orn.Gaussian(np.ones(2), learn_scale=True)
    scale, fixed = eqx.partition(noise, eqx.is_array)
    return PosteriorSamples(
        network, fixed, jax.tree.map(draw, (params, scale)), info={}
    )


def test_log_likelihood_is_the_density_of_each_chains_own_sample():
    """Catches draws in the order of `predict` rather than of chains, and one scale."""
    samples, x = scaled_samples(), problem()[0]
    y = np.random.default_rng(2).normal(size=(NUM_ROWS, 2)).astype("float32")
    data = to_arviz(samples, x=x, y=y, key=jr.key(5))
    weight, bias, log_scale = jax.tree.leaves(samples.positions)
    mean = np.einsum("csoi,ri->csro", weight, x) + bias[:, :, None]
    density = stats.norm.logpdf(y, mean, np.exp(log_scale)[:, :, None]).sum(-1)
    np.testing.assert_allclose(data.log_likelihood["y"], density, rtol=1e-4, atol=1e-4)
    assert data.log_likelihood["y"].dims == ("chain", "draw", "row")
    np.testing.assert_allclose(data.posterior["function"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(data.observed_data["y"], y)
    np.testing.assert_array_equal(data.constant_data["x"], x)
    drawn = data.posterior_predictive["y"]
    assert drawn.dims == ("chain", "draw", "row", "output")
    scores = (drawn - mean) / np.exp(log_scale)[:, :, None]
    assert abs(stats.kstest(np.ravel(scores), "norm").statistic) < 0.08  # 720 values


# ArviZ 0.23 sorts a table in a way that pandas 3.1 would have otherwise.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_leave_one_out_is_that_of_refits_and_ranks_the_line_first():
    """Catches rows summed or averaged over, and units other than nats.

    By hand: the posterior of a line without each row, in closed form.
    """
    x, y = problem()
    line = to_arviz(exact_samples(x, y), x=x, y=y)
    flat = to_arviz(exact_samples(0 * x, y), x=0 * x, y=y)
    found = arviz.loo(line)
    assert abs(found.elpd_loo - leave_one_out(x, y)) < 0.05  # found: 0.005
    waic = arviz.waic(line, scale="log")
    assert abs(waic.elpd_waic - leave_one_out(x, y)) < 0.1
    ranked = arviz.compare({"flat": flat, "line": line})
    assert list(ranked.index) == ["line", "flat"]
    gap = leave_one_out(x, y) - leave_one_out(0 * x, y)
    assert abs(ranked.loc["flat", "elpd_diff"] - gap) < 0.3


def test_the_calibration_of_left_out_rows_is_plotted_from_it():
    """Catches columns that observed, drawn and log likelihood do not share."""
    x, y = problem()
    data = to_arviz(exact_samples(x, y, 100), x=x, y=y[:, None], key=jr.key(0))
    pit = arviz.loo_pit(data, y="y")
    assert pit.shape == (NUM_ROWS,)
    assert stats.kstest(pit, "uniform").pvalue > 1e-3


def test_variational_draws_are_one_chain():
    """Catches draws that differ between a fit's groups, and a prediction's from it."""
    x, y = problem()
    network = PerExample(eqx.nn.Linear(1, 1, key=jr.key(0)))
    model = orn.MeanField(network, init_scale=0.1)
    fit = FittedModel(model, orn.Gaussian(NOISE))
    data = to_arviz(fit, x=x, y=y, num_draws=7, key=jr.key(1))
    function = data.posterior["function"].to_numpy()
    assert function.shape == (1, 7, NUM_ROWS, 1)
    assert function.std(axis=1).min() > 0
    density = stats.norm.logpdf(y, function[..., 0], NOISE)
    np.testing.assert_allclose(data.log_likelihood["y"], density, rtol=1e-4, atol=1e-4)
    assert data.posterior_predictive["y"].shape == (1, 7, NUM_ROWS)
    prediction = Prediction(jnp.asarray(function[0]), fit.likelihood)
    again = to_arviz(prediction, y=y)
    np.testing.assert_allclose(again.log_likelihood["y"], density, rtol=1e-4, atol=1e-4)
    assert not hasattr(again, "posterior_predictive")


def test_classes_are_drawn_and_judged_as_numbers():
    """Catches logits in place of probabilities, and targets of another class."""
    logits = np.log([[[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.1, 0.9]]])
    prediction = Prediction(jnp.asarray(logits, jnp.float32), orn.Categorical())
    data = to_arviz(prediction, y=np.array([0, 1]), key=jr.key(0))
    expected = np.log([[[0.8, 0.7], [0.5, 0.9]]])
    np.testing.assert_allclose(data.log_likelihood["y"], expected, rtol=1e-5)
    np.testing.assert_allclose(
        data.posterior["function"], np.exp(logits)[None], rtol=1e-5
    )
    assert data.posterior_predictive["y"].shape == (1, 2, 2)
    assert set(np.ravel(data.posterior_predictive["y"])) <= {0, 1}


def test_a_likelihood_of_ones_own_has_no_drawn_targets():
    log_prob = lambda output, y: -jnp.abs(output[..., 0] - y[None])
    prediction = Prediction(jnp.ones((3, 2, 1)), CustomLikelihood(log_prob))
    data = to_arviz(prediction, y=np.array([1.0, 3.0], "float32"), key=jr.key(0))
    np.testing.assert_allclose(data.log_likelihood["y"], [[[0, -2]] * 3])
    assert not hasattr(data, "posterior_predictive")


SAMPLES = scaled_samples()
TWO_ROWS = Prediction(jnp.ones((3, 2, 1)), orn.Gaussian(1.0))
FIT = FittedModel(
    orn.Deterministic(PerExample(eqx.nn.Linear(1, 1, key=jr.key(0)))), orn.Gaussian(1.0)
)
X, Y = np.ones((2, 1), "float32"), np.ones(2, "float32")


@pytest.mark.parametrize(
    ("fit", "options", "message"),
    [
        (SAMPLES, {"y": Y}, "`y` is for rows: give their inputs"),
        (SAMPLES, {"key": jr.key(0)}, "`key` is for rows"),
        (SAMPLES, {"x": X, "y": Y}, "give targets of shape"),
        (SAMPLES, {"x": X, "num_draws": 3}, "has its own draws"),
        (FIT, {"y": Y, "key": jr.key(0)}, "need rows.*give `x`"),
        (FIT, {"x": X, "y": Y[:1], "key": jr.key(0)}, "1 targets for 2 rows"),
        (TWO_ROWS, {"y": np.array([0, 1])}, "needs floating-point"),
        (TWO_ROWS, {"y": Y, "x": X[:1]}, r"`x` of \[1\] rows for a prediction of 2"),
        (Prediction(None, orn.Gaussian(1.0)), {"y": Y}, "keep_draws=True"),
        (
            Prediction(jnp.ones((3, 2, 1)), Weighted(orn.Gaussian(1.0))),
            {"y": Y},
            "without weights",
        ),
        (
            Prediction(jnp.ones((3, 2, 4, 1)), orn.OverTime(orn.Gaussian(1.0))),
            {"y": Y},
            "one row at a time",
        ),
    ],
)
def test_what_has_no_rows_to_leave_out_is_refused(fit, options, message):
    """Catches targets of other rows, which a log likelihood would broadcast."""
    with pytest.raises(ValueError, match=message):
        to_arviz(fit, **options)


@pytest.mark.parametrize(
    ("fit", "options", "message"),
    [
        (FIT.model, {"x": X, "key": jr.key(0)}, "`fit` must be what"),
        (FIT, {"x": X}, "`key` must be a key, got NoneType"),
        (TWO_ROWS, {"y": [1.0, 2.0]}, "`y` must be an array"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_arguments_of_another_type_are_refused(fit, options, message):
    with pytest.raises(TypeError, match=message):
        to_arviz(fit, **options)
