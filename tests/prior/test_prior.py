"""Densities against SciPy and quadrature, samples against densities."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats

from ornstein import nn
from ornstein.prior import (
    AbstractLeafPrior,
    ByLeaf,
    DistributionPrior,
    GaussianPrior,
    LaplacePrior,
    ScaleMixturePrior,
    fan_in_prior,
)

PRIORS = {
    "normal": (GaussianPrior(0.5, mean=0.2), scipy.stats.norm(0.2, 0.5)),
    "laplace": (LaplacePrior(0.7), scipy.stats.laplace(0, 0.7)),
    "student": (
        DistributionPrior(dist.StudentT(4.0, 0.0, 0.3)),
        scipy.stats.t(4, 0, 0.3),
    ),
}


@pytest.mark.parametrize("name", PRIORS)
def test_density_and_samples_against_scipy(name):
    """Catches a scale for a variance, a lost constant, samples of another width."""
    prior, reference = PRIORS[name]
    params = {"a": jnp.linspace(-3.0, 3.0, 7), "b": None, "c": jnp.ones((2, 2))}
    values = np.concatenate([params["a"], np.ones(4)])
    expected = np.sum(reference.logpdf(values))
    np.testing.assert_allclose(prior.log_prob(params), expected, rtol=1e-5)
    drawn = prior.sample({"a": jnp.zeros(20_000), "b": None}, key=jax.random.key(0))
    assert scipy.stats.kstest(np.asarray(drawn["a"]), reference.cdf).pvalue > 1e-5


@pytest.mark.parametrize("name", ["normal", "laplace"])
def test_cross_entropy_against_quadrature(name, x64):
    prior, reference = PRIORS[name]
    mean, scale = np.array([0.0, 0.3, -2.0]), np.array([0.05, 0.4, 1.5])
    grid = np.linspace(-20, 20, 400_001)
    q = scipy.stats.norm.pdf(grid[:, None], mean, scale)
    expected = -np.trapezoid(q * reference.logpdf(grid)[:, None], grid, axis=0).sum()
    found = prior.cross_entropy([jnp.asarray(mean)], [jnp.asarray(scale)])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("narrow", [0.5, math.exp(-6), math.exp(-9)])
def test_scale_mixture_against_its_two_normals(narrow):
    """In double precision by SciPy; far out, the wide normal alone, slopes too."""
    prior = ScaleMixturePrior(0.25, wide_scale=1.5, narrow_scale=narrow)
    values = np.concatenate([np.linspace(-2, 2, 41), narrow * np.linspace(0, 8, 33)])
    normal = scipy.stats.norm
    density = 0.25 * normal(0, 1.5).pdf(values) + 0.75 * normal(0, narrow).pdf(values)
    found = prior.leaf_log_prob(jnp.asarray(values, jnp.float32))
    np.testing.assert_allclose(found, np.log(density), rtol=2e-5, atol=2e-5)
    far = jnp.array([50.0, -1e4])
    log_prob, slope = jax.vmap(jax.value_and_grad(prior.leaf_log_prob))(far)
    expected = math.log(0.25) + normal(0, 1.5).logpdf(np.asarray(far))
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)
    np.testing.assert_allclose(slope, -far / 1.5**2, rtol=1e-5)


def test_scale_mixture_samples():
    prior = ScaleMixturePrior(0.25, wide_scale=1.5, narrow_scale=0.1)
    drawn = prior.leaf_sample(jnp.zeros(20_000), key=jax.random.key(0))
    normal = scipy.stats.norm
    cdf = lambda w: 0.25 * normal(0, 1.5).cdf(w) + 0.75 * normal(0, 0.1).cdf(w)
    assert scipy.stats.kstest(np.asarray(drawn), cdf).pvalue > 1e-5
    assert prior.cross_entropy([drawn], [drawn]) is None


def test_a_prior_of_each_leafs_own():
    """Densities and cross-entropies add up; one without a closed form leaves none."""
    wide, narrow = GaussianPrior(2.0), LaplacePrior(0.1)
    a, b, scale = jnp.array([1.0, -2.0]), jnp.array([0.3]), jnp.array([0.5])
    both = ByLeaf({"a": wide, "b": narrow})
    params, scales = {"a": a, "b": b}, {"a": jnp.ones(2), "b": scale}
    expected = wide.log_prob(a) + narrow.log_prob(b)
    np.testing.assert_allclose(both.log_prob(params), expected, rtol=1e-6)
    found = both.cross_entropy(params, scales)
    parts = (wide.cross_entropy(a, jnp.ones(2)), narrow.cross_entropy(b, scale))
    expected = sum(float(part) for part in parts if part is not None)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    mixed = ByLeaf({"a": wide, "b": ScaleMixturePrior()})
    assert mixed.cross_entropy(params, scales) is None
    drawn = both.sample(
        {"a": jnp.zeros(4_000), "b": jnp.zeros(4_000)}, key=jax.random.key(0)
    )
    assert scipy.stats.kstest(np.asarray(drawn["a"]) / 2, "norm").pvalue > 1e-5
    assert scipy.stats.kstest(np.asarray(drawn["b"]) / 0.1, "laplace").pvalue > 1e-5


def test_fan_in_prior_keeps_outputs_of_one_size():
    """Each layer's own divisor, also with the axes the other way round."""
    key = jax.random.key(0)
    for layer, shape in (
        (nn.Linear(100, 3, key=key), (100, 3)),
        (eqx.nn.Linear(100, 3, key=key), (3, 100)),
    ):
        prior = fan_in_prior(layer, scale=2.0)
        params = eqx.filter(layer, eqx.is_inexact_array)
        zeros = jax.tree.map(jnp.zeros_like, params)
        num_bias = 3
        in_bias = 100 if isinstance(layer, nn.Linear) else 1
        expected = -300 * math.log(0.2 * math.sqrt(2 * math.pi))
        expected -= num_bias * math.log(2 / math.sqrt(in_bias) * math.sqrt(2 * math.pi))
        assert params.weight.shape == shape
        np.testing.assert_allclose(prior.log_prob(zeros), expected, rtol=1e-5)


