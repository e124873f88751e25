"""Distances and the ceiling, by hand."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from agreement.tiny_problems import blobs, line
from scipy.stats import norm

from ornstein import Gaussian
from ornstein.agreement._compare import (
    Chain,
    ceiling,
    distances,
    r_hat_of_parts,
)
from ornstein.agreement._predictive import (
    Predictive,
    mixture,
    nll,
    of_probabilities,
    packed,
    predictive,
    unpacked,
)
from ornstein.functions import split_r_hat
from ornstein.prediction import Prediction

FACTS = {"num_gradients": 10, "seconds": 1.0, "acceptance_rate": 0.9}


def same_on_all_rows(masses: list[float], num_draws: int) -> Predictive:
    y = np.asarray(blobs().test.y)
    found = of_probabilities(np.tile(masses, (len(y), 1)), y)
    return found._replace(num_draws=num_draws)


def test_ceiling_leaves_each_chain_out():
    """By hand. Catches a chain held to a mixture in which it has a part (seen: a third
    too near), to itself, and halves that count as wholes."""
    chances = ([0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.8, 0.2])
    facts = FACTS | {"num_divergent": 0}
    chains = [
        Chain([same_on_all_rows(p, 4), same_on_all_rows(p, 4)], [facts, facts])
        for p in chances
    ]
    whole, one, half = ceiling(chains, blobs())
    # Of each chain against the mean of the two others.
    gaps = [0.85, 0.35, 0.5]
    assert one["total_variation"] == pytest.approx(np.mean(gaps))
    assert one["worst_total_variation"] == pytest.approx(0.85)
    assert half["total_variation"] == pytest.approx(one["total_variation"])
    assert (whole["num_draws"], one["num_draws"], half["num_draws"]) == (24, 8, 4)
    assert "agreement" not in whole
    assert (whole["num_gradients"], half["num_gradients"]) == (60, 10)
    short = [Chain(chain.pieces[:1], chain.facts[:1]) for chain in chains]
    assert len(ceiling(short, blobs())) == 2  # a piece is no half


def test_distances_of_classes():
    """Catches a distance that is summed and not halved, and top classes of one row."""
    y = np.array([0, 1])
    p = of_probabilities(np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]), y)
    q = of_probabilities(np.array([[0.5, 0.4, 0.1], [0.5, 0.2, 0.3]]), y)
    found = distances(p, q, blobs())
    assert found["total_variation"] == pytest.approx((0.1 + 0.3) / 2)
    assert found["agreement"] == 0.5


def gaussian_prediction(getkey_seed: int, num_draws: int) -> Prediction:
    rng = np.random.default_rng(getkey_seed)
    outputs = jnp.asarray(rng.normal(size=(num_draws, 5, 1)), jnp.float32)
    scale = jnp.asarray(rng.uniform(0.2, 1, (num_draws, 1, 1)), jnp.float32)
    return Prediction(outputs, with_scales(jnp.log(scale)))


def with_scales(log_scale) -> Gaussian:
    """Of each draw, beside outputs of (draws, rows, 1)."""
    return eqx.tree_at(lambda one: one.log_scale, Gaussian(1.0), log_scale)


def test_masses_are_those_of_the_mixture():
    """Against scipy. Catches draws that share one scale, and tails left out."""
    problem = line()
    prediction = gaussian_prediction(0, 60)
    y = np.asarray(problem.test.y)
    found = predictive(prediction, y, problem.edges)
    outputs = np.asarray(prediction.outputs)
    scale = np.exp(np.asarray(prediction.likelihood.log_scale))
    cdf = norm.cdf((problem.edges - outputs) / scale).mean(axis=0)
    expected = np.diff(cdf, prepend=0, append=1)
    np.testing.assert_allclose(found.masses, expected, atol=1e-6)
    np.testing.assert_allclose(found.masses.sum(axis=1), 1, atol=1e-6)
    density = norm.pdf(y, outputs[:, :, :], scale).mean(axis=0)[:, 0]
    np.testing.assert_allclose(found.density, density, rtol=1e-4)
    variance = outputs.var(axis=0) + (scale**2).mean()
    np.testing.assert_allclose(found.spread, np.sqrt(variance), rtol=1e-4)


def test_mixture_is_of_all_draws():
    """Catches parts weighed alike, and a spread without what lies between parts."""
    problem = line()
    prediction = gaussian_prediction(1, 30)
    outputs, scale = prediction.outputs, prediction.likelihood.log_scale
    assert outputs is not None
    part = lambda rows: predictive(
        Prediction(outputs[rows], with_scales(scale[rows])),
        problem.test.y,
        problem.edges,
    )
    whole = part(slice(None))
    mixed = mixture([part(slice(0, 10)), part(slice(10, 30))])
    assert mixed.num_draws == 30
    for one, other in zip(mixed[1:], whole[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


def test_r_hat_of_parts_is_split_r_hat():
    """Catches a variance of the wrong divisor."""
    draws = np.random.default_rng(0).normal(size=(3, 40, 5, 2))
    draws[0] += 0.5
    halves = np.concatenate([draws[:, :20], draws[:, 20:]])
    parts = [
        of_probabilities(half.mean(axis=0), np.zeros(5, int))._replace(
            num_draws=20, mean=half.mean(axis=0), sd=half.std(axis=0)
        )
        for half in halves
    ]
    np.testing.assert_allclose(r_hat_of_parts(parts), split_r_hat(draws), rtol=1e-6)


def test_kept_distributions_come_back():
    """Catches a field that is kept as another."""
    problem = line()
    found = predictive(gaussian_prediction(2, 8), problem.test.y, problem.edges)
    again = Predictive.from_json(found.to_json(has_sd=True), problem.test.y)
    for one, other in zip(again, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=6e-4, atol=1e-7)
    probs = of_probabilities(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([0, 1]))
    again = Predictive.from_json(probs.to_json(has_sd=False), np.array([0, 1]))
    for one, other in zip(again, probs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_damaged_array_is_refused():
    """By a sentence, whatever is wrong with it."""
    kept = packed(np.arange(3.0))
    for damage in ({"data": kept["data"][:-5]}, {"shape": [4]}, {"data": "AAAA"}):
        with pytest.raises(ValueError, match="damaged: take the file of pieces back"):
            unpacked(kept | damage)
    np.testing.assert_array_equal(unpacked(kept), np.arange(3.0))


@pytest.mark.parametrize("is_classes", [True, False])
def test_what_is_far_out_is_not_lost_in_a_file(is_classes: bool):
    """The log density of a target that a sure method rules out. Catches (seen) one
    that is 0 in a file's 16 or 32 bits, and counts as 69 nats whatever it was."""
    y = np.array([0, 1])
    chance = 1e-9 if is_classes else 1e-60
    found = of_probabilities(np.array([[1 - chance, chance], [1.0, chance]]), y)
    if not is_classes:
        found = found._replace(spread=np.ones((2, 1)))
    again = Predictive.from_json(found.to_json(has_sd=False), y)
    assert nll(found) == pytest.approx(-np.log(chance) / 2, rel=1e-6)
    assert nll(again) == pytest.approx(nll(found), rel=1e-6)
