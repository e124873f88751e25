"""Predictions against slow obvious twins: loops over draws, and scipy's densities."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.special
import scipy.stats

from ornstein.functions import PosteriorParts
from ornstein.functions._base import AbstractRandomFunction, Draw, draw_key, no_local_kl
from ornstein.likelihood import (
    AbstractLikelihood,
    Bernoulli,
    Categorical,
    Cauchy,
    CustomLikelihood,
    Gaussian,
    Laplace,
    StudentT,
)
from ornstein.prediction import Prediction, predict
from ornstein.prediction._predict import _block_sizes


class RandomLinear(AbstractRandomFunction):
    """x @ (weight + noise), one noise a draw; stratum i adds i."""

    weight: jax.Array
    shift: eqx.nn.StateIndex | None = None
    num_strata: int = 2
    num_members: int = 1
    on_trace: list | None = eqx.field(static=True, default=None)

    def __call__(self, x, *, key, index=None, state=None):
        if self.on_trace is not None:
            self.on_trace.append(x.shape)
        noise = jr.normal(draw_key(key, index), self.weight.shape)
        output = x @ (self.weight + noise)
        if index is not None:
            output = output + jnp.asarray(index % self.num_strata).astype(float)
        if state is not None and self.shift is not None:
            output = output + state.get(self.shift)
        return Draw(output=output, kl=jnp.zeros(()), local_kl=no_local_kl(x))

    def member(self, number: Any) -> AbstractRandomFunction:
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        return PosteriorParts()

    def labels(self):
        return jax.tree.map(lambda _: "weights", self)


class Fit(NamedTuple):
    model: AbstractRandomFunction
    likelihood: AbstractLikelihood
    state: eqx.nn.State | None = None


X = np.array(jr.normal(jr.key(0), (7, 3)))
WEIGHT = jr.normal(jr.key(1), (3, 2))
KEY = jr.key(2)


def draws_one_by_one(num_draws):
    model = RandomLinear(weight=WEIGHT)
    return np.stack(
        [model(jnp.asarray(X), key=KEY, index=i).output for i in range(num_draws)]
    )


@pytest.mark.parametrize(
    ("batch_size", "draws_at_once"), [(None, None), (3, 2), (1, 99), (7, 5)]
)
def test_draws_are_the_models(batch_size, draws_at_once):
    """Catches a key split by block, an index that restarts, and rows lost."""
    prediction = predict(
        Fit(RandomLinear(weight=WEIGHT), Gaussian(1.0)),
        X,
        key=KEY,
        num_draws=5,
        batch_size=batch_size,
        draws_at_once=draws_at_once,
    )
    np.testing.assert_allclose(
        np.asarray(prediction.outputs), draws_one_by_one(5), atol=1e-5
    )


def test_one_trace_for_all_blocks_and_calls():
    """Catches a last block of its own shape, and a jit made anew in each call."""
    traces = []
    fit = Fit(RandomLinear(weight=WEIGHT, on_trace=traces), Gaussian(1.0))
    for seed in (0, 1):
        predict(fit, X, key=jr.key(seed), num_draws=4, batch_size=3)
    assert traces == [(3, 3)]


@pytest.mark.parametrize("pad_rows", [True, False])
def test_rows_of_any_number(pad_rows):
    """Catches rows lost between full blocks and the last one, and padding kept."""
    for num_rows in (1, 63, 64, 65, 130, 300):
        x = np.array(jr.normal(jr.key(num_rows), (num_rows, 3)))
        prediction = predict(
            Fit(RandomLinear(weight=WEIGHT), Gaussian(1.0)),
            x,
            key=KEY,
            num_draws=2,
            batch_size=130,
            pad_rows=pad_rows,
        )
        noise = jr.normal(draw_key(KEY, 1), WEIGHT.shape)
        np.testing.assert_allclose(
            np.asarray(prediction.outputs[1]), x @ (WEIGHT + noise) + 1, atol=1e-5
        )


def test_blocks_that_devices_share_evenly():
    """Catches a last block larger than any size: 65 rows, 64 a block, three devices."""
    for num_rows, batch_size, multiple in ((65, 64, 3), (513, 512, 6), (1_000, 7, 4)):
        sizes = _block_sizes(
            num_rows, batch_size, pad_rows=True, is_vectors=True, multiple=multiple
        )
        assert sum(sizes) >= num_rows > sum(sizes[:-1])
        assert all(size % multiple == 0 for size in sizes)


def test_a_few_programs_for_any_number_of_rows():
    """Catches a program for each number of rows: of the network, or of a cut."""
    traces, compiled = [], []
    fit = Fit(RandomLinear(weight=WEIGHT, on_trace=traces), Gaussian(1.0))
    ask = lambda n: predict(fit, np.ones((n, 3)), key=KEY, num_draws=4)
    for num_rows in (64, 100, 200, 500, 1_000):
        ask(num_rows)
    assert traces == [(size, 3) for size in (64, 128, 256, 512, 1_000)]
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, _, **__: compiled.append(name) if "compile" in name else None
    )
    try:
        for num_rows in (1, 17, 63, 129, 257, 999, 1_001, 2_345):
            assert ask(num_rows).outputs.shape == (4, num_rows, 2)
    finally:
        jax.monitoring.clear_event_listeners()
    assert len(traces) == 5
    assert not compiled


def test_state_reaches_the_model():
    build = eqx.nn.make_with_state(
        lambda: RandomLinear(weight=WEIGHT, shift=eqx.nn.StateIndex(jnp.asarray(10.0)))
    )
    model, state = build()
    fit = Fit(model, Gaussian(1.0), state)
    prediction = predict(fit, X, key=KEY, num_draws=2)
    np.testing.assert_allclose(
        np.asarray(prediction.outputs), draws_one_by_one(2) + 10, rtol=1e-5
    )


@pytest.mark.parametrize("likelihood", [Categorical(), Bernoulli(), Laplace(0.5)])
def test_streaming_equals_kept_draws(likelihood):
    """Catches sums over the wrong axis, and padding rows among the real ones."""
    fit = Fit(RandomLinear(weight=WEIGHT), likelihood)
    kept = predict(fit, X, key=KEY, num_draws=6)
    streamed = predict(fit, X, key=KEY, num_draws=6, batch_size=3, keep_draws=False)
    assert streamed.outputs is None
    for name in ("mean", "aleatoric", "epistemic"):
        np.testing.assert_allclose(
            getattr(streamed, name), getattr(kept, name), rtol=1e-4, atol=1e-6
        )


OUTPUTS = jr.normal(jr.key(3), (6, 4, 3))


def test_classification():
    """Catches averaged logits, and an entropy of the mean in place of the mean's."""
    prediction = Prediction(OUTPUTS, Categorical())
    probs = np.exp(OUTPUTS) / np.exp(OUTPUTS).sum(-1, keepdims=True)
    mean = probs.mean(0)
    total = scipy.stats.entropy(mean, axis=-1)
    aleatoric = scipy.stats.entropy(probs, axis=-1).mean(0)
    y = np.array([0, 2, 1, 1])
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(prediction.probs, mean, rtol=1e-5)
    np.testing.assert_allclose(prediction.entropy, total, rtol=1e-5)
    np.testing.assert_allclose(prediction.aleatoric, aleatoric, rtol=1e-5)
    np.testing.assert_allclose(prediction.epistemic, total - aleatoric, rtol=1e-4)
    log_prob = np.log(mean[np.arange(4), y])
    np.testing.assert_allclose(prediction.log_prob(y), log_prob, rtol=1e-5)
    streamed = Prediction(None, Categorical(), summary=prediction.summary)
    np.testing.assert_allclose(streamed.log_prob(y), log_prob, rtol=1e-5)


