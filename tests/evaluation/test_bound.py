"""The bound of series, against its parts one path at a time."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.evaluation import evidence_bound, series_evidence_bound
from ornstein.evaluation._bound import (
    DrawSums,
    log_likelihood_bought,
    sums_of_draws,
)
from ornstein.functions import FirstFrames
from ornstein.train import Fit


class Line(eqx.Module):
    """Through zero."""

    slope: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.slope * x


@pytest.mark.parametrize("estimator", [orn.sde.KL(), orn.sde.StickTheLanding()])
def test_bound_of_series(estimator):
    """A mean over series and paths; catches a sum, a KL left out, paths shared, and
    (seen) the closed forms in place of what an estimator with a term in dB gives."""
    ts, values = np.arange(4) / 4, np.arange(24.0).reshape(3, 4, 2) / 10
    x = orn.Series.of(ts, values)
    frames = FirstFrames(2, 2, 1, key=jr.key(0))
    model = orn.LatentSDE.make(frames, 2, estimator=estimator, key=jr.key(1))
    likelihood = orn.OverTime(orn.Gaussian(0.5))
    fitted = Fit(model, likelihood, None, {})
    found = series_evidence_bound(fitted, Split(x, x), key=jr.key(2), num_draws=5)
    elbos, kls = [], []
    for key in jr.split(jr.key(2), 5):
        draw = model(x, key=key)
        kls.append(np.mean(draw.local_kl))
        elbos.append(np.mean(likelihood.log_prob(draw.output, x)) - kls[-1])
    assert found["elbo"] == pytest.approx(np.mean(elbos), rel=1e-4)
    assert found["kl"] == pytest.approx(np.mean(kls), rel=1e-4)
    assert found["kl"] > 0


def some_fit() -> Fit:
    network = eqx.nn.MLP(1, 1, 2, 1, key=jr.key(0))
    model = orn.MeanField(network, orn.GaussianPrior(1.0))
    return Fit(model, orn.Gaussian(1.0), None, {})


@pytest.mark.parametrize("num_rows", [1_001, 1_999])
def test_all_rows_of_a_few_thousand_are_in_the_bound(num_rows: int, monkeypatch):
    """Catches (seen) rows beyond the last whole block that are left out, and an error
    that is then infinite."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, 1)).astype("float32")
    y = np.where(np.arange(num_rows) < 199, 8.0, 0.0).astype("float32")
    how = {"key": jr.key(1), "num_draws": 2}
    found = evidence_bound(some_fit(), Split(x, y), **how)
    monkeypatch.setattr("ornstein.evaluation._bound._BLOCK_ROWS", num_rows)
    at_once = evidence_bound(some_fit(), Split(x, y), **how)
    assert found["elbo"] == pytest.approx(at_once["elbo"], rel=1e-5)
    assert found["elbo_se"] == pytest.approx(at_once["elbo_se"], rel=1e-3)


def test_rows_that_were_not_seen_have_kls_of_their_own(monkeypatch):
    """Catches (seen) an error of rows' likelihoods alone."""
    blocks = np.repeat(np.random.default_rng(0).normal(size=(10, 1)), 2, axis=1)
    sums = DrawSums(0 * blocks, blocks, {"kl": blocks.sum(0)}, 0.5, 1)
    monkeypatch.setattr(
        "ornstein.evaluation._bound.sums_of_draws", lambda *_, **__: sums
    )
    split = Split(np.zeros((4, 1), "float32"), np.zeros(4, "float32"))
    found = evidence_bound(some_fit(), split, key=jr.key(0), num_draws=2)
    expected = np.sqrt(0.5 * 10 * np.var(blocks[:, 0], ddof=1))
    assert found["elbo_se"] == pytest.approx(expected)


def test_the_bound_of_a_mixture_has_draws_of_all_components():
    """Catches (seen) a bound whose likelihood has one component and whose KL all."""
    network = eqx.nn.MLP(1, 1, 2, 1, key=jr.key(0))
    model = orn.ImplicitBNN(network, num_components=3, key=jr.key(1))
    fitted = Fit(model, orn.Gaussian(1.0), None, {})
    split = Split(np.ones((4, 1), "float32"), np.ones((4, 1), "float32"))
    one, three = (
        evidence_bound(fitted, split, key=jr.key(2), num_draws=n) for n in (1, 3)
    )
    assert one == three


def test_what_members_differ_by_is_no_noise():
    """Two members that hardly vary, far apart: the error is that within each, by hand.

    Catches (seen) an error over all draws, of which every other is the same member's.
    """
    members = [
        orn.MeanField(Line(jnp.full((1,), slope)), init_scale=0.01)
        for slope in (0.0, 5.0)
    ]
    fitted = Fit(orn.Ensemble(members), orn.Gaussian(1.0), None, {})
    split = Split(np.ones((4, 1), "float32"), np.zeros((4, 1), "float32"))
    how = {"key": jr.key(0), "num_draws": 8}
    found, sums = (
        evidence_bound(fitted, split, **how),
        sums_of_draws(fitted, split, **how),
    )
    elbo = sums.log_likelihood.sum(0) - sums.kls["kl"]
    of_each = [np.var(elbo[number::2], ddof=1) / 4 for number in (0, 1)]
    assert found["elbo_se"] == pytest.approx(np.sqrt(np.sum(of_each)) / 2, rel=1e-5)
    assert found["elbo_se"] < 1 < abs(elbo[0] - elbo[1])
    nothing = sums._replace(log_likelihood=0 * sums.log_likelihood)
    assert log_likelihood_bought(sums, nothing)[1] < 1
    a_round = evidence_bound(fitted, split, key=jr.key(0), num_draws=2)
    assert a_round["elbo_se"] > 10
