"""The table of scores against the same numbers worked out draw by draw."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from ornstein.evaluation._evaluate import component_diversity, evaluate, evaluate_ood
from ornstein.likelihood import (
    Bernoulli,
    Categorical,
    Cauchy,
    CustomLikelihood,
    Gaussian,
)
from ornstein.prediction import Prediction

OUTPUTS = jr.normal(jr.key(0), (8, 50, 3))
CLASSES = np.asarray(jr.randint(jr.key(1), (50,), 0, 3))


def test_classification():
    """Catches a score of the first draw, or of averaged logits."""
    scores = evaluate(Prediction(OUTPUTS, Categorical()), CLASSES)
    probs = np.exp(OUTPUTS) / np.exp(OUTPUTS).sum(-1, keepdims=True)
    mean = probs.mean(0)
    nll = -np.log(mean[np.arange(50), CLASSES])
    total = scipy.stats.entropy(mean, axis=-1).mean()
    aleatoric = scipy.stats.entropy(probs, axis=-1).mean()
    expected = {
        "accuracy": np.mean(mean.argmax(1) == CLASSES),
        "nll": nll.mean(),
        "nll_se": scipy.stats.sem(nll),
        "brier": np.mean(np.sum((mean - np.eye(3)[CLASSES]) ** 2, axis=1)),
        "entropy": total,
        "aleatoric": aleatoric,
        "epistemic": total - aleatoric,
        "epistemic_share": (total - aleatoric) / total,
        "nll_errors": nll[mean.argmax(1) != CLASSES].mean(),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(scores[name], value, rtol=1e-4, err_msg=name)
    assert set(scores) == {
        *expected,
        "ece",
        "adaptive_ece",
        "classwise_ece",
        "max_calibration_error",
        "aurc",
    }
    assert all(type(score) is float for score in scores.values())


def test_best_guesses_of_many_classes():
    """Top 3 of more than 3 classes, top 5 of more than 10. Catches 5 for 3."""
    logits = jr.normal(jr.key(3), (2, 50, 12))
    y = np.asarray(jr.randint(jr.key(4), (50,), 0, 12))
    scores = evaluate(Prediction(logits, Categorical()), y)
    mean = np.asarray(jax.nn.softmax(logits, axis=-1)).mean(0)
    ranks = (mean > mean[np.arange(50), y][:, None]).sum(1)
    np.testing.assert_allclose(scores["top_3_accuracy"], np.mean(ranks < 3), rtol=1e-6)
    np.testing.assert_allclose(scores["top_5_accuracy"], np.mean(ranks < 5), rtol=1e-6)
    assert scores["top_3_accuracy"] < scores["top_5_accuracy"]
    fewer = evaluate(Prediction(logits[..., :10], Categorical()), np.minimum(y, 9))
    assert "top_3_accuracy" in fewer
    assert "top_5_accuracy" not in fewer


def test_no_errors_have_no_nll():
    """Catches the mean of no rows: NaN, and a warning."""
    y = np.argmax(OUTPUTS[0], axis=1)
    assert "nll_errors" not in evaluate(Prediction(OUTPUTS[:1], Categorical()), y)


@pytest.mark.parametrize("likelihood", [Categorical(), Bernoulli()])
def test_component_diversity(likelihood):
    """Draw i is of stratum i mod 4. Catches draws compared one by one, or dealt out
    in blocks.
    """
    found = component_diversity(Prediction(OUTPUTS, likelihood), 4)
    outputs = np.asarray(OUTPUTS, np.float64)
    if isinstance(likelihood, Bernoulli):
        ones = 1 / (1 + np.exp(-outputs))
        probs = np.stack([1 - ones, ones], -1).reshape(8, -1, 2)
    else:
        probs = np.exp(outputs) / np.exp(outputs).sum(-1, keepdims=True)
    strata = [(probs[k] + probs[k + 4]) / 2 for k in range(4)]
    pairs = list(itertools.permutations(strata, 2))
    expected = {
        "disagreement": np.mean([p.argmax(-1) != q.argmax(-1) for p, q in pairs]),
        "pairwise_kl": np.mean([scipy.stats.entropy(p, q, axis=-1) for p, q in pairs]),
    }
    assert found == pytest.approx(expected, rel=1e-4)


def test_strata_that_cannot_be_compared():
    with pytest.raises(ValueError, match="8 draws cannot be shared equally by 3"):
        component_diversity(Prediction(OUTPUTS, Categorical()), 3)
    with pytest.raises(ValueError, match="this `Gaussian` prediction has none"):
        component_diversity(Prediction(OUTPUTS, Gaussian(0.1)), 2)


def test_streamed_prediction_has_the_same_scores():
    kept = Prediction(OUTPUTS, Categorical())
    streamed = Prediction(None, Categorical(), summary=kept.summary)
    assert evaluate(streamed, CLASSES) == pytest.approx(evaluate(kept, CLASSES))


def test_bernoulli_columns():
    """Catches yes-or-no probabilities read as those of several classes."""
    y = np.asarray(OUTPUTS[0] > 0.3)
    scores = evaluate(Prediction(OUTPUTS, Bernoulli()), y)
    probs = (1 / (1 + np.exp(-np.asarray(OUTPUTS)))).mean(0)
    np.testing.assert_allclose(scores["accuracy"], np.mean((probs > 0.5) == y))
    np.testing.assert_allclose(
        scores["brier"], 2 * np.mean((probs - y) ** 2), rtol=1e-5
    )


def test_gaussian():
    """Catches noise left out of intervals, and a CRPS of means alone.

    One draw, so that the predictive distribution is normal.
    """
    loc = np.asarray(OUTPUTS[0, :, :1])
    y = loc[:, 0] + 0.5 * np.asarray(jr.normal(jr.key(2), (50,)))
    scores = evaluate(Prediction(jnp.asarray(loc)[None], Gaussian(0.5)), y)
    z = (y - loc[:, 0]) / 0.5
    crps = z * (2 * scipy.stats.norm.cdf(z) - 1) + 2 * scipy.stats.norm.pdf(z)
    expected = {
        "nll": -scipy.stats.norm.logpdf(z).mean() + np.log(0.5),
        "rmse": np.sqrt(np.mean((y - loc[:, 0]) ** 2)),
        "crps": 0.5 * np.mean(crps - 1 / np.sqrt(np.pi)),
        "coverage_90": np.mean(np.abs(z) < scipy.stats.norm.ppf(0.95)),
        "aleatoric": 0.25,
        "epistemic": 0.0,
        "epistemic_share": 0.0,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(
            scores[name], value, rtol=2e-3, atol=1e-6, err_msg=name
        )
    assert set(scores) == {*expected, "nll_se", "calibration_error"}


def test_crps_of_many_rows_is_that_of_some(monkeypatch):
    """Catches the first rows alone, guesses compared with other rows' targets, and
    (seen) rows evenly spaced, which may be of one hour of each day.
    """
    y = np.asarray(OUTPUTS[0, :, 0]) + np.linspace(0, 5, 50)
    whole = Prediction(OUTPUTS[:, :, :1], Gaussian(0.5))
    rows = np.sort(np.random.default_rng(0).choice(np.arange(50), 17, replace=False))
    some = Prediction(OUTPUTS[:, rows, :1], Gaussian(0.5))
    expected = evaluate(some, y[rows])["crps"]
    assert evaluate(whole, y)["crps"] != pytest.approx(expected)
    monkeypatch.setattr("ornstein.evaluation._evaluate._MOST_CRPS_ROWS", 17)
    scores = evaluate(whole, y)
    assert scores["crps"] == pytest.approx(expected)
    assert len(set(np.diff(rows))) > 2
    assert scores["rmse"] != pytest.approx(evaluate(some, y[rows])["rmse"])
    monkeypatch.setattr("ornstein.evaluation._evaluate._MOST_CRPS_NUMBERS", 5 * 512)
    assert evaluate(whole, y)["crps"] == pytest.approx(expected)  # five rows at a time


def test_cauchy_has_no_variance_but_the_rest():
    """Catches a mean or a variance reported where there is none."""
    y = np.asarray(OUTPUTS[0])
    scores = evaluate(Prediction(OUTPUTS[:1], Cauchy(1.0)), y)
    np.testing.assert_allclose(scores["rmse"], 0, atol=1e-5)  # of the medians
    np.testing.assert_allclose(scores["nll"], 3 * np.log(np.pi), rtol=1e-5)
    assert not {"aleatoric", "epistemic", "epistemic_share"} & set(scores)


def test_custom_has_a_likelihood_only():
    likelihood = CustomLikelihood(lambda output, y: -jnp.sum(output, -1) * y[None])
    scores = evaluate(Prediction(OUTPUTS[:1], likelihood), np.ones(50, np.float32))
    assert set(scores) == {"nll", "nll_se"}
    np.testing.assert_allclose(
        scores["nll"], np.mean(OUTPUTS[0].sum(-1)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("likelihood", [Categorical(), Gaussian(0.3)])
def test_ood(likelihood):
    """Catches the two predictions exchanged, and noise alone as a score."""
    strange = 0.2 * OUTPUTS if isinstance(likelihood, Categorical) else 2 * OUTPUTS
    inside, outside = Prediction(OUTPUTS, likelihood), Prediction(strange, likelihood)
    if isinstance(likelihood, Categorical):
        scores = [inside.entropy, outside.entropy]
    else:
        scores = [
            jnp.sum(p.interval(0.9)[1] - p.interval(0.9)[0], 1)
            for p in (inside, outside)
        ]
    truth = np.repeat([0, 1], 50)
    expected = sklearn.metrics.roc_auc_score(truth, np.concatenate(scores))
    actual = evaluate_ood(inside, outside)
    np.testing.assert_allclose(actual["auroc"], expected)
    assert actual["auroc"] > 0.8
    assert set(actual) == {"auroc", "aupr", "fpr95"}


def test_bad_targets():
    prediction = Prediction(OUTPUTS, Categorical())
    with pytest.raises(ValueError, match="49 targets for a prediction of 50 rows"):
        evaluate(prediction, CLASSES[:49])
    with pytest.raises(ValueError, match="knows only 0 to 2"):
        evaluate(prediction, CLASSES + 1)