def test_what_rounds_to_certain_has_a_log_prob_without_draws():
    """Catches (seen) infinite logits that NumPyro refuses."""
    sure = jnp.asarray([[[0.0, 110.0], [0.0, 1.0]]], jnp.float32)
    for likelihood, outputs, wrong in (
        (Categorical(), sure, np.array([0, 0])),
        (Bernoulli(), sure[..., 1:], np.array([0, 0])),
    ):
        kept = Prediction(outputs, likelihood)
        streamed = Prediction(None, likelihood, summary=kept.summary)
        found = streamed.log_prob(1 - wrong)
        np.testing.assert_allclose(found, kept.log_prob(1 - wrong), atol=1e-6)
        assert streamed.log_prob(wrong)[0] == -np.inf


def test_bernoulli_columns_are_dependent_through_the_draws():
    """Catches the product of averaged columns where the joint average belongs."""
    y = jnp.array([[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]])
    prediction = Prediction(OUTPUTS, Bernoulli())
    probs = 1 / (1 + np.exp(-OUTPUTS))
    likelihoods = np.where(y[None] == 1, probs, 1 - probs).prod(-1)
    np.testing.assert_allclose(
        prediction.log_prob(y), np.log(likelihoods.mean(0)), rtol=1e-5
    )
    streamed = Prediction(None, Bernoulli(), summary=prediction.summary)
    with pytest.raises(ValueError, match="keep_draws=True"):
        streamed.log_prob(y)


