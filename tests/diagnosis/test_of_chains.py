"""What a diagnosis says of chains: of those that are apart, and of divergent steps."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest
import scipy.stats

import ornstein as orn
from ornstein.diagnosis._chains_apart import _by_chance, chains_apart
from ornstein.diagnosis._draws_agree import draws_agree
from ornstein.diagnosis._evidence import Evidence
from ornstein.functions import PosteriorSamples
from ornstein.nn import MLP

DATA = orn.data.load("toy/cos")


def chains(
    spread: float,
    *,
    num_divergent: int = 0,
    shape: tuple[int, int] = (4, 30),
    noise: float = 0.1,
    drift: float = 0.0,
    seed: int = 1,
) -> PosteriorSamples:
    """Chains about places that lie `spread` apart, or that move on by `drift`."""
    num_chains, num_samples = shape
    like, rest = eqx.partition(MLP(1, 1, (8,), key=jr.key(0)), eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(like)
    keys = jr.split(jr.key(seed), 2 * len(leaves))

    def sample(leaf, centre_key, key):
        way = jr.normal(centre_key, (num_chains, 1, *leaf.shape))
        moved = jnp.arange(float(num_samples)).reshape(1, -1, *(1 for _ in leaf.shape))
        each = noise * jr.normal(key, (*shape, *leaf.shape))
        return leaf[None, None] + (spread + drift * moved) * way + each

    params = [sample(*each) for each in zip(leaves, keys[::2], keys[1::2], strict=True)]
    is_divergent = jnp.arange(num_chains * num_samples).reshape(shape) < num_divergent
    return PosteriorSamples(
        rest,
        orn.Gaussian(1.0),
        (jax.tree.unflatten(tree, params), None),
        info={"is_divergent": is_divergent},
        prior=orn.GaussianPrior(1.0),
    )


def names(samples: PosteriorSamples) -> set[str]:
    found = orn.diagnose(samples, DATA.train, key=jr.key(0))
    assert {"r_hat", "divergent_share"} <= set(found.numbers)
    return {finding.name for finding in found.findings}


@pytest.mark.parametrize(
    ("spread", "num_divergent", "expected"),
    [
        (0.0, 0, set()),
        (0.0, 1, set()),  # 0.8 %: may be chance
        (0.0, 3, {"chains-divergent"}),
        (1.0, 0, {"chains-apart"}),
    ],
)
def test_chains_are_told(spread, num_divergent, expected):
    """Catches (seen) a diagnosis that finds no fault with chains that have not met."""
    ours = {"chains-apart", "chains-divergent"}
    assert names(chains(spread, num_divergent=num_divergent)) & ours == expected


def test_what_is_said_is_in_the_words_of_the_door():
    samples = chains(1.0, num_divergent=12)
    found = orn.diagnose(samples, DATA.train, key=jr.key(0))
    said = {finding.name: finding.message for finding in found.findings}
    assert "12 of 120 samples follow a divergent step" in said["chains-divergent"]
    assert "`target_acceptance`" in said["chains-divergent"]
    spelt = said["chains-apart"].spelt("--{}".format)
    assert "--num_warmup" in spelt
    assert "--start_from" in spelt


def evidence(samples: PosteriorSamples) -> Evidence:
    x, y = jnp.asarray(DATA.train.x), jnp.asarray(DATA.train.y)
    options: dict[str, Any] = {"num_draws": 8, "history": {}, "num_data": None}
    of = samples.for_draws(8)
    return Evidence(of, x, y, key=jr.key(0), whole=samples, **options)


@pytest.mark.parametrize("shape", [(4, 6), (1, 10)])
def test_few_samples_of_chains_that_agree_raise_no_alarm(shape: tuple[int, int]):
    """Independent samples. Catches (seen) a threshold that knows no number of them."""
    found = [evidence(chains(0.0, shape=shape, seed=seed)) for seed in range(10)]
    results = [chains_apart(each) for each in found]
    assert all(result.message is None for result in results)
    assert sum(result.numbers["r_hat"] > 1.2 for result in results) >= 2
    num_chains, num_samples = shape
    m, n = 2 * num_chains, num_samples // 2
    level = 0.00135 / (2 * min(20, len(DATA.train)))
    f = scipy.stats.f.isf(level, m - 1, m * (n - 1))
    assert _by_chance(found[0]) == pytest.approx(((n - 1) / n + f / n) ** 0.5)


def test_few_samples_of_chains_that_are_apart():
    """And of one chain that is on its way, which is not called several."""
    apart = chains_apart(evidence(chains(3.0, shape=(4, 8))))
    assert str(apart.message).startswith("The chains say different things")
    one = chains_apart(evidence(chains(0.0, shape=(1, 30), drift=0.1)))
    assert str(one.message).startswith("The halves of the chain say different things")


def test_chains_that_did_not_move_are_told_of_their_steps():
    """Catches (seen) advice about scales and a KL, which chains have not."""
    still = draws_agree(evidence(chains(0.0, noise=0.0)))
    assert "change `step_size`" in str(still.message)
    assert "KL" not in str(still.message)
