"""What a result says of a fit, against numbers worked out by hand."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from ornstein.data import load
from ornstein.evaluation import component_diversity, fit_scores, in_target_units
from ornstein.functions import ImplicitBNN
from ornstein.likelihood import Categorical, Gaussian
from ornstein.nn import MLP, Flattened
from ornstein.prediction import FittedModel


def test_scores_in_the_targets_own_units(tmp_path):
    """Densities scale by 1 / s, so that the NLL gains log s; the names are DESIGN's."""
    ys = np.random.default_rng(0).normal(3.0, 50.0, 60)
    rows = [f"{x},{y}" for x, y in enumerate(ys)]
    (tmp_path / "table.csv").write_text("\n".join(["x,y", *rows]))
    data = load(str(tmp_path / "table.csv"), target=("y",), task="regression")
    scale = float(np.squeeze(data.y_scaling.scale))
    assert 30 < scale < 70
    for task in ("regression", "series"):  # of a row's number, and of a value
        ours = dataclasses.replace(data, task=task)
        assert in_target_units({"rmse": 2.0, "nll": 1.0}, ours) == {
            "rmse_in_target_units": pytest.approx(2 * scale),
            "nll_in_target_units": pytest.approx(1 + math.log(scale)),
        }


@pytest.fixture(scope="module")
def implicit():
    """Four components, whose KL and that of their mean are far apart."""
    network = MLP(1, 1, (6,), key=jax.random.key(0))
    model = ImplicitBNN(
        network, num_components=4, init_spread=1.0, key=jax.random.key(1)
    )
    return FittedModel(model, Gaussian(0.3)), load("toy/cos")


def test_bound_of_an_implicit_network_has_the_kl_of_its_mixture(implicit):
    """By hand: Monte Carlo with other draws, in numpy. Catches the KL of the
    components' mean in `elbo`, the density of one component, and a missing prior.
    """
    fit, data = implicit
    keys = {"test_key": jax.random.key(2), "bound_key": jax.random.key(3)}
    scores, _ = fit_scores(fit, data, num_draws=8, **keys)
    mean = np.asarray(fit.model.mixture.mean, np.float64)
    scale = np.asarray(fit.model.mixture.scale, np.float64)
    rng = np.random.default_rng(0)
    prior, kls = scipy.stats.norm(1, fit.model.prior_scale), []
    for _ in range(2000):
        for k in range(4):
            z = rng.normal(mean[k], scale[k])
            by_component = scipy.stats.norm.logpdf(z, mean, scale).sum(1)
            log_q = scipy.special.logsumexp(by_component) - math.log(4)
            kls.append(log_q - prior.logpdf(z).sum())
    kl, error = np.mean(kls), np.std(kls) / math.sqrt(len(kls))
    assert abs(scores["kl_mixture"] - kl) < 4.5 * math.hypot(
        error, scores["kl_mixture_se"]
    )
    middle, variance = mean.mean(0), (scale**2).sum(0) / 16
    s = fit.model.prior_scale
    by_node = (middle - 1) ** 2 / s**2 + variance / s**2 - 1 - np.log(variance / s**2)
    assert scores["kl_nodes"] == pytest.approx(0.5 * by_node.sum(), rel=1e-4)
    assert scores["kl_mixture"] > 2 * scores["kl_nodes"]
    assert scores["kl"] == scores["kl_mixture"]
    draws_key = jax.random.split(keys["bound_key"])[1]
    fits, x = [], jnp.asarray(data.train.x)
    for index in range(8):
        draw = fit.model(x, key=draws_key, index=index)
        fits.append(float(np.sum(fit.likelihood.log_prob(draw.output, data.train.y))))
    elbo = np.mean(fits) - scores["kl_mixture"]
    assert scores["elbo"] == pytest.approx(elbo, rel=1e-4)


def test_strata_of_classes_are_compared():
    """Only with as many draws of each, and only of classes."""
    network = Flattened(MLP(64, 10, (6,), key=jax.random.key(0)))
    model = ImplicitBNN(network, num_components=2, key=jax.random.key(1))
    fit, data = FittedModel(model, Categorical()), load("digits")
    keys = {"test_key": jax.random.key(2), "bound_key": jax.random.key(3)}
    scores, prediction = fit_scores(fit, data, num_draws=4, **keys)
    expected = component_diversity(prediction, 2)
    assert {name: scores[name] for name in expected} == expected
    scores, _ = fit_scores(fit, data, num_draws=3, **keys)
    assert "disagreement" not in scores
