"""Figures 3 and 4 of Xu et al. (2022), and curves by a latent SDE."""

import itertools
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import ornstein as orn
from ornstein.sde import KL, BrownianMotion
from ornstein.studies import EXPERIMENTS, Study
from ornstein.studies.latent import _toy as _latent_toy
from ornstein.studies.sdebnn import _fig3, _fig4, _gradient_variance
from ornstein.studies.sdebnn._fig3_exact import TwoPoints, exact_posterior

PROBLEM = TwoPoints()
TIMES = np.array([0.0, 1.2, 3.0])


def study(folder: Path) -> Study:
    return Study(folder, "quick", seed=0, say=lambda text: None)


def log_weights(z: np.ndarray, beta: float) -> np.ndarray:
    """By SciPy's Cauchy."""
    return (stats.cauchy(z).logpdf(5.0) + stats.cauchy(z).logpdf(-5.0)) / beta


@pytest.mark.parametrize("beta", [1.0, 0.2 / 3])
def test_exact_bound(beta: float):
    """Against adaptive quadrature over the end alone. Catches a variance of the end
    without that of the start (seen), a likelihood of one observation."""
    variance = 9 * np.exp(-0.6) + 10 * (1 - np.exp(-0.6))
    end = stats.norm(0, np.sqrt(variance))

    def integrand(z: float) -> float:
        return np.exp(log_weights(np.array(z), beta) + 6.9 / beta) * end.pdf(z)

    whole = integrate.quad(integrand, -40, 40, points=(-5, 0, 5), limit=500)[0]
    found = exact_posterior(PROBLEM, beta, TIMES).bound
    assert found == pytest.approx(beta * np.log(whole) - 6.9, abs=1e-5)


def test_exact_marginals_and_joint():
    """Against weighted draws of the prior. Catches a weight of the wrong power, a
    marginal that forgets its future (seen), a joint that is transposed."""
    rng = np.random.default_rng(0)
    num = 400_000
    zs = [3 * rng.standard_normal(num)]
    for dt in np.diff(TIMES):
        spread = 10 * (1 - np.exp(-0.2 * dt))
        mean = np.exp(-0.1 * dt) * zs[-1]
        zs.append(mean + np.sqrt(spread) * rng.standard_normal(num))
    weight = np.exp(log_weights(zs[-1], 1.0))
    weight /= weight.sum()
    exact = exact_posterior(PROBLEM, 1.0, TIMES)
    edges = np.array([-16.0, -4.0, -1.0, 0.5, 3.0, 16.0])
    for i, z in enumerate(zs):
        bins = [(low < z) & (z < high) for low, high in itertools.pairwise(edges)]
        wanted = np.array([weight @ inside for inside in bins])
        pairs = zip(bins, wanted, strict=True)
        error = [np.sqrt(weight**2 @ (b - w) ** 2) for b, w in pairs]
        assert np.all(np.abs(exact.masses(i, edges) - wanted) < 4.5 * np.array(error))
        assert np.max(error) < 0.002
    # Not symmetric in its two numbers: near 0 at first, and far from it at last.
    first, last = np.abs(exact.grid) < 1, np.abs(exact.grid) > 4
    width = exact.grid[1] - exact.grid[0]
    found = np.sum(exact.joint[np.ix_(first, last)]) * width**2
    inside = (np.abs(zs[0]) < 1) & (np.abs(zs[-1]) > 4)
    wanted = weight @ inside
    error = np.sqrt(weight**2 @ (inside - wanted) ** 2)
    assert abs(found - wanted) < 4.5 * error + 0.01 * wanted
    assert 4.5 * error < 0.1 * wanted


