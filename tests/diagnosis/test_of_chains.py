"""What a diagnosis says of chains: of those that are apart, and of divergent steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import ornstein as orn
from ornstein.functions import PosteriorSamples
from ornstein.nn import MLP

DATA = orn.data.load("toy/cos")


def chains(spread: float, *, num_divergent: int = 0) -> PosteriorSamples:
    """Four chains of 30 samples, about places that lie `spread` apart."""
    like, rest = eqx.partition(MLP(1, 1, (8,), key=jr.key(0)), eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(like)
    keys = jr.split(jr.key(1), 2 * len(leaves))

    def sample(leaf, centre_key, key):
        centre = spread * jr.normal(centre_key, (4, 1, *leaf.shape))
        return leaf[None, None] + centre + 0.1 * jr.normal(key, (4, 30, *leaf.shape))

    params = [sample(*each) for each in zip(leaves, keys[::2], keys[1::2], strict=True)]
    is_divergent = jnp.arange(120).reshape(4, 30) < num_divergent
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
