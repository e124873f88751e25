"""A network that says what its parameters are for, in the families around it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array

from ornstein.functions import (
    Ensemble,
    MeanField,
    NormalFamily,
    PosteriorSamples,
    SampledKL,
)
from ornstein.likelihood import Gaussian
from ornstein.network import parameter_masks, parameter_parts
from ornstein.nn import MLP
from ornstein.prior import (
    DistributionPrior,
    GaussianPrior,
    fan_in_prior,
    normal_leaves,
)

X = np.linspace(-1, 1, 8, dtype=np.float32)[:, None]


class Parted(eqx.Module):
    """As a network in whitened coordinates, with a rest that it does not name."""

    start: Array
    path: tuple[Array, Array]
    points: MLP
    shift: Array

    def __call__(self, x: Array) -> Array:
        slope, bend = self.path
        return (
            self.points(self.start[0] * x + bend[0] * x**2) + slope[0] + self.shift[0]
        )

    def parameter_parts(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "start": lambda net: net.start,
            "path": lambda net: net.path,
            "points": lambda net: net.points,
        }


def parted(seed: int = 0) -> Parted:
    keys = jr.split(jr.key(seed), 4)
    path = (jr.normal(keys[1], (3,)), jr.normal(keys[2], (1,)))
    return Parted(
        jr.normal(keys[0], (1,)), path, MLP(1, 1, (2,), key=keys[3]), jnp.ones(1)
    )


def test_masks():
    """Each number is in one part; what is in none is "weights"; other networks have
    nothing else. Catches (seen) numbers of a part that count once more in the rest."""
    network = parted()
    params = eqx.filter(network, eqx.is_inexact_array)
    masks = parameter_masks(network, params)
    sizes = {k: len(jax.tree.leaves(eqx.filter(params, m))) for k, m in masks.items()}
    assert sizes == {"start": 1, "path": 2, "points": 4, "weights": 1}
    some = eqx.tree_at(lambda net: net.start, params, None)
    assert set(parameter_masks(network, some)) == {"path", "points", "weights"}
    assert list(parameter_parts(MLP(1, 1, (), key=jr.key(0)))) == ["weights"]


def by_hand(family: NormalFamily, where: Callable[[Any], Any]) -> float:
    """KL to N(0, 1), number by number."""
    total = 0.0
    means, rhos = map(jax.tree.leaves, (where(family.mean), where(family.rho)))
    for mean, rho in zip(means, rhos, strict=True):
        scale = np.log1p(np.exp(np.asarray(rho, np.float64)))
        mean = np.asarray(mean, np.float64)
        total += 0.5 * np.sum(mean**2 + scale**2 - 1 - 2 * np.log(scale))
    return total


PLACES: dict[str, Callable[[Any], Any]] = {
    "kl_initial": lambda net: net.start,
    "kl_path": lambda net: net.path,
    "kl_points": lambda net: net.points,
    "kl_weights": lambda net: net.shift,
}


def test_kl_of_each_part():
    """Number by number. Catches (seen) a part that counts twice."""
    model = MeanField(parted(), GaussianPrior(1.0), init_scale=0.3)
    draw = model(jnp.asarray(X), key=jr.key(1))
    assert set(draw.terms) == set(PLACES)
    for name, where in PLACES.items():
        assert float(draw.terms[name]) == pytest.approx(by_hand(model.family, where))
    assert float(sum(draw.terms.values())) == pytest.approx(float(draw.kl), rel=1e-5)


@pytest.mark.parametrize("is_closed", [True, False])
def test_sampled_kls_of_parts_add_up(is_closed: bool):
    """To the draw's own, where there is no closed form of a part; with one it is
    that, whatever estimator the loss has."""
    laplace = pytest.importorskip("numpyro.distributions").Laplace(0.0, 1.0)
    prior = GaussianPrior(1.0) if is_closed else DistributionPrior(laplace)
    model = MeanField(parted(), prior, init_scale=0.3, kl=SampledKL())
    draw = model(jnp.asarray(X), key=jr.key(1), index=0)
    closed = float(sum(by_hand(model.family, where) for where in PLACES.values()))
    expected = closed if is_closed else float(draw.kl)
    assert float(sum(draw.terms.values())) == pytest.approx(expected, rel=1e-4)


def test_a_part_put_back():
    """Its weights have the prior's law, the others the very draws that they had.

    Catches (seen) a KL that forgets what was not put back.
    """
    prior = GaussianPrior(0.5, mean=2.0)
    model = MeanField(parted(), prior, init_scale=1e-3)
    parts = model.posterior_parts()
    assert parts.parts == ("start", "path", "points", "weights")
    put_back = parts.at_prior(("path",), jr.key(0))
    draws = jax.vmap(lambda key: put_back.family.sample(key=key))(
        jr.split(jr.key(1), 4000)
    )
    own = jax.vmap(lambda key: model.family.sample(key=key))(jr.split(jr.key(1), 4000))
    slopes = np.asarray(draws.path[0], np.float64).ravel()
    assert abs(slopes.mean() - 2.0) < 4.5 * 0.5 / slopes.size**0.5
    assert abs(slopes.std() - 0.5) < 4.5 * 0.5 / (2 * slopes.size) ** 0.5
    np.testing.assert_array_equal(draws.start, own.start)
    np.testing.assert_array_equal(
        draws.points.layers[0].weight, own.points.layers[0].weight
    )
    terms = put_back(jnp.asarray(X), key=jr.key(2)).terms
    before = model(jnp.asarray(X), key=jr.key(2)).terms
    assert float(terms.pop("kl_path")) == 0
    assert float(before.pop("kl_path")) > 1
    assert {k: float(v) for k, v in terms.items()} == pytest.approx(
        {k: float(v) for k, v in before.items()}
    )


@pytest.mark.parametrize("is_by_leaf", [False, True])
def test_a_posterior_that_is_the_prior_is_put_back_to_itself(is_by_leaf: bool):
    """Draw by draw: an audit is to see no change where there is none. Catches (seen)
    draws with a noise of their own, of which 32 differ from 32 others by 0.05 nats a
    row and six times the standard error over 500 rows."""
    network = MLP(2, 1, (3,), key=jr.key(0))
    prior = fan_in_prior(network) if is_by_leaf else GaussianPrior(0.5)
    model = MeanField(network, prior)
    mean = jax.tree.map(jnp.zeros_like, model.family.mean)
    scale = jax.tree.map(
        lambda m, p: jnp.full_like(m, p.scale), mean, normal_leaves(prior, mean)
    )
    model = eqx.tree_at(lambda m: m.family, model, NormalFamily.around(mean, scale))
    put_back = model.posterior_parts().at_prior(("weights",), jr.key(1))
    x = jnp.ones((4, 2))
    ours, theirs = (f(x, key=jr.key(2), index=5).output for f in (model, put_back))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def samples_of(network: Any) -> PosteriorSamples:
    params, rest = eqx.partition(network, eqx.is_inexact_array)
    many = jax.tree.map(lambda a: jnp.broadcast_to(a, (2, 500, *a.shape)), params)
    return PosteriorSamples(rest, Gaussian(0.5), (many, None), info={})


def test_samples_put_back():
    """Every sample's part is a fresh draw of the prior, and other parts stay. A network
    of parts is known to be standard normal, of another the prior must be given. Catches
    (seen) one draw for all samples, and thinned ones that forget their prior."""
    samples = samples_of(parted())
    parts = samples.posterior_parts()
    assert parts.parts == ("start", "path", "points", "weights")
    put_back = parts.at_prior(("path",), jr.key(0)).positions[0]
    slopes = np.asarray(put_back.path[0], np.float64).ravel()
    assert abs(slopes.mean()) < 4.5 / slopes.size**0.5
    assert abs(slopes.std() - 1) < 4.5 / (2 * slopes.size) ** 0.5
    np.testing.assert_array_equal(put_back.start, samples.positions[0].start)
    plain = samples_of(MLP(1, 1, (2,), key=jr.key(0)))
    assert plain.posterior_parts().parts == ()
    known = plain.with_prior(GaussianPrior(0.1)).thin(5).posterior_parts()
    assert known.parts == ("weights",)
    drawn = known.at_prior(("weights",), jr.key(0))
    spread = np.std(np.asarray(drawn.positions[0].layers[0].weight))
    assert spread == pytest.approx(0.1, rel=0.1)
    draw = drawn(jnp.asarray(X), key=jr.key(1), index=3)
    assert draw.output.shape == (8, 1)


def test_members_put_back():
    """Each by itself: what is left of a member is its own."""
    members = [MeanField(parted(i), init_scale=0.3) for i in range(2)]
    ensemble = Ensemble(members)
    posterior = ensemble.posterior_parts()
    put_back = posterior.at_prior(("start", "points"), jr.key(0))
    for number, member in enumerate(members):
        ours = member.posterior_parts().at_prior(("start", "points"), jr.key(0))
        one = put_back.member(number)
        assert bool(eqx.tree_equal(one.family, ours.family))
