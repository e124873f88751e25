"""Samples as a random function, their predictions and their diagnostics."""

import dataclasses
import math
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from arviz_import import import_arviz
from scipy import optimize, stats

import ornstein as orn
from ornstein.functions import (
    PosteriorSamples,
    diagnose_chains,
    e_bfmi,
    ess_bulk,
    r_hat,
    split_r_hat,
)
from ornstein.functions.chains._chain_diagnostics import worst_of
from ornstein.nn import PerExample

NUM_CHAINS, NUM_SAMPLES = 3, 5


def linear_samples(*, learn_scale: bool = True, num_outputs: int = 2):
    """A linear network whose sample (c, s) has its own weights and scales."""
    linear = PerExample(eqx.nn.Linear(2, num_outputs, key=jr.key(0)))
    params, network = eqx.partition(linear, eqx.is_inexact_array)
    leaves, treedef = jax.tree.flatten(params)
    rng = np.random.default_rng(0)
    shape = (NUM_CHAINS, NUM_SAMPLES)
    drawn = [rng.normal(size=(*shape, *a.shape)).astype("float32") for a in leaves]
    likelihood = orn.Gaussian(np.ones(num_outputs), learn_scale=learn_scale)
    is_learned = jax.tree.map(lambda name: name != "frozen", likelihood.labels())
    scale, fixed = eqx.partition(likelihood, is_learned)
    scale = jax.tree.map(
        lambda a: rng.normal(-0.5, 0.4, size=(*shape, *a.shape)).astype("float32"),
        scale,
    )
    energy = rng.normal(size=shape).astype("float32")
    return PosteriorSamples(
        network,
        fixed,
        (jax.tree.unflatten(treedef, drawn), scale),
        info={"energy": energy},
    )


