"""Faults planted in a small SDE-BNN that is well, and in other models."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.special
import scipy.stats
from diagnosis.small_fit import DATA, over_blocks, scaled, train_small, with_model

import ornstein as orn
from ornstein.diagnosis import diagnose
from ornstein.diagnosis._draws_agree import between_draws, draws_agree
from ornstein.diagnosis._evidence import Evidence
from ornstein.diagnosis._reversible_gap import _start_size, reversible_gap
from ornstein.functions import LatentStart, NoRecognition
from ornstein.nn import MLP
from ornstein.sde import EulerMaruyama, Fixed, Grid, ReversibleHeun

KEY = jr.key(2)


@pytest.fixture(scope="module")
def healthy() -> orn.Fit:
    return train_small()


def names(fit: Any, **options: Any) -> list[str]:
    """But for bands: what has not been trained has none that hold what they say."""
    found = diagnose(fit, DATA.test, key=KEY, num_data=len(DATA.train), **options)
    assert all(set(f.numbers) <= set(found.numbers) for f in found.findings)
    each = [finding.name for finding in found.findings]
    return [name for name in each if name != "coverage-off"]


def test_nothing_is_found_in_a_posterior_that_does_something(healthy: orn.Fit):
    """It is one: without its drift it predicts worse, by many standard errors."""
    found = diagnose(healthy, DATA.test, key=KEY, num_data=len(DATA.train))
    assert found.findings == (), str(found)
    assert str(found) == "Nothing found."
    numbers = found.numbers
    assert numbers["drift_gain"] > 0.05
    assert numbers["drift_gain"] > 3 * numbers["drift_gain_se"]
    assert numbers["num_data_used"] == pytest.approx(len(DATA.train), rel=1e-3)


def test_gain_of_the_drift_by_hand(healthy: orn.Fit):
    """Catches other draws for the zeroed twin, and other paths than of half steps."""
    numbers = diagnose(healthy, DATA.test, key=KEY).numbers
    model = orn.with_solver(healthy.model, stepsize=Fixed(0.2, noise_dt=0.1))
    key, x, y = jr.split(KEY)[1], DATA.test.x, DATA.test.y  # all rows, in their order
    fits = [with_model(healthy, m) for m in (model, orn.without_drift(model))]
    ours, zeroed = [orn.predict(fit, x, key=key, num_draws=8) for fit in fits]
    gain = float(np.mean(ours.log_prob(y) - zeroed.log_prob(y)))
    assert numbers["drift_gain"] == pytest.approx(gain, abs=1e-5)


def test_point_start(healthy: orn.Fit):
    """A drift of zero. With a Gaussian w0, q is not p: nothing is said."""
    drift = lambda block: (block.drift.writes, block.drift.biases)
    idle = scaled(healthy, drift, 0.0)
    assert "point-start" in names(idle)

    def widen(block: Any) -> Any:
        weights = eqx.filter(block.dynamics, eqx.is_inexact_array)
        rho = jax.tree.map(lambda w: jnp.full_like(w, -4.0), weights)
        return eqx.tree_at(
            lambda b: b.rho, block, rho, is_leaf=lambda node: node is None
        )

    assert "point-start" not in names(over_blocks(idle, widen))


def test_noise_drowns_drift(healthy: orn.Fit):
    drowned = scaled(healthy, lambda block: block.process.scale, 25.0)
    assert "noise-drowns-drift" in names(drowned)


def test_diffusion_gone_and_draws_agree(healthy: orn.Fit):
    """A little noise is no fault; none is two."""
    still = lambda factor: scaled(healthy, lambda b: b.process.scale, factor)
    assert {"diffusion-gone", "draws-agree"}.isdisjoint(names(still(0.1)))
    assert {"diffusion-gone", "draws-agree"} <= set(names(still(1e-6)))


def test_coarse_step(healthy: orn.Fit):
    """One step of Euler for the whole depth."""
    coarse = orn.with_solver(healthy.model, solver=EulerMaruyama(), stepsize=Fixed(1.0))
    assert "coarse-step" in names(with_model(healthy, coarse))


def test_coarse_step_of_a_plain_network():
    """dh/dt = −20 h in steps of 0.125, by a factor −1.5 each; and by hand.

    Catches solves that are looked for in SDE-BNNs alone.
    """
    network = orn.ODENet.for_vectors(
        1, 1, integrator=orn.Integrator(stepsize=Fixed(0.125)), key=jr.key(0)
    )
    stiff = eqx.tree_at(
        lambda net: net.layers[-1].dynamics, network, lambda t, h: -20.0 * h
    )
    fit = lambda model: orn.Fit(orn.Deterministic(model), orn.Gaussian(0.1), None, {})
    assert names(fit(stiff)) == ["coarse-step"]
    found = diagnose(fit(network), DATA.test, key=KEY)
    assert [finding.name for finding in found.findings] == ["coverage-off"]  # untrained
    half = orn.with_solver(network, stepsize=Fixed(0.0625))
    x = jnp.asarray(DATA.test.x)
    delta = np.abs(np.asarray(network(x) - half(x))) / 0.1
    change = np.mean(2 * scipy.stats.norm.cdf(delta / 2) - 1)
    assert 1e-4 < change
    assert found.numbers["change_by_half_step"] == pytest.approx(change, rel=1e-2)


def test_reversible_gap(healthy: orn.Fit):
    """A rate of 30: the parasitic mode grows like exp(30)."""
    fast = lambda b: eqx.tree_at(lambda b: b.process.rate, b, 30.0)
    steps = orn.with_solver(healthy.model, stepsize=Fixed(0.1))
    assert "reversible-gap" in names(over_blocks(with_model(healthy, steps), fast))


def gaps_of(model: Any, x: Any, y: Any, likelihood: Any) -> tuple[float, float]:
    """As it is, and as `diagnose` has it."""
    fit, rows = orn.Fit(model, likelihood, None, {}), jax.tree.map(jnp.asarray, (x, y))
    evidence = Evidence(fit, *rows, key=KEY, num_draws=2, history={}, num_data=None)
    assert evidence.draws.report is not None
    gap = float(evidence.draws.report.reversible_gap)
    return gap, reversible_gap(evidence).numbers["reversible_gap"]


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_reversible_gap_is_in_units_of_what_solves_start_from(size: float):
    r"""$dh/dt = -4 h$ by reversible Heun's recursion in numpy. Catches (seen) a gap in
    units of 1, by which every solve of large inputs would be unstable."""
    network = orn.ODENet.for_vectors(
        2,
        1,
        integrator=orn.Integrator(ReversibleHeun(), Fixed(0.25)),
        key=jr.key(0),
    )
    model = eqx.tree_at(
        lambda net: net.layers[-1].dynamics, network, lambda t, h: -4.0 * h
    )
    x = size * np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    y = hat = x.astype(float)
    for _ in range(4):
        new = 2 * y - hat - 4.0 * hat * 0.25
        y, hat = y - 0.25 * 4.0 * (hat + new) / 2, new
    expected = np.max(np.abs(y - hat)) / np.sqrt(np.mean(x.astype(float) ** 2))
    zeros = np.zeros((30, 1), np.float32)
    _, found = gaps_of(orn.Deterministic(model), x, zeros, orn.Gaussian(0.1))
    assert found == pytest.approx(expected, rel=1e-4)


def test_reversible_gap_of_sequences_is_in_units_of_their_start():
    """Neither the clock nor missing values are a size. Catches both, and those of an
    ensemble (all seen)."""
    start = LatentStart(2, mean=3.0, scale=4.0)
    model = orn.LatentODE.make(
        NoRecognition(2, mean=3.0, scale=4.0),
        1,
        start=start,
        integrator=orn.Integrator(ReversibleHeun(), Grid(num_substeps=2)),
        key=jr.key(0),
    )
    model = eqx.tree_at(lambda m: m.drift, model, lambda t, z: -z)
    ts, values = np.linspace(0.0, 1.0, 5), np.ones((3, 5, 1), np.float32)
    mask = np.ones(values.shape, bool)
    mask[0, 1:3] = False
    spoilt = np.where(mask, 50 * values, np.nan)
    for one, x in (
        (model, orn.Series.of(ts, values, mask)),
        (model, orn.Series.of(ts, spoilt, mask)),
        (model, orn.Series.of(ts + 1e3, values, mask)),
        (orn.Ensemble([model, model]), orn.Series.of(ts + 1e3, spoilt, mask)),
    ):
        gap, found = gaps_of(one, x, x, orn.OverTime(orn.Gaussian(0.1)))
        assert gap > 0
        assert found == pytest.approx(gap / 5.0, rel=1e-5)  # sqrt(3² + 4²)


def test_reversible_gap_of_another_model_of_sequences():
    """In units of the values that are there. Catches (seen) all leaves of a series."""
    series = orn.Series.of(
        1e3 * np.arange(2.0),
        np.array([[[3.0], [np.nan]], [[4.0], [4.0]]], np.float32),
        np.array([[[True], [False]], [[True], [True]]]),
    )
    model = orn.Deterministic(MLP(1, 1, (), key=jr.key(0)))
    fit = orn.Fit(model, orn.Gaussian(0.1), None, {})
    x = jax.tree.map(jnp.asarray, series)
    evidence = Evidence(fit, x, x, key=KEY, num_draws=1, history={}, num_data=None)
    assert _start_size(evidence) == pytest.approx(np.sqrt((9 + 16 + 16) / 3))


def test_other_families_draws_and_scales():
    """Bayes by Backprop, nodes and ensembles, as they start and without a scale."""
    network = MLP(1, 1, (8,), key=jr.key(0))
    fit = lambda model: orn.Fit(model, orn.Gaussian(0.1), None, {})
    assert names(fit(orn.MeanField(network, init_scale=0.1))) == []
    assert set(names(fit(orn.MeanField(network, init_scale=1e-6)))) == {
        *("draws-agree", "diffusion-gone", "bound-underfitted")
    }
    nodes = orn.ImplicitBNN(network, num_components=2, key=jr.key(1))
    assert names(fit(nodes)) == []
    rho = lambda model: model.mixture.rho
    thin = eqx.tree_at(rho, nodes, replace_fn=lambda a: jnp.full_like(a, -14.0))
    assert names(fit(thin)) == ["diffusion-gone"]  # components still differ
    assert names(fit(orn.Ensemble([network, network]))) == ["draws-agree"]
    assert names(fit(orn.Deterministic(network))) == []


def test_classes_by_hand():
    """Shares and skill of class probabilities, in numpy."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)).astype(np.float32)
    split = orn.data.Split(x, (x[:, 0] > 0.3).astype(np.int32))
    network = MLP(2, 2, (), key=jr.key(0))
    fit = orn.Fit(orn.MeanField(network, init_scale=0.3), orn.Categorical(), None, {})
    rows = map(jnp.asarray, (x, split.y))
    evidence = Evidence(fit, *rows, key=KEY, num_draws=8, history={}, num_data=None)
    logits = np.asarray(evidence.draws.prediction.outputs, np.float64)
    probs = scipy.special.softmax(logits, axis=-1)
    entropy = lambda p: np.mean(np.sum(scipy.special.entr(p), axis=-1))
    mean = probs.mean(0)
    share = 1 - entropy(probs) / entropy(mean)
    numbers = draws_agree(evidence).numbers
    assert numbers["epistemic_share"] == pytest.approx(share, rel=1e-3)
    nll = -np.mean(np.log(mean[np.arange(60), split.y]))
    frequencies = np.bincount(split.y) / 60
    assert evidence.skill == pytest.approx(1 - nll / entropy(frequencies), rel=1e-4)
    total = np.mean(np.var(probs, axis=(0, 1)))
    expected = np.mean(np.var(probs, axis=0)) / total
    assert between_draws(evidence) == pytest.approx(expected, rel=1e-4)


