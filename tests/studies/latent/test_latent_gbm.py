"""Geometric Brownian motion past its data: the law itself, and what is scored."""

from pathlib import Path

import numpy as np
import pytest

from ornstein.data import load
from ornstein.studies import Study
from ornstein.studies.latent import _gbm as _latent_gbm, _gbm_law

PATHS = 400_000
LEVELS = (0.05, 0.5, 0.95)


@pytest.fixture(scope="module")
def law():
    """Beside the law, weighted paths for one series: slow, obvious, another way."""
    rng = np.random.default_rng(0)
    ts, future = np.array([0.0, 0.1, 0.2, 0.3]), np.array([0.32, 0.9])
    values = np.array([[1.1, 1.0, 1.3, 1.2]])
    every = np.concatenate([ts, future])
    steps = np.sqrt(np.diff(every, prepend=0.0))
    brownian = np.cumsum(steps * rng.standard_normal((PATHS, 6)), axis=1)
    start = 1.0 + 0.3 * rng.standard_normal((PATHS, 1))
    paths = start * np.exp(0.875 * every + 0.5 * brownian)
    residuals = (values - paths[:, :4]) / 0.1
    log_weight = np.sum(-(residuals**2) / 2 - np.log(0.1 * np.sqrt(2 * np.pi)), axis=1)
    noisy = paths[:, 4:] + 0.1 * rng.standard_normal((PATHS, 2))
    return _gbm_law.known(ts, values, future), np.exp(log_weight), noisy


def test_evidence_is_the_mean_weight_of_paths(law):
    """Catches another drift, volatility, start or noise, or a step left out."""
    known, weight, _ = law
    error = np.std(weight) / np.sqrt(PATHS)
    assert 4.5 * error < 0.1 * np.mean(weight)
    assert abs(np.exp(known.evidence[0]) - np.mean(weight)) < 4.5 * error


def test_future_is_that_of_weighted_paths(law):
    """Catches a future that forgets noise, time or what was seen."""
    known, weight, noisy = law
    weight = weight / weight.sum()
    quantiles = known.quantiles(LEVELS)[:, 0]
    for column, y in enumerate(noisy.T):
        for level, quantile in zip(LEVELS, quantiles[:, column], strict=True):
            below = y <= quantile
            error = np.sqrt(np.sum(weight**2 * (below - level) ** 2))
            assert abs(weight @ below - level) < 4.5 * error < 0.1
        mean = weight @ y
        error = np.sqrt(np.sum(weight**2 * (y - mean) ** 2))
        assert abs(known.mean[0, column] - mean) < 4.5 * error < 0.1


def test_density_is_the_slope_of_the_distribution(law):
    """Catches a density in other units, or of the value without its noise."""
    known = law[0]
    y, step = np.array([[1.3, 2.0]]), 1e-4
    slope = (known.cdf(y + step) - known.cdf(y - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(known.log_prob(y)), slope, rtol=1e-5)


def test_the_law_covers_what_it_promises():
    """On the 500 paths of the set, by which the models are judged."""
    scores = _latent_gbm._exact(load("toy/gbm"))["scores"]
    error = scores["coverage_90_se"]
    assert abs(scores["coverage_90"] - 0.9) < 4.5 * error < 0.05
    assert 0.02 < scores["below"] < 0.08
    assert 0 < scores["nll_se"] < 0.1 < scores["nll"] < 1


def test_what_is_shown():
    """Catches a last observation or a question that is dropped."""
    data = _latent_gbm._shown(load("toy/gbm"), 5)
    ts = np.arange(0, 7) / 10
    np.testing.assert_allclose(data.train.x.ts[3], ts, rtol=1e-6)
    mask = np.asarray(data.test.x.mask[3, :, 0])
    np.testing.assert_allclose(data.test.x.ts[3, mask], ts, rtol=1e-6)
    np.testing.assert_array_equal(data.test.y.mask[3, :, 0], ~mask)
    assert (~mask).sum() == 20


@pytest.mark.slow
def test_reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All three at every time past the data; the second run computes nothing."""
    settings = _latent_gbm._Settings(
        every=10,
        num_substeps=1,
        epochs=1,
        batch_size=250,
        hidden_size=2,
        drift_widths=(2,),
        num_draws=2,
    )
    monkeypatch.setitem(_latent_gbm._SETTINGS, "quick", settings)
    said: list[str] = []
    study = Study(tmp_path, "quick", seed=0, say=said.append)
    rows = _latent_gbm.LATENT_GBM.run(study)
    names = ["known law", "latent SDE", "latent ODE"]
    assert [row["of"] for row in rows[:3]] == names
    for name in names:
        whole, *timed = [row for row in rows if row["of"] == name]
        assert [row["time"] for row in timed] == pytest.approx(np.arange(31, 51) / 50)
        shares = [row["coverage_90"] for row in timed]
        assert np.mean(shares) == pytest.approx(whole["coverage_90"])
        assert np.isfinite(whole["nll"])
        outside = whole["below"] + whole["above"]
        assert outside == pytest.approx(1 - whole["coverage_90"])
    assert rows[0]["elbo_per_series"] > max(row["elbo_per_series"] for row in rows[1:3])
    assert {path.stem for path in tmp_path.glob("*.png")} == {"coverage", "bands"}
    said.clear()
    assert _latent_gbm.LATENT_GBM.run(study) == rows
    assert not any("computing" in line for line in said)