def test_an_index_is_one_sample_and_all_samples_come_once():
    """Catches an order that repeats a chain, and an index that picks two samples."""
    samples = linear_samples()
    x = jnp.asarray(np.random.default_rng(1).normal(size=(4, 2)), jnp.float32)
    weight, bias = jax.tree.leaves(samples.positions[0])
    every = np.einsum("csoi,ri->csro", weight, x) + bias[:, :, None]
    seen = []
    for index in range(2 * samples.num_strata):
        output = samples(x, key=jr.key(0), index=index).output
        match = np.all(np.abs(every - np.asarray(output)) < 1e-5, axis=(2, 3))
        assert match.sum() == 1
        seen.append(tuple(np.argwhere(match)[0]))
    num = samples.num_strata
    assert len(set(seen[:num])) == num
    assert seen[:num] == seen[num:]
    # The first few take the chains in turn and are spread over the run.
    assert [chain for chain, _ in seen[:6]] == [0, 1, 2, 0, 1, 2]
    assert [s for _, s in seen[:num:NUM_CHAINS]] == [0, 4, 2, 1, 3]
    # `predict` maps over the same draws, whatever the key.
    fit = linear_samples()
    prediction = orn.predict(fit, x, key=jr.key(7), num_draws=7)
    drawn = np.stack([every[index] for index in seen[:7]])
    np.testing.assert_allclose(prediction.outputs, drawn, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_outputs", [1, 2])
def test_a_sampled_scale_is_each_draws_own(num_outputs):
    """By hand: a mixture of normals with both location and scale of each sample.

    Catches a scale that is averaged, or paired with another sample's weights.
    """
    samples = linear_samples(num_outputs=num_outputs)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4, 2)).astype("float32")
    y = rng.normal(size=(4, num_outputs)).astype("float32")
    num_draws = samples.num_strata + 4  # the first four count twice
    prediction = orn.predict(
        samples, jnp.asarray(x), key=jr.key(0), num_draws=num_draws
    )
    chain, sample = samples.draw_order()
    pick = np.arange(num_draws) % samples.num_strata
    weight, bias, log_scale = (
        a.astype(float)[chain[pick], sample[pick]]
        for a in jax.tree.leaves(samples.positions)
    )
    means = np.einsum("doi,ri->dro", weight, x) + bias[:, None]
    scales = np.broadcast_to(np.exp(log_scale)[:, None], means.shape)

    mixture = stats.norm(means, scales)
    log_prob = mixture.logpdf(y).sum(-1)
    expected = np.log(np.mean(np.exp(log_prob), axis=0))
    np.testing.assert_allclose(prediction.log_prob(jnp.asarray(y)), expected, rtol=1e-4)
    np.testing.assert_allclose(prediction.mean, means.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(prediction.aleatoric, (scales**2).mean(0), rtol=1e-4)
    np.testing.assert_allclose(prediction.epistemic, means.var(0), rtol=1e-4)
    found = prediction.quantile(0.9)
    for row, column in np.ndindex(4, num_outputs):
        at = stats.norm(means[:, row, column], scales[:, row, column])
        root = optimize.brentq(lambda v, at=at: np.mean(at.cdf(v)) - 0.9, -50, 50)
        assert found[row, column] == pytest.approx(root, rel=1e-3, abs=1e-4)
    cut = orn.predict(
        samples, jnp.asarray(x), key=jr.key(0), num_draws=num_draws, keep_draws=False
    )
    np.testing.assert_allclose(cut.variance, prediction.variance, rtol=1e-4)


def test_a_fixed_scale_stays_as_it_is():
    samples = linear_samples(learn_scale=False)
    stored = samples.for_draws(4)
    assert stored.likelihood.log_scale.shape == (2,)
    assert stored.model.num_strata == 4
    assert float(samples.likelihood.scale[0]) == pytest.approx(1.0)


def test_thin_keeps_the_last_of_each_group():
    samples = linear_samples()
    thinned = samples.thin(2)
    assert (thinned.num_chains, thinned.num_samples) == (NUM_CHAINS, 2)
    np.testing.assert_array_equal(
        thinned.info["energy"], samples.info["energy"][:, [1, 3]]
    )
    with pytest.raises(ValueError, match="from 1 to the 5 samples"):
        samples.thin(6)


def test_thin_counts_what_it_leaves_out():
    """As a chain that was thinned while it ran. Catches (seen) divergences that are
    lost, and gradients."""
    diverged = np.zeros((NUM_CHAINS, NUM_SAMPLES), bool)
    diverged[:, 0] = True
    info = {
        "is_divergent": diverged,
        "num_gradients": np.full((NUM_CHAINS, NUM_SAMPLES), 8),
    }
    found = dataclasses.replace(linear_samples(), info=info).thin(2).info
    assert found["is_divergent"].tolist() == [[True, False]] * NUM_CHAINS
    assert found["num_gradients"].tolist() == [[16, 16]] * NUM_CHAINS


def test_samples_are_not_trained():
    samples = linear_samples()
    split = SimpleNamespace(
        x=np.zeros((3, 2), "float32"), y=np.zeros((3, 2), "float32")
    )
    assert set(jax.tree.leaves(samples.labels())) == {"frozen"}
    with pytest.raises(ValueError, match="not trained"):
        orn.fit(samples, split, orn.Gaussian(1.0), key=jr.key(0), num_epochs=1)


def test_unequal_chains_are_refused():
    samples = linear_samples()
    with pytest.raises(ValueError, match="cut longer chains to the shortest"):
        PosteriorSamples(
            samples.network,
            samples.fixed_likelihood,
            samples.positions,
            info={"energy": np.zeros((NUM_CHAINS, NUM_SAMPLES - 1))},
        )


def autoregression(rho: float, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Chains x_t = rho x_{t-1} + sqrt(1 - rho^2) e, from their stationary law."""
    noise = np.random.default_rng(seed).normal(size=shape)
    chain = [noise[:, 0]]
    for t in range(1, shape[1]):
        chain.append(rho * chain[-1] + math.sqrt(1 - rho**2) * noise[:, t])
    return np.stack(chain, axis=1).astype("float32")


def test_diagnostics_of_an_autoregression():
    """Bulk ESS is N (1 - rho) / (1 + rho); a shifted chain raises R-hat.

    Catches chains and samples that are mixed up.
    """
    rho, shape = 0.6, (4, 5000)
    chain = autoregression(rho, shape)
    exact = chain.size * (1 - rho) / (1 + rho)
    assert float(ess_bulk(chain)) == pytest.approx(exact, rel=0.1)
    assert float(r_hat(chain)) == pytest.approx(1.0, abs=0.01)
    assert float(split_r_hat(chain)) == pytest.approx(1.0, abs=0.01)
    chain[0] += 2
    between = np.var([2, 0, 0, 0], ddof=1) * 6 / 7  # halves: 8 chains instead of 4
    assert float(split_r_hat(chain)) == pytest.approx(math.sqrt(1 + between), abs=0.03)
    assert float(r_hat(chain)) > 1.2


def test_r_hat_where_ranks_say_nothing():
    """Of chains that stand apart; of two values that come and go, in each chain alike;
    of one. Catches a worst R-hat that passes over chains which never met.
    """
    apart = np.repeat([[0.0], [0.0], [1.0], [1.0]], 100, axis=1)
    mixing = np.random.default_rng(0).integers(2, size=(4, 100)).astype(float)
    found = np.asarray(r_hat(np.stack([apart, mixing, np.ones((4, 100))], axis=2)))
    assert found[0] == np.inf
    assert found[1] == pytest.approx(1.0, abs=0.03)
    assert np.isnan(found[2])


def test_what_never_moved_is_worth_no_number_of_draws():
    """Beside an output that moves: one that is 1 in all samples, as a saturated
    probability. Catches (seen) a least effective size of 0 of chains that have met, and
    one that passes over chains that stand apart.
    """
    still, moving = np.ones((4, 100)), np.random.default_rng(0).normal(size=(4, 100))
    apart = np.repeat([[0.0], [0.0], [1.0], [1.0]], 100, axis=1)
    found = diagnose_chains(np.stack([still, moving], axis=2))
    alone, scores = diagnose_chains(moving), worst_of(found)
    for name in ("ess_bulk", "ess_tail"):
        assert np.isnan(getattr(found, name)[0])
        assert scores[name] == pytest.approx(float(getattr(alone, name)), rel=1e-5)
        assert worst_of(diagnose_chains(np.stack([still, apart], axis=2)))[name] == 0


def test_diagnostics_agree_with_arviz():
    arviz = import_arviz()
    draws = np.stack(
        [autoregression(rho, (3, 400), seed) for seed, rho in enumerate((0.2, 0.9))],
        axis=2,
    )
    found = diagnose_chains(draws)
    data = arviz.convert_to_dataset({"x": draws})
    for ours, theirs in [
        (found.r_hat, arviz.rhat(data)),
        (found.ess_bulk, arviz.ess(data, method="bulk")),
        (found.ess_tail, arviz.ess(data, method="tail")),
    ]:
        np.testing.assert_allclose(ours, theirs["x"].to_numpy(), rtol=0.02)
    energy = draws[..., 0]
    np.testing.assert_allclose(e_bfmi(energy), arviz.bfmi(energy), rtol=0.01)


def test_diagnostics_of_samples_have_the_shapes_of_what_they_are_of():
    samples = linear_samples()
    for tree in (samples.r_hat(), samples.ess_bulk(), samples.ess_tail()):
        shapes = [a.shape for a in jax.tree.leaves(tree)]
        assert shapes == [(2, 2), (2,), (2,)]
    weight = jax.tree.leaves(samples.positions)[0]
    np.testing.assert_allclose(
        jax.tree.leaves(samples.r_hat())[0][1, 0], r_hat(weight[:, :, 1, 0]), rtol=1e-5
    )
    x = np.random.default_rng(1).normal(size=(4, 2)).astype("float32")
    values = np.einsum("csoi,ri->csro", weight, x)
    values = values + jax.tree.leaves(samples.positions)[1][:, :, None]
    found = samples.function_diagnostics(x)
    assert found.r_hat.shape == (4, 2)
    np.testing.assert_allclose(
        found.ess_bulk[3, 1], ess_bulk(values[:, :, 3, 1]), rtol=1e-3
    )


def test_too_few_samples_for_diagnostics():
    short = linear_samples().thin(2)
    for diagnostic in (short.r_hat, short.ess_bulk, short.ess_tail, short.e_bfmi):
        with pytest.raises(ValueError, match="at least 4 samples of each, got 2"):
            diagnostic()
    no_energy = eqx.tree_at(lambda s: s.info, short, {})
    with pytest.raises(ValueError, match="reports no energy"):
        no_energy.e_bfmi()


@pytest.mark.parametrize(("num_samples", "said"), [(499, None), (1000, 250)])
def test_effective_sizes_of_a_part_say_of_how_many(num_samples, said):
    """Independent samples, of which R-hat and ESS look at 250 to 499 of each chain.
    Catches (seen) an ESS of a quarter of what the chains are worth, without a word."""
    few = linear_samples()
    rng = np.random.default_rng(3)
    long = lambda a: rng.normal(size=(NUM_CHAINS, num_samples, *a.shape[2:]))
    positions, info = jax.tree.map(
        lambda a: long(a).astype("float32"), (few.positions, few.info)
    )
    samples = dataclasses.replace(few, positions=positions, info=info)
    scores = samples.chain_scores(jnp.ones((2, 2)))
    assert scores.get("samples_diagnosed") == said
    most = NUM_CHAINS * (said or num_samples)
    assert 0.5 * most < scores["ess_bulk"] < 1.2 * most


def test_energies_of_batches_have_no_e_bfmi():
    """Catches (seen) an E-BFMI of 2, of noise alone, that a report then praises."""
    samples = linear_samples()
    energy = samples.info["energy"]
    assert samples.e_bfmi().shape == (NUM_CHAINS,)
    info = {"energy": energy, "gradient_norm": energy**2}
    with pytest.raises(ValueError, match="estimates, each from another batch"):
        dataclasses.replace(samples, info=info).e_bfmi()


def test_scores_of_outputs_in_a_tree_are_the_worst_of_all():
    """Catches (seen) a traceback after sampling, of networks whose outputs are two."""
    samples = linear_samples()
    values = samples.function_values(jnp.linspace(-1.0, 1.0, 10).reshape(5, 2))
    both = {"a": diagnose_chains(values), "b": diagnose_chains(10 * values[:, ::-1])}
    alone = {name: worst_of(found) for name, found in both.items()}
    for name, value in worst_of(both).items():
        pick = max if name == "r_hat" else min
        assert value == pick(scores[name] for scores in alone.values())
