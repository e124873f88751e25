"""The mixture over nodes and its two KLs, against scipy, quadrature and plain loops.

Seen failing: a mixture of each node by itself, a lost log K, the KL's variance divided
by K for K², the prior around 0, an estimate whose log q is of the own component alone.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from numpyro.distributions import Normal, kl_divergence

from ornstein import nn
from ornstein.data import Split
from ornstein.evaluation import evidence_bound
from ornstein.functions import (
    Ensemble,
    ImplicitBNN,
    MixtureMeanKL,
    MonteCarloKL,
    NodeMixture,
)
from ornstein.likelihood import Gaussian
from ornstein.prediction import FittedModel

PRIOR_SCALE = 0.4


def mixture_of(mean: np.ndarray, scale: np.ndarray) -> NodeMixture:
    rho = jnp.log(jnp.expm1(jnp.asarray(scale, float)))
    return NodeMixture(jnp.asarray(mean, float), rho)


def arbitrary(num_components: int, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(num_components)
    shape = (num_components, num_nodes)
    mean = 1 + 0.4 * rng.standard_normal(shape)
    return mean, rng.uniform(0.1, 0.6, shape)


def log_q(z: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> float:
    by_component = scipy.stats.norm.logpdf(z, mean, scale).sum(axis=1)
    return float(scipy.special.logsumexp(by_component) - np.log(len(mean)))


def kl_in_one_dimension(mean: np.ndarray, scale: np.ndarray) -> float:
    """KL(q || p) of the mixture itself, by quadrature."""

    def integrand(z: float) -> float:
        value = log_q(np.array([z]), mean, scale)
        log_p = scipy.stats.norm.logpdf(z, 1.0, PRIOR_SCALE)
        return float(np.exp(value) * (value - log_p))

    points = sorted(mean[:, 0])
    return scipy.integrate.quad(integrand, -6, 8, points=points, limit=200)[0]


def test_density_is_of_all_nodes_together(x64):
    mean, scale = arbitrary(3, 5)
    mixture = mixture_of(mean, scale)
    zs = np.random.default_rng(0).normal(1, 0.5, (6, 5))
    expected = [log_q(z, mean, scale) for z in zs]
    np.testing.assert_allclose(mixture.log_prob(jnp.asarray(zs)), expected, rtol=1e-6)
    by_node = [log_q(zs[0, j : j + 1], mean[:, [j]], scale[:, [j]]) for j in range(5)]
    assert abs(sum(by_node) - expected[0]) > 0.05


def test_kl_of_the_mean_is_equations_22_to_24(x64):
    mean, scale = arbitrary(3, 5)
    expected = 0.0
    for j in range(5):
        mu = sum(mean[k, j] for k in range(3)) / 3
        variance = sum(scale[k, j] ** 2 for k in range(3)) / 9
        expected += np.log(PRIOR_SCALE) - 0.5 * np.log(variance) - 0.5
        expected += (variance + (mu - 1) ** 2) / (2 * PRIOR_SCALE**2)
    found = MixtureMeanKL()(mixture_of(mean, scale), PRIOR_SCALE, key=jr.key(0))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_kl_of_one_component_is_the_normals(x64):
    mean, scale = arbitrary(1, 4)
    found = MixtureMeanKL()(mixture_of(mean, scale), PRIOR_SCALE, key=jr.key(0))
    normals = Normal(mean, scale), Normal(1.0, PRIOR_SCALE)
    np.testing.assert_allclose(found, np.sum(kl_divergence(*normals)), rtol=1e-6)
    by_node = [kl_in_one_dimension(mean[:, [j]], scale[:, [j]]) for j in range(4)]
    np.testing.assert_allclose(found, sum(by_node), rtol=1e-6)


def estimates(mixture: NodeMixture, num_keys: int = 40_000) -> tuple:
    """Values and gradients of the Monte Carlo KL, one for each key."""
    kl = lambda mixture, key: MonteCarloKL()(mixture, PRIOR_SCALE, key=key)
    many = jax.jit(jax.vmap(jax.value_and_grad(kl), in_axes=(None, 0)))
    return many(mixture, jr.split(jr.key(3), num_keys))


def z_score(found: np.ndarray, expected: np.ndarray | float) -> np.ndarray:
    error = found.std(0) / np.sqrt(len(found))
    return (found.mean(0) - expected) / error


def test_monte_carlo_kl_is_unbiased_at_one_component(x64):
    mean, scale = arbitrary(1, 4)
    mixture = mixture_of(mean, scale)
    closed = lambda m: MixtureMeanKL()(m, PRIOR_SCALE, key=jr.key(0))
    expected, slope = jax.value_and_grad(closed)(mixture)
    values, slopes = estimates(mixture)
    assert abs(z_score(np.asarray(values), float(expected))) < 4.5
    assert np.max(abs(z_score(np.asarray(slopes.mean), slope.mean))) < 4.5
    assert np.max(abs(z_score(np.asarray(slopes.rho), slope.rho))) < 4.5


def test_monte_carlo_kl_is_of_the_mixture(x64):
    """Values and gradients, by quadrature and differences of it; and it differs from
    the KL of the mean there."""
    mean = np.array([[0.2], [1.1], [2.0]])
    scale = np.array([[0.2], [0.3], [0.25]])
    values, slopes = estimates(mixture_of(mean, scale))
    expected = kl_in_one_dimension(mean, scale)
    assert abs(z_score(np.asarray(values), expected)) < 4.5
    assert np.std(values) / np.sqrt(len(values)) < 0.02 * expected
    of_mean = MixtureMeanKL()(mixture_of(mean, scale), PRIOR_SCALE, key=jr.key(0))
    assert expected > float(of_mean) + 0.3
    for k in range(3):
        step = 1e-4 * np.eye(3)[:, [k]]
        up, down = (kl_in_one_dimension(mean + s, scale) for s in (step, -step))
        found = np.asarray(slopes.mean)[:, k, 0]
        assert abs(z_score(found, (up - down) / 2e-4)) < 4.5


def test_mixture_starts_as_the_reference_does():
    r"""$\mu \sim N(1, \sigma_0^2)$ and $\sigma = |N(0.05, 0.02^2)|$, 40,000 of each."""
    mixture = NodeMixture.init(4, 10_000, spread=0.5, scale=0.05, key=jr.key(0))
    folded = scipy.stats.foldnorm(2.5, scale=0.02)
    mean, scale = np.asarray(mixture.mean).ravel(), np.asarray(mixture.scale).ravel()
    p_mean = scipy.stats.kstest(mean, "norm", (1.0, 0.5)).pvalue
    p_scale = scipy.stats.kstest(scale, folded.cdf).pvalue
    assert min(p_mean, p_scale) > 1e-5
    correlation = np.corrcoef(mean, scale)[0, 1]
    assert abs(correlation) < 4.5 / np.sqrt(40_000)


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_draws_have_the_moments_of_their_component(num_nodes: int):
    """Of one component, of each, and of rows dealt to them: means, variances, and no
    correlation between nodes, rows or components."""
    mean, scale = arbitrary(3, num_nodes)
    mixture = mixture_of(mean, scale)
    num_keys = 20_000
    keys = jr.split(jr.key(1), num_keys)
    draw = jax.jit(
        lambda keys: (
            jax.vmap(lambda k: mixture.of_component(1, key=k))(keys)[:, None],
            jax.vmap(lambda k: mixture.of_each(key=k))(keys),
            jax.vmap(lambda k: mixture.dealt(6, key=k))(keys),
        )
    )
    components = [[1], [0, 1, 2], [0, 1, 2, 0, 1, 2]]
    for z, of_row in zip(draw(keys), components, strict=True):
        errors = (np.asarray(z, np.float64) - mean[of_row]) / scale[of_row]
        errors = errors.reshape(num_keys, -1)
        covariance = errors.T @ errors / num_keys - np.eye(errors.shape[1])
        assert np.max(abs(errors.mean(0))) * np.sqrt(num_keys) < 4.5
        assert np.max(abs(covariance)) * np.sqrt(num_keys / 2) < 4.5


@pytest.mark.parametrize("nested", [False, True])
def test_an_ensemble_has_the_mean_of_its_members_kls(nested: bool, x64):
    """Catches (seen) an ensemble without one, one key for all members, and nesting."""
    members = [
        ImplicitBNN(
            nn.MLP(2, 1, [4], key=jr.key(seed)),
            num_components=4,
            prior_scale=PRIOR_SCALE,
            init_spread=0.3 * (seed + 1),
            key=jr.key(seed),
        )
        for seed in range(4)
    ]
    pairs = [Ensemble(members[:2]), Ensemble(members[2:])]
    posterior = Ensemble(pairs if nested else members).posterior_parts()
    estimate, keys = posterior.kl_estimate, jr.split(jr.key(9), 2_000)
    assert estimate is not None
    for name in ("kl_mixture", "kl_nodes"):
        of = lambda own, name=name: own.stand_ins.get(name, own.estimate)
        drawn = np.asarray(jax.jit(jax.vmap(of(estimate)))(keys))
        each = [
            np.asarray(jax.vmap(of(member.posterior_parts().kl_estimate))(keys))
            for member in members
        ]
        error = np.std(drawn) / np.sqrt(len(keys)) + 1e-9
        assert abs(np.mean(drawn) - np.mean(each)) < 4.5 * np.sqrt(2) * error
    assert estimate.name == "kl_mixture"


def test_the_bound_of_an_ensemble_is_its_members(x64):
    """Of two members that are one. Catches (seen) the KL of components' means, 16 nats
    below KL(q || p)."""
    member = ImplicitBNN(
        nn.MLP(2, 1, [4], key=jr.key(0)),
        num_components=4,
        prior_scale=PRIOR_SCALE,
        init_spread=1.0,
        key=jr.key(1),
    )
    x = np.random.default_rng(0).normal(size=(12, 2))
    split = Split(x, x[:, :1])
    bound_of = lambda model: evidence_bound(
        FittedModel(model, Gaussian(0.5)), split, key=jr.key(2), num_draws=400
    )
    one, both = bound_of(member), bound_of(Ensemble([member, member]))
    for name, of_name in (("kl", "kl_mixture_se"), ("elbo", "elbo_se")):
        error = np.hypot(one[of_name], both[of_name])
        assert abs(one[name] - both[name]) < 4.5 * error
    gap = abs(one["kl_nodes"] - one["kl"])  # what the loss has, and the bound must not
    assert gap > 20 * one["kl_mixture_se"]