def test_the_two_posteriors_of_the_specification():
    """A valley of 0.49 and 0.29 near each of ±5 at weight 1; halves at 0.2/T."""
    for beta, mass, valley in [(1.0, 0.29, 0.49), (0.2 / 3, 0.5, 0.0)]:
        exact = exact_posterior(PROBLEM, beta, TIMES)
        assert exact.masses(2, np.array([3.0, 7.0]))[0] == pytest.approx(mass, abs=5e-3)
        at_0 = exact.marginals[2][len(exact.grid) // 2]
        assert at_0 / exact.marginals[2].max() == pytest.approx(valley, abs=5e-3)


def test_odd_drift():
    plan = _fig3.Plan(1, width_size=4)
    model = _fig3.untrained(plan, is_odd=True, key=jax.random.key(0))
    model = jax.tree.map(
        lambda leaf: leaf + 0.1 if eqx.is_inexact_array(leaf) else leaf, model
    )
    z, context = jnp.array([0.7]), jnp.zeros(0)
    up, down = (model.posterior_drift(0.3, sign * z, context) for sign in (1, -1))
    assert up == -down
    assert abs(float(up[0])) > 1e-3


def test_valley_ratio():
    """Of the exact masses it is the exact ratio; the lower mode counts."""
    exact = exact_posterior(PROBLEM, 1.0, TIMES)
    masses = exact.masses(2, _fig3._EDGES)
    assert _fig3.valley_ratio(masses, exact) == pytest.approx(0.49, abs=0.02)
    masses[: len(masses) // 3] /= 2
    assert _fig3.valley_ratio(masses, exact) == pytest.approx(0.98, abs=0.04)
    assert _fig3.valley_ratio(0 * masses, exact) is None


def test_fig3_at_toy_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows, figures, and pieces that are kept."""
    plan = _fig3.Plan(3, num_paths=8, num_steps=4, width_size=4, num_judged=200)
    monkeypatch.setitem(_fig3.PLANS, "quick", plan)
    rows = EXPERIMENTS["fig3"].run(study(tmp_path))
    assert [row["mode"] for row in rows] == [-5, 5, -5, 5]
    assert [row["drift"] for row in rows] == ["any", "any", "odd", "odd"]
    for row in rows:
        assert 0 <= row["mass"] <= 1
        assert 0 < row["total_variation"] <= 1
        assert row["bound"] < row["exact_bound"]
    for figure in ("paths", "marginals", "joint"):
        for beta in ("1", "0.2_over_T"):
            assert (tmp_path / f"{figure}_{beta}.png").is_file()
    monkeypatch.setattr(_fig3, "learn", None)
    assert EXPERIMENTS["fig3"].run(study(tmp_path)) == rows


@pytest.mark.slow
def test_fig3(tmp_path: Path):
    """What the issue asks for: seen -0.026 and -0.089 nats from the exact bounds."""
    rows = EXPERIMENTS["fig3"].run(study(tmp_path))
    for row in rows[:2]:
        assert row["total_variation"] <= 0.1
    for row in rows[2:]:
        assert 0.45 <= row["mass"] <= 0.55
        assert row["valley_ratio"] < 0.05


class Slope(eqx.Module):
    """A drift of one parameter."""

    rate: jax.Array

    def __call__(self, t, w):
        return self.rate * w


def one_step_toy() -> _gradient_variance.Toy:
    """One Euler step from 2, seen with noise of a half."""
    return _gradient_variance.Toy(
        BrownianMotion(scale=1.0),
        2.0,
        np.array([0.0, 0.25]),
        np.array([1.0]),
        0.5,
        lambda w: w,
        0.25,
    )


def test_gradients_of_one_step():
    """By hand: w = 2 + 2a dt + √dt ξ, and each estimator's own KL of a.

    Catches an estimator that is passed over, and a wrong variance.
    """
    toy, a, dt, num = one_step_toy(), 0.3, 0.25, 4000
    drift = Slope(jnp.array(a))
    keys = jax.random.split(jax.random.key(0), num)
    of_ito = {"KL": 0.0, "FullMonteCarlo": 2 * np.sqrt(dt), "StickTheLanding": 0.0}
    found = _gradient_variance.variances(
        toy, drift, num_samples=num, key=jax.random.key(0)
    )
    for name, estimator in _gradient_variance.ESTIMATORS.items():
        found_grads = _gradient_variance.gradients(toy, drift, estimator, keys)
        grads = np.asarray(found_grads.rate)
        # d/da [½ (2a)² dt + 2a √dt ξ + ½ (y - w)² / s²], where dw/da = 2 dt.
        slope = 2 * dt * np.sqrt(dt) / 0.25 + of_ito[name]
        mean = 4 * a * dt - 2 * dt * (1 - 2 - 2 * a * dt) / 0.25
        assert found[name] == pytest.approx(np.var(grads, ddof=1), rel=1e-4)
        assert found[name] == pytest.approx(slope**2, rel=4.5 * np.sqrt(2 / num))
        error = slope / np.sqrt(num)
        assert abs(np.mean(grads) - mean) < 4.5 * error


def test_loss_is_the_elbo():
    """Without noise in the drift's way: KL alone is known, and the density SciPy's."""
    toy = one_step_toy()
    value = toy.loss(Slope(jnp.array(0.3)), jax.random.key(1), KL())
    sol = orn.sde.sdeint(
        lambda t, w, args: 0.3 * w,
        toy.prior.diffusion,
        jnp.full((1,), 2.0),
        toy.ts,
        key=jax.random.key(1),
        solver=orn.sde.EulerMaruyama(),
        stepsize=orn.sde.Fixed(0.25),
    )
    fit = stats.norm(sol.ys[-1, 0], 0.5).logpdf(1.0)
    assert float(value) == pytest.approx(0.5 * 0.6**2 * 0.25 - fit, rel=1e-5)


def test_landing_at_the_exact_drift():
    """Variance like dt² for `StickTheLanding`, like 1 for the others."""
    few, many = (
        _fig4.bridge_variances(n, 500, key=jax.random.key(0)) for n in (20, 80)
    )
    assert 10 < few["StickTheLanding"] / many["StickTheLanding"] < 24
    for name in ("KL", "FullMonteCarlo"):
        assert 0.6 < few[name] / many[name] < 1.6
        assert many[name] > 100 * many["StickTheLanding"]


def test_slope():
    variance = [3 / n**2 for n in _fig4._BRIDGE_STEPS]
    assert _fig4.slope(variance) == pytest.approx(2)


@pytest.mark.slow
def test_fig4_at_toy_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows in the order of training, and a figure for each toy."""
    plan = _fig4.Plan((1, 3), num_samples=20, substeps=1, batch_size=4)
    monkeypatch.setitem(_fig4.PLANS, "quick", plan)
    monkeypatch.setattr(_fig4, "_BRIDGE_STEPS", (5, 10))
    rows = EXPERIMENTS["fig4"].run(study(tmp_path))
    assert [row["step"] for row in rows if "step" in row] == [1, 3] * 3
    for row in rows[:-1]:
        others = min(row["KL"], row["FullMonteCarlo"])
        assert row["others_over_stl"] == others / row["StickTheLanding"] > 0
    assert rows[-1]["slope of StickTheLanding"] > 1
    for toy in ("exp_B_4", "exp_B_10", "segmented_cosine_10"):
        assert (tmp_path / f"variance_{toy}_points.png").is_file()


def test_spreads():
    """At data, between and beyond; the band of the paths alone."""
    ts = np.array([0.0, 0.5, 1.0, 1.5, 2.0], np.float32)
    seen = np.array([0, 1, 0, 1, 0], bool)[:, None]
    asked = orn.Series.of(ts, np.where(seen, 1.0, np.nan))
    curve = orn.Series.of(ts, np.where(seen, np.nan, [[0.0], [0], [5], [0], [0.0]]))
    normals = np.random.default_rng(0).standard_normal((20_000, 1))
    sd = np.array([3.0, 0.1, 2.0, 0.2, 5.0])
    found = _latent_toy.spreads(asked, curve, normals * sd)
    assert found["std_at_data"] == pytest.approx(0.15, rel=0.03)
    assert found["std_in_gaps"] == pytest.approx(2.0, rel=0.03)
    assert found["std_beyond"] == pytest.approx(4.0, rel=0.03)
    assert found["coverage_90"] == pytest.approx(2 / 3)


def test_value_nll():
    """Of each value alone. Catches a mean of logs, and values that were not asked."""
    ts = np.array([0.0, 1.0, 2.0])
    curve = orn.Series.of(ts, np.array([[0.3], [np.nan], [-1.0]]))
    output = np.array([[0.0, 7.0, -1.0], [1.0, 7.0, 0.0]])
    density = stats.laplace(output, 0.5).pdf([0.3, 0.0, -1.0]).mean(axis=0)
    likelihood = orn.OverTime(orn.Laplace(0.5))
    found = _latent_toy.value_nll(likelihood, jnp.asarray(output[..., None]), curve)
    assert found == pytest.approx(-np.log(density[[0, 2]]).mean(), rel=1e-5)


def test_latent_toy_at_toy_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = _latent_toy.Plan(2, num_paths=3, width_size=4, num_judged=20)
    monkeypatch.setitem(_latent_toy.PLANS, "quick", plan)
    monkeypatch.setattr(_latent_toy, "DATA", ("toy/irregular-sine",))
    monkeypatch.setattr(_latent_toy, "LIKELIHOODS", {"laplace": orn.Laplace})
    (row,) = EXPERIMENTS["latent-toy"].run(study(tmp_path))
    parts = row["log_likelihood"] - row["kl_path"] - row["kl_initial"]
    assert row["elbo"] == pytest.approx(parts)
    assert 0 <= row["coverage_90"] <= 1
    assert (tmp_path / "paths_irregular-sine.png").is_file()
    assert (tmp_path / "bands_irregular-sine.png").is_file()