def test_bound_underfitted():
    """A Gaussian start that training has not moved, and one that has come to its prior.

    Catches (seen) the KL of the path alone.
    """
    model = lambda width: orn.SDEBNN.for_vectors(
        1, 1, width_sizes=(6,), start_width=width, num_inducing=0, key=jr.key(0)
    )
    narrow, wide = (
        orn.Fit(model(width), orn.Gaussian(0.3), None, {}) for width in (1e-6, 0.9)
    )
    found = diagnose(narrow, DATA.test, key=KEY, num_data=len(DATA.train))
    finding = next(f for f in found.findings if f.name == "bound-underfitted")
    draw = narrow.model(jnp.asarray(DATA.test.x), key=KEY)
    kl = float(sum(draw.terms.values()))
    assert finding.numbers["kl_per_row"] == pytest.approx(kl / len(DATA.train))
    assert "most of it is that of the start w0" in finding.message
    assert f"{kl:,.0f} nats for {len(DATA.train)} rows" in finding.message
    assert "bound-underfitted" not in names(wide)
    many = diagnose(narrow, DATA.test, key=KEY, num_data=100 * len(DATA.train))
    assert "bound-underfitted" not in [f.name for f in many.findings]


def test_band_holds_all():
    """A scale ten times too large, one that is right, and few rows, which may all lie
    in it by chance. Catches (seen) a count without its error."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)).astype(np.float32)
    split = orn.data.Split(x, x + 0.1 * rng.normal(size=x.shape).astype(np.float32))
    network = eqx.tree_at(
        lambda net: (net.layers[0].weight, net.layers[0].bias),
        MLP(1, 1, (), key=jr.key(0)),
        (jnp.ones((1, 1)), jnp.zeros(1)),
    )

    def found(scale: float, rows: int) -> Any:
        fit = orn.Fit(orn.Deterministic(network), orn.Gaussian(scale), None, {})
        few = orn.data.Split(split.x[:rows], split.y[:rows])
        return diagnose(fit, few, key=KEY)

    wide = found(1.0, 400)
    assert "band-holds-all" in [f.name for f in wide.findings]
    assert wide.numbers["coverage_90"] == 1
    right = found(0.1, 400)
    assert "band-holds-all" not in [f.name for f in right.findings]
    y, mean = np.asarray(split.y, np.float64), np.asarray(split.x, np.float64)
    inside = np.mean(np.abs(y - mean) <= scipy.stats.norm.ppf(0.95) * 0.1)
    assert right.numbers["coverage_90"] == pytest.approx(inside, abs=3e-3)
    assert "band-holds-all" not in [f.name for f in found(1.0, 60).findings]
