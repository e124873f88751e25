"""What a fit of one's own is worth, from Python and without a recipe.

Every number is worked out again, one draw at a time.
"""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X, away_from_prior, small_model

import ornstein as orn
from ornstein.data import ByteScale, Data, Split, Standardisation, corrupt
from ornstein.nn import MLP, Flattened
from ornstein.prediction import FittedModel
from ornstein.sde import Fixed

SPLIT = Split(X, np.sin(X[:, :1]))
KEY, NUM_DRAWS = jr.key(3), 3


@pytest.fixture(scope="module")
def fit() -> orn.Fit:
    model = away_from_prior(small_model())
    return orn.fit(model, SPLIT, orn.Gaussian(0.5), key=jr.key(0), num_epochs=2)


def test_evidence_bound(fit: orn.Fit):
    """Seen failing with a mean over rows, w0's KL left out, and that of single draws in
    place of their mean."""
    found = orn.evaluation.evidence_bound(fit, SPLIT, key=KEY, num_draws=NUM_DRAWS)
    draws_key = jr.split(KEY)[1]
    x, fits, paths, starts = jnp.asarray(X), [], [], []
    for index in range(NUM_DRAWS):
        draw = fit.model(x, key=draws_key, index=index)
        fits.append(np.sum(fit.likelihood.log_prob(draw.output, SPLIT.y)))
        paths.append(draw.terms["kl_path"])
        starts.append(draw.terms["kl_initial"])
    each = np.array(fits) - np.array(paths) - np.array(starts)
    assert found["elbo"] == pytest.approx(np.mean(each), rel=1e-4)
    error = np.std(each, ddof=1) / math.sqrt(NUM_DRAWS)
    assert found["elbo_se"] == pytest.approx(error, rel=1e-3)
    assert found["kl_path"] == pytest.approx(np.mean(paths), rel=1e-4)
    assert found["kl_initial"] == pytest.approx(np.mean(starts), rel=1e-4)
    assert min(found["kl_path"], found["kl_initial"]) > 0.1


def test_gain_of_the_drift(fit: orn.Fit):
    """Seen failing with other draws for the function without its drift, and with the
    sign of a loss."""
    found = orn.evaluation.ablation_scores(fit, SPLIT, key=KEY, num_draws=NUM_DRAWS)
    without = FittedModel(orn.without_drift(fit.model), fit.likelihood)
    nlls = {}
    for name, one in (("with", fit), ("without", without)):
        prediction = orn.predict(one, X, key=KEY, num_draws=NUM_DRAWS)
        nlls[name] = orn.evaluate(prediction, SPLIT.y)["nll"]
    assert found["without_drift"]["nll"] == pytest.approx(nlls["without"], rel=1e-5)
    gain = nlls["without"] - nlls["with"]
    assert abs(gain) > 0.01
    assert found["drift_gain"] == pytest.approx(gain, rel=1e-3)
    assert found["drift_gain_se"] > 0


def test_a_family_without_parts_has_nothing_to_leave_out():
    model = orn.MeanField(MLP(2, 1, (3,), key=jr.key(0)))
    plain = FittedModel(model, orn.Gaussian(0.5))
    found = orn.evaluation.ablation_scores(plain, SPLIT, key=KEY, num_draws=2)
    assert found == {}


def test_dial(fit: orn.Fit):
    """Seen failing with the fit's own step at every setting."""
    how = {"key": KEY, "num_draws": NUM_DRAWS}
    (row,) = orn.evaluation.dial(fit, SPLIT, dts=(0.5,), **how)
    steps = Fixed(0.5, noise_dt=0.5)
    turned = FittedModel(orn.with_solver(fit.model, stepsize=steps), fit.likelihood)
    scores = orn.evaluate(orn.predict(turned, X, **how), SPLIT.y)
    assert row["nll"] == pytest.approx(scores["nll"], rel=1e-5)
    assert row["num_drift_evaluations"] == 2


def test_corruption_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of images that no recipe knows. Seen failing with their standard units taken for
    bytes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    raw = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1)).astype(np.float32)
    y = (np.arange(12) % 3).astype(np.int32)
    scaling = Standardisation.fit(raw, (0, 1, 2))
    rows = Split(scaling.apply(raw), y)
    names = ("a", "b", "c")
    data = Data("mine", "classification", rows, rows, None, 3, names, scaling)
    model = orn.Deterministic(Flattened(MLP(64, 3, (), key=jax.random.key(0))))
    fit = FittedModel(model, orn.Categorical())
    how = {"key": KEY, "num_draws": 1}
    found = orn.evaluation.corruption_scores(fit, data, corruptions=("fog",), **how)
    clean = ByteScale.of(data).to_bytes(rows.x)
    np.testing.assert_array_equal(clean, raw.astype(np.uint8))
    for row in found["rows"]:
        images = corrupt(clean, "fog", row["severity"])
        x = scaling.apply(images.astype(np.float32))
        scores = orn.evaluate(orn.predict(fit, x, **how), y)
        assert row["nll"] == pytest.approx(scores["nll"], rel=1e-5)
    assert len({row["nll"] for row in found["rows"]}) == 5


def test_samples_have_no_bound():
    """Seen failing with a KL of 0, which would make the likelihood a bound."""
    network = MLP(2, 1, (), key=jr.key(0))
    params = jax.tree.map(lambda a: np.stack([[a, a]]), network)
    samples = orn.PosteriorSamples(network, orn.Gaussian(0.5), (params, None), {})
    with pytest.raises(ValueError, match="no KL to a prior.*score its predictions"):
        orn.evaluation.evidence_bound(samples, SPLIT, key=KEY, num_draws=2)