def test_gaussian_moments_add_up():
    """Catches a sample variance (n - 1), and a scale where its square belongs."""
    scales = jnp.array([0.5, 1.0, 3.0])
    prediction = Prediction(OUTPUTS, Gaussian(scales))
    np.testing.assert_allclose(prediction.epistemic, np.var(OUTPUTS, axis=0), rtol=1e-4)
    np.testing.assert_allclose(
        prediction.aleatoric, np.broadcast_to(scales**2, (4, 3)), rtol=1e-5
    )
    samples = jax.vmap(lambda key: prediction.sample(key=key))(jr.split(KEY, 20_000))
    variance = prediction.variance
    sampled = np.var(samples.reshape(-1, 4, 3), axis=0)
    # Standard error of a variance of about normal draws: variance * sqrt(2 / n).
    assert np.all(np.abs(sampled / variance - 1) < 4.5 * np.sqrt(2 / 120_000))


@pytest.mark.parametrize(
    ("likelihood", "standard"),
    [
        (Gaussian(0.3), scipy.stats.norm),
        (Laplace(0.3), scipy.stats.laplace),
        (Cauchy(0.3), scipy.stats.cauchy),
        (StudentT(1.5, 0.3), scipy.stats.t(1.5)),
    ],
)
def test_quantile_inverts_the_mixture(likelihood, standard):
    """Catches a mean of quantiles, and a bracket that ends before the tail."""
    for q in (1e-4, 0.05, 0.5, 0.999):
        quantile = np.asarray(Prediction(OUTPUTS, likelihood).quantile(q), np.float64)
        cdf = standard.cdf((quantile - np.asarray(OUTPUTS)) / 0.3).mean(0)
        np.testing.assert_allclose(cdf, q, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("apart", [1.0, 5_000.0])
def test_quantile_among_draws_that_are_far_apart(apart: float):
    """Three draws up to 10^7 scales apart: of the middle one, whose own quantile it is.
    Catches a bisection that ends early (30 and 20 for 50 seen).
    """
    scale = 1e-3
    outputs = jnp.asarray([-apart, 0.0, apart]).reshape(3, 1, 1)
    quantile = Prediction(outputs, Gaussian(scale)).quantile(0.4)
    exact = scale * scipy.stats.norm.ppf(3 * 0.4 - 1)
    np.testing.assert_allclose(quantile, exact, rtol=1e-3)


def test_cdf_is_the_mixtures():
    """Catches rows of `y` met with draws, and a vector not taken as one column."""
    y = np.array(jr.normal(jr.key(4), (4, 3)))
    expected = scipy.stats.laplace.cdf((y - np.asarray(OUTPUTS)) / 0.3).mean(0)
    prediction = Prediction(OUTPUTS, Laplace(0.3))
    np.testing.assert_allclose(prediction.cdf(y), expected, rtol=1e-4, atol=1e-6)
    single = Prediction(OUTPUTS[..., :1], Laplace(0.3))
    np.testing.assert_allclose(single.cdf(y[:, 0]), prediction.cdf(y)[:, :1], rtol=1e-5)


def test_median_interval_and_several_quantiles():
    prediction = Prediction(OUTPUTS, Cauchy(1.0))
    low, high = prediction.interval(0.5)
    quantiles = prediction.quantile([0.25, 0.5, 0.75])
    np.testing.assert_array_equal(quantiles, jnp.stack([low, prediction.median, high]))
    # One draw: the Cauchy quartiles are the location -+ the scale.
    single = Prediction(OUTPUTS[:1], Cauchy(2.0))
    np.testing.assert_allclose(single.interval(0.5)[1], OUTPUTS[0] + 2, rtol=1e-5)


def test_regression_log_prob_is_the_mixtures():
    """Catches a mean of log likelihoods where the log of a mean belongs."""
    y = np.array(jr.normal(jr.key(4), (4, 3)))
    density = scipy.stats.norm.pdf(y, np.asarray(OUTPUTS), 0.7).prod(-1).mean(0)
    actual = Prediction(OUTPUTS, Gaussian(0.7)).log_prob(y)
    np.testing.assert_allclose(actual, np.log(density), rtol=1e-5)


def test_interval_of_class_probabilities_is_over_draws():
    """Catches quantiles of logits, and an interval over rows."""
    logits = jr.normal(KEY, (41, 5, 3))
    low, high = Prediction(logits, Categorical()).interval(0.9)
    probs = scipy.special.softmax(np.asarray(logits, np.float64), axis=-1)
    np.testing.assert_allclose(low, np.quantile(probs, 0.05, axis=0), rtol=1e-5)
    np.testing.assert_allclose(high, np.quantile(probs, 0.95, axis=0), rtol=1e-5)


def test_custom_likelihood_has_draws_and_log_prob_only():
    prediction = Prediction(
        {"a": OUTPUTS},
        CustomLikelihood(lambda o, y: -jnp.sum(o["a"] ** 2, -1) * y[None]),
    )
    y = jnp.arange(4.0)
    log_probs = -np.sum(np.asarray(OUTPUTS) ** 2, -1) * np.arange(4)
    expected = np.log(np.exp(log_probs).mean(0))
    np.testing.assert_allclose(prediction.log_prob(y), expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"prediction\.outputs"):
        prediction.mean  # noqa: B018
    with pytest.raises(ValueError, match="needs a likelihood of real targets"):
        prediction.quantile(0.5)


@pytest.mark.parametrize("likelihood", [Cauchy(1.0), StudentT(2, 1.0)])
@pytest.mark.parametrize("name", ["aleatoric", "epistemic", "variance"])
def test_no_variance_no_split(likelihood, name):
    with pytest.raises(ValueError, match="no variance to split"):
        getattr(Prediction(OUTPUTS, likelihood), name)


def test_mean_exists_above_one_degree_of_freedom():
    mean = Prediction(OUTPUTS, StudentT(1.5, 1.0)).mean
    np.testing.assert_allclose(mean, OUTPUTS.mean(0), rtol=1e-5)
    for likelihood in (Cauchy(1.0), StudentT(1, 1.0)):
        with pytest.raises(ValueError, match="has no mean"):
            Prediction(OUTPUTS, likelihood).mean  # noqa: B018


@pytest.mark.parametrize("name", ["probs", "entropy"])
def test_classes_only(name):
    with pytest.raises(ValueError, match="needs a likelihood of classes"):
        getattr(Prediction(OUTPUTS, Gaussian(1.0)), name)


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, float("nan")])
def test_bad_levels(q):
    prediction = Prediction(OUTPUTS, Gaussian(1.0))
    with pytest.raises(ValueError, match="above 0 and below 1"):
        prediction.quantile(q)
    with pytest.raises(ValueError, match="above 0 and below 1"):
        prediction.interval(q)


def test_bad_calls():
    fit = Fit(RandomLinear(weight=WEIGHT), Cauchy(1.0))
    for x, match in [
        (X[:0], "at least 1"),
        (np.where(X > 1, np.nan, X), "NaN or infinite"),
        ({"a": X, "b": X[:3]}, r"\[3, 7\] rows"),
    ]:
        with pytest.raises(ValueError, match=match):
            predict(fit, x, key=KEY)
    for name in ("num_draws", "draws_at_once", "batch_size"):
        count: dict[str, Any] = {name: 0}
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1"):
            predict(fit, X, key=KEY, **count)
    with pytest.raises(ValueError, match="`Cauchy` has no mean"):
        predict(fit, X, key=KEY, keep_draws=False)
    streamed = predict(
        fit._replace(likelihood=Gaussian(1.0)), X, key=KEY, keep_draws=False
    )
    for call in (lambda: streamed.interval(0.9), lambda: streamed.sample(key=KEY)):
        with pytest.raises(ValueError, match="keep_draws=True"):
            call()
    with pytest.raises(ValueError, match="keep_draws=True"):
        streamed.log_prob(np.zeros((7, 2), np.float32))
