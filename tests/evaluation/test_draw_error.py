"""What other draws would have changed, against trials that draw again."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import load
from ornstein.evaluation import Relative, audit
from ornstein.evaluation._ablation import nll_gain
from ornstein.evaluation._draw_error import draw_blocks, draw_error
from ornstein.functions import PosteriorSamples
from ornstein.nn import MLP
from ornstein.prediction import Prediction

DATA = load("toy/cos")
PRIOR = orn.GaussianPrior(1.0)
NUM_TRIALS = 40


def samples(key: jax.Array, *, repeats: int = 1, chains: int = 4, scale: float = 1.0):
    """Prior draws as if chains had found them, each `repeats` times in a row."""
    like, rest = eqx.partition(MLP(1, 1, (8,), key=jr.key(0)), eqx.is_inexact_array)
    keys = jr.split(key, (chains, 48 // repeats))
    draw = lambda key: PRIOR.sample(like, key=key)
    params = jax.vmap(jax.vmap(draw))(keys)
    params = jax.tree.map(lambda a: scale * a.repeat(repeats, axis=1), params)
    positions = (params, None)
    return PosteriorSamples(rest, orn.Gaussian(1.0), positions, info={}, prior=PRIOR)


def put_back(found: PosteriorSamples, trial: int) -> Relative:
    """What `audit` says of it, without its other scores."""
    at_prior = found.posterior_parts().at_prior(("weights",), jr.key(1000 + trial))
    both = [
        orn.predict(each, DATA.test.x, key=jr.key(0), num_draws=32)
        for each in (found, at_prior)
    ]
    gain, rows_se = nll_gain(*both, DATA.test.y)
    draws = draw_error(*both, DATA.test.y, draw_blocks(found, 32))
    return Relative(
        "put back", "put back", {}, gain, math.hypot(rows_se, draws.se), *draws
    )


def counts(relative: Relative) -> bool:
    return abs(relative.settled_gain) > max(3 * relative.gain_se, 1e-3)


@pytest.mark.parametrize(("repeats", "chains"), [(1, 4), (48, 8), (12, 1)])
def test_draws_of_the_prior_are_not_changed_by_it(repeats: int, chains: int):
    """Samples that are the prior's, put back to it; and chains that stood still.

    Catches (seen) errors over rows alone, which find a change in 34 of 40 trials, and
    an error over samples alone where chains stand still.
    """
    found = [
        put_back(samples(jr.key(99 + i), repeats=repeats, chains=chains), i)
        for i in range(NUM_TRIALS)
    ]
    num_false = sum(map(counts, found))
    assert num_false <= 2, num_false


def test_a_change_is_found():
    """Of samples whose weights are a tenth of the prior's: every function near 0."""
    found = audit(samples(jr.key(99), scale=0.1), DATA, key=jr.key(0)).relatives[1]
    assert counts(found)
    assert 0 < found.draws_se <= found.gain_se


def test_the_error_is_that_of_other_draws():
    """The spread over trials, of 31 degrees of freedom. Catches (seen) a factor of
    1/B."""
    found = [put_back(samples(jr.key(99 + i)), i) for i in range(NUM_TRIALS)]
    spread = np.std([each.gain for each in found], ddof=1)
    error = np.sqrt(np.mean([each.draws_se**2 for each in found]))
    assert 0.7 < spread / error < 1.4, spread / error


def test_which_draws_depend_on_each_other():
    """Chains take turns; of two of them, halves; repeats are one; strata go round."""
    four, two = samples(jr.key(0)), samples(jr.key(0), chains=2)
    each, chain = draw_blocks(four, 8)
    assert each.tolist() == list(range(8))
    assert chain.tolist() == [0, 1, 2, 3] * 2
    # In van der Corput's order: the first sample, the middle one, a quarter, ...
    assert draw_blocks(two, 6)[1].tolist() == [0, 2, 1, 3, 0, 2]
    assert draw_blocks(two.thin(48), 4)[0].tolist() == [0, 1, 0, 1]
    net = lambda i: orn.MeanField(MLP(1, 1, (), key=jr.key(i)))
    members = orn.Ensemble([net(0), net(1)])
    assert [a.tolist() for a in draw_blocks(members, 8)] == [[0, 0, 1, 1, 2, 2, 3, 3]]
    assert [a.tolist() for a in draw_blocks(members, 6)] == [[0, 1, 2, 3, 4, 5]]


def test_a_single_sample_says_nothing():
    """Of what another would have changed."""
    one = samples(jr.key(0), chains=1).thin(48)
    found = audit(one, DATA, key=jr.key(0), num_draws=2)
    assert found.verdict == "in between"
    assert "these draws are too few to tell" in found.sentence
    assert found.to_json()["relatives"][1]["draws_se"] is None
    with pytest.raises(ValueError, match="`num_draws` must be at least 2, got 1"):
        audit(one, DATA, key=jr.key(0), num_draws=1)


def test_few_wide_draws_are_not_evidence_against_them():
    """One predictive density, in closed form and as a mixture over 32 wide draws.

    Linear functions of 200 numbers, three times as wide as the noise: the mixture's NLL
    is too high by 0.13 nats a row. Catches (seen) a gain that counts with that in it.
    """
    rng, width, num_rows, gains, settled = np.random.default_rng(0), 3.0, 500, [], []
    for _ in range(8):
        x = rng.normal(size=(num_rows, 200))
        x /= np.linalg.norm(x, axis=1, keepdims=True)  # so that all are as wide
        truth, *draws = width * rng.normal(size=(33, 200))
        y = (x @ truth + rng.normal(size=num_rows))[:, None]
        outputs = jnp.stack([x @ draw for draw in draws])[..., None]
        mixture = Prediction(outputs, orn.Gaussian(1.0))
        exact = Prediction(jnp.zeros_like(outputs), orn.Gaussian((width**2 + 1) ** 0.5))
        error = draw_error(exact, mixture, y, [np.arange(32)])
        gain, rows_se = nll_gain(exact, mixture, y)
        found = Relative("a", "b", {}, gain, math.hypot(rows_se, error.se), *error)
        assert not counts(found)
        gains.append(gain)
        settled.append(found.settled_gain)
    assert np.mean(gains) > 0.1
    assert abs(np.mean(settled)) < 0.03