def test_refuses_what_is_no_prior():
    params = {"w": jnp.zeros((2, 3))}
    GaussianPrior(np.ones((2, 3))).check(params)
    with pytest.raises(ValueError, match=r"shape \(3,\), but \['w'\] has \(2, 3\)"):
        GaussianPrior(np.ones(3)).check(params)
    with pytest.raises(ValueError, match="of `ByLeaf` do not fit"):
        ByLeaf({"v": GaussianPrior()}).check(params)
    network = nn.MLP(2, 1, (3,), key=jax.random.key(0))
    priors = jax.tree.map(
        lambda w: GaussianPrior(0.5, mean=w) if eqx.is_inexact_array(w) else w, network
    )
    fits = ByLeaf({"w": GaussianPrior()})
    unchecked = eqx.tree_at(lambda prior: prior.priors, fits, priors)
    with pytest.raises(TypeError, match="which is no prior: map over the parameters"):
        unchecked.check(eqx.filter(network, eqx.is_inexact_array))
    with pytest.raises(ValueError, match="`scale` of a prior must be positive"):
        LaplacePrior(0.0)
    with pytest.raises(ValueError, match="above 0 and below 1, got 1"):
        ScaleMixturePrior(1.0)
    with pytest.raises(ValueError, match="must be below `wide_scale`"):
        ScaleMixturePrior(wide_scale=0.1, narrow_scale=0.2)
    for scales in ({"narrow_scale": 1e-20}, {"narrow_scale": 1e-9, "wide_scale": 1e30}):
        with pytest.raises(ValueError, match="density at 0 overflows beside"):
            ScaleMixturePrior(**scales)
    assert jnp.isfinite(
        ScaleMixturePrior(narrow_scale=1e-19).leaf_log_prob(jnp.zeros(1))
    )
    with pytest.raises(ValueError, match="leave out `.to_event`"):
        DistributionPrior(dist.Normal(np.zeros(2), 1.0).to_event(1))
    with pytest.raises(ValueError, match="choose one on the whole line"):
        DistributionPrior(dist.Gamma(1.0, 1.0))


class _FanIn(AbstractLeafPrior):
    """A user's: the law of a leaf depends on its shape."""

    scale: float

    def leaf_log_prob(self, value):
        return -0.5 * value.shape[-1] * (value / self.scale) ** 2

    def leaf_sample(self, like, *, key):
        z = jax.random.normal(key, like.shape, like.dtype)
        return self.scale * like.shape[-1] ** -0.5 * z

    def leaf_cross_entropy(self, mean, scale):
        del mean, scale

    def leaf_check(self, shape, name):
        del shape, name


def test_draws_leaf_by_leaf_what_has_a_law_of_its_leaf(getkey):
    """Catches leaves that are drawn together though their laws differ (seen)."""
    like = {"a": jnp.zeros((10, 100)), "b": jnp.zeros((1000, 1))}
    drawn = _FanIn(1.0).sample(like, key=getkey())
    assert float(drawn["a"].std()) == pytest.approx(0.1, rel=0.15)
    assert float(drawn["b"].std()) == pytest.approx(1.0, rel=0.15)
    like = {"a": jnp.zeros(3), "b": jnp.zeros(3)}
    expanded = DistributionPrior(dist.Normal(0.0, 1.0).expand([3]))
    assert jax.tree.map(jnp.shape, expanded.sample(like, key=getkey())) == {
        "a": (3,),
        "b": (3,),
    }
    scales = GaussianPrior(jnp.array([1e-3, 1.0, 1e3])).sample(like, key=getkey())
    assert np.all(np.argsort(abs(scales["a"])) == [0, 1, 2])


@pytest.mark.parametrize(
    "prior", [GaussianPrior(0.5), LaplacePrior(0.5), ScaleMixturePrior()]
)
def test_draws_together_what_has_one_law(prior, getkey):
    """One program of random bits, not one a leaf; and leaves that differ."""
    like = {"a": jnp.zeros((20, 30)), "b": jnp.zeros((30, 20)), "c": jnp.zeros(600)}
    drawn = prior.sample(like, key=getkey())
    assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, like)
    flat = [np.ravel(a) for a in jax.tree.leaves(drawn)]
    assert abs(np.corrcoef(flat)[0, 1]) < 0.2
    assert abs(np.corrcoef(flat)[0, 2]) < 0.2
    count = lambda like: str(
        jax.make_jaxpr(lambda k: prior.sample(like, key=k))(jax.random.key(0))
    ).count("random_bits")
    assert count(like) == count(like["a"])
