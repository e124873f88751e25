"""Mean field against conjugate regression, the paper's gradients and exact moments."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from functions.small_networks import Normalised
from train.linear_model import NOISE, PRIOR, linear_data, mean_field_optimum

from ornstein import nn
from ornstein.data._base import Split
from ornstein.diagnosis._num_data import num_data_used
from ornstein.functions import (
    AbstractFamily,
    AnalyticKL,
    Flipout,
    LocalReparameterised,
    MeanField,
    NormalFamily,
    Reparameterised,
    SampledKL,
    StickTheLandingKL,
    softplus,
)
from ornstein.functions._base import total_kl
from ornstein.likelihood import Gaussian
from ornstein.prior import GaussianPrior, LaplacePrior, ScaleMixturePrior, fan_in_prior
from ornstein.train import IVON, GeometricSplit, KLWeight, UniformSplit, elbo_loss, fit

LIKELIHOOD = Gaussian(NOISE)
ESTIMATORS = [Reparameterised(), LocalReparameterised(), Flipout()]
KLS = [AnalyticKL(), SampledKL(), StickTheLandingKL()]
name_of = lambda value: type(value).__name__


def linear(num_features: int = 3, **options) -> MeanField:
    network = nn.Linear(num_features, 1, use_bias=False, key=jax.random.key(0))
    return MeanField(network, GaussianPrior(PRIOR), **options)


def with_moments(function: MeanField, mean, scale) -> MeanField:
    """The function with these means and standard deviations of its only leaf."""
    of_leaf = lambda value: jax.tree.map(
        lambda leaf: jnp.asarray(value, leaf.dtype).reshape(leaf.shape),
        eqx.filter(function.family.mean, eqx.is_array),
    )
    family = NormalFamily.around(of_leaf(mean), of_leaf(scale))
    return eqx.tree_at(lambda f: f.family, function, family)


def gradients(function: MeanField, split: Split, num_keys: int) -> np.ndarray:
    """Gradients of the loss with respect to (mean, rho), one row for each key."""

    @jax.jit
    def of_key(key):
        def loss(family):
            model = eqx.tree_at(lambda f: f.family, function, family)
            batch = (jnp.asarray(split.x), jnp.asarray(split.y))
            return elbo_loss(model, LIKELIHOOD, batch, num_data=len(split.x), key=key)[
                0
            ]

        grads = jax.tree.leaves(eqx.filter_grad(loss)(function.family))
        return jnp.concatenate([g.ravel() for g in grads])

    keys = jax.random.split(jax.random.key(7), num_keys)
    return np.asarray(jax.lax.map(of_key, keys, batch_size=500), np.float64)


@pytest.fixture(scope="module")
def split() -> Split:
    return linear_data()


@pytest.mark.parametrize(
    ("estimator", "kl"),
    [(e, KLS[0]) for e in ESTIMATORS] + [(ESTIMATORS[0], kl) for kl in KLS[1:]],
    ids=name_of,
)
def test_optimum_of_conjugate_regression_is_stationary(estimator, kl, split):
    """The mean gradient vanishes at the known optimum, and not beside it.

    Catches a lost 1/2 or sign in a KL, a wrong variance of the noise, a scale that is
    not the softplus of rho.
    """
    mean, scale = mean_field_optimum(split)
    function = linear(noise=estimator, kl=kl)

    def z_scores(mean, scale):
        grads = gradients(with_moments(function, mean, scale), split, 4_000)
        return grads.mean(0) / (grads.std(0) / math.sqrt(len(grads)))

    assert np.all(abs(z_scores(mean, scale)) < 4.5)
    assert np.any(abs(z_scores(mean, 1.1 * scale)) > 4.5)


def test_points_with_a_prior_go_to_their_mode():
    """A bias as a point beside random weights: the loss is stationary where means and
    bias are the mean of the exact posterior of all four. Catches (seen) a bias without
    its prior, and an energy that the data's size does not divide."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 3)).astype(np.float32)
    y = (x @ [[1.0], [-0.5], [0.2]] + 3.0).astype(np.float32)
    whole = np.concatenate([x, np.ones((20, 1))], 1)
    precision = whole.T @ whole / NOISE**2 + np.eye(4) / PRIOR**2
    exact = np.linalg.solve(precision, whole.T @ y / NOISE**2)[:, 0]
    network = eqx.tree_at(
        lambda net: (net.weight, net.bias),
        nn.Linear(3, 1, key=jax.random.key(0)),
        (jnp.asarray(exact[:3, None], x.dtype), jnp.asarray(exact[3:], x.dtype)),
    )

    def gradient_of_bias(has_prior: bool) -> float:
        model = MeanField(
            network,
            GaussianPrior(PRIOR),
            where=lambda net: net.weight,
            has_prior_on_points=has_prior,
            init_scale=1e-6,
            noise=Reparameterised(),
        )
        batch = (jnp.asarray(x), jnp.asarray(y))
        of = {"num_data": 20, "key": jax.random.key(1)}
        loss = lambda model: elbo_loss(model, LIKELIHOOD, batch, **of)[0]
        grads = eqx.filter_grad(loss)(model)
        assert np.all(abs(grads.family.mean.weight) < 1e-4)
        return float(grads.rest.bias[0])

    assert abs(gradient_of_bias(True)) < 1e-4
    assert gradient_of_bias(False) == pytest.approx(-exact[3] / PRIOR**2 / 20, rel=1e-3)


def test_points_energy_is_no_part_of_the_kl():
    """It is in the loss, and in nothing that is reported; the whole network is the
    twin's. Catches (seen) an energy among the terms."""
    network = nn.Linear(3, 1, key=jax.random.key(0))
    model = MeanField(
        network,
        GaussianPrior(PRIOR),
        where=lambda net: net.weight,
        has_prior_on_points=True,
    )
    draw = model(jnp.ones((2, 3)), key=jax.random.key(1))
    energy = -GaussianPrior(PRIOR).log_prob(network.bias)
    kl = total_kl(draw.kl, draw.terms)
    assert float(kl) == pytest.approx(float(model.family.kl(model.prior)), rel=1e-6)
    assert float(draw.energy) == pytest.approx(float(energy), rel=1e-6)
    assert model(jnp.ones((2, 3)), key=jax.random.key(1)).log_ratio == draw.log_ratio
    parts = model.posterior_parts()
    assert "given the others at their mode" in parts.notes[0]
    assert parts.noise_free_twin is not None
    twin = parts.noise_free_twin()
    assert twin.params.bias is not None
    assert twin.rest.bias is None
    of = {"num_epochs": 1, "optimiser": IVON(), "key": jax.random.key(0)}
    with pytest.raises(ValueError, match="`IVON` trains what is not random by its"):
        fit(model, linear_data(), LIKELIHOOD, **of)


def test_the_energy_of_points_is_recorded():
    """In histories, where the rows that a loss counted are read off. Catches (seen) a
    warning of wrong `num_data` about a fit that is right."""
    data = linear_data()
    network = nn.MLP(data.x.shape[1], 1, [40], key=jax.random.key(0))
    model = MeanField(
        network,
        GaussianPrior(0.05),
        where=lambda net: net.layers[-1].weight,
        has_prior_on_points=True,
        init_scale=0.01,
    )
    of = {"num_epochs": 3, "batch_size": 10, "kl": KLWeight(0.5)}
    history = fit(model, data, LIKELIHOOD, key=jax.random.key(1), **of).history
    assert np.all(history["energy"] > 5 * history["kl"])
    assert num_data_used(history) == pytest.approx(len(data), rel=1e-3)
    found = history["log_likelihood"] - history["kl"]
    np.testing.assert_allclose(history["elbo"], found, rtol=1e-4)


def test_points_are_where_something_is_not_random():
    """Catches a note, and a refusal by `IVON`, of points that there are none of."""
    network = nn.Linear(3, 1, key=jax.random.key(0))
    model = MeanField(network, GaussianPrior(1.0), has_prior_on_points=True)
    assert not model.has_prior_on_points
    assert model.posterior_parts().notes == ()


def test_rows_with_their_own_noise_have_calmer_gradients(split):
    """Of the means, at equal expectation: 64 rows average their errors."""
    mean, scale = mean_field_optimum(split)
    plain, local, flipout = (
        gradients(with_moments(linear(noise=e), mean, scale), split, 2_000)[:, :3]
        for e in ESTIMATORS
    )
    assert np.all(local.var(0) < 0.3 * plain.var(0))
    assert np.all(flipout.var(0) < 0.5 * plain.var(0))


def test_sticking_the_landing_has_no_variance_at_the_exact_posterior():
    """With orthogonal features the posterior is in the family; only STL's gradient is
    then one number. Catches a score that is not stopped."""
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 3)))[0] * 4
    y = x @ np.array([[1.0], [-0.5], [0.2]]) + 0.3
    split = Split(x.astype(np.float32), y.astype(np.float32))
    exact = mean_field_optimum(split)
    spread = {
        name_of(kl): gradients(with_moments(linear(kl=kl), *exact), split, 200).std(0)
        for kl in KLS
    }
    assert np.all(spread["StickTheLandingKL"] < 1e-5)
    assert np.all(spread["AnalyticKL"] > 1e-2)
    assert np.all(spread["SampledKL"] > 1e-2)


def test_fit_finds_the_optimum(split):
    """From the network's own weights, whatever they are; only the prior stays."""
    function = linear(init_scale=0.1, noise=LocalReparameterised())
    result = fit(
        function,
        split,
        LIKELIHOOD,
        key=jax.random.key(0),
        num_epochs=1_500,
        batch_size=64,
        learning_rate=0.02,
        num_draws=4,
        snr_decay=None,
    )
    assert isinstance(result.model, MeanField)
    mean, scale = mean_field_optimum(split)
    family = result.model.family
    assert isinstance(family, NormalFamily)
    found, width = family.mean.weight[:, 0], family.scale.weight[:, 0]
    assert np.all(abs(found - mean) < 0.1 * scale)
    np.testing.assert_allclose(width, scale, rtol=0.05)
    assert eqx.tree_equal(result.model.prior, function.prior)
    np.testing.assert_allclose(
        result.history["kl_weights"][-1], family.kl(function.prior), rtol=1e-2
    )


def test_only_chosen_leaves_are_random_and_all_are_trained():
    """And the geometric weights give an epoch the KL that uniform ones give it.

    At rate 0 the mean loss over an epoch is the same; a place that runs on into the
    second epoch would lose the KL there.
    """
    split = linear_data(num_rows=64)
    network = nn.MLP(3, 1, [4], key=jax.random.key(1))
    last = lambda net: net.layers[-1]
    function = MeanField(network, where=last, init_scale=1e-6)
    assert len(jax.tree.leaves(function.family.mean)) == 2
    run = lambda optimiser, kl_split: fit(
        function,
        split,
        LIKELIHOOD,
        key=jax.random.key(0),
        num_epochs=2,
        batch_size=16,
        optimiser=optimiser,
        kl=KLWeight(split=kl_split),
    )
    uniform, geometric = (
        run(optax.sgd(0.0), kl_split) for kl_split in (UniformSplit(), GeometricSplit())
    )
    np.testing.assert_allclose(
        uniform.history["loss"], geometric.history["loss"], rtol=1e-5
    )
    trained = run(optax.adam, GeometricSplit()).model
    moved = jax.tree.map(lambda a, b: bool(np.any(a != b)), function, trained)
    assert all(jax.tree.leaves((moved.family.mean, moved.rest.layers[0])))
    assert not any(jax.tree.leaves(moved.prior))


def test_gradients_of_the_paper(x64):
    """Equations 8 and 9 of Blundell et al., with densities written out naively."""
    network = eqx.nn.MLP(2, 1, 3, 1, activation=jnp.tanh, key=jax.random.key(0))
    prior = ScaleMixturePrior(0.3, wide_scale=1.0, narrow_scale=0.1)
    function = MeanField(network, prior, init_scale=0.3, kl=SampledKL())
    family = function.family
    assert isinstance(family, NormalFamily)
    x = jax.random.normal(jax.random.key(1), (5, 2))
    y = jnp.sin(x[:, :1])
    key = jax.random.key(2)

    def normal(w, mean, scale):
        return (
            jnp.exp(-0.5 * ((w - mean) / scale) ** 2) / scale / math.sqrt(2 * math.pi)
        )

    total = lambda tree: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree))

    def f(w, mean, rho):
        log_q = jax.tree.map(
            lambda w, m, r: jnp.log(normal(w, m, jnp.log(1 + jnp.exp(r)))), w, mean, rho
        )
        log_prior = jax.tree.map(
            lambda w: jnp.log(0.3 * normal(w, 0, 1.0) + 0.7 * normal(w, 0, 0.1)), w
        )
        output = jax.vmap(eqx.combine(w, function.rest))(x)
        return (
            total(log_q) - total(log_prior) - total(jnp.log(normal(y, output, NOISE)))
        )

    mean, rho = family.mean, family.rho
    w = family.sample(key=key)
    df_dw, df_dmean, df_drho = jax.grad(f, argnums=(0, 1, 2))(w, mean, rho)
    eps = jax.tree.map(lambda w, m, r: (w - m) / jnp.log(1 + jnp.exp(r)), w, mean, rho)
    d_mean = jax.tree.map(jnp.add, df_dw, df_dmean)
    d_rho = jax.tree.map(
        lambda g, e, r, h: g * e / (1 + jnp.exp(-r)) + h, df_dw, eps, rho, df_drho
    )

    def free_energy(family):
        draw = eqx.tree_at(lambda f: f.family, function, family)(x, key=key)
        return draw.kl - jnp.sum(LIKELIHOOD.log_prob(draw.output, y))

    found = eqx.filter_grad(free_energy)(family)
    for a, b in zip(
        jax.tree.leaves((found.mean, found.rho)),
        jax.tree.leaves((d_mean, d_rho)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def layer_networks() -> dict:
    k = jax.random.key(0)
    conv = eqx.nn.Conv2d(2, 3, 3, stride=2, padding=1, key=k)
    return {
        "ours": (nn.Linear(4, 3, key=k), (4,)),
        "equinox": (eqx.nn.Linear(4, 3, key=k), (4,)),
        "our convolution": (nn.Conv2d(2, 3, 3, stride=2, key=k), (4, 4, 2)),
        "Equinox's": (nn.ChannelsFirst(conv), (4, 4, 2)),
    }


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
@pytest.mark.parametrize("name", layer_networks())
def test_moments_of_a_layers_outputs(name, estimator):
    """Mean and variance by the Jacobian; only a plain draw ties equal rows.

    Catches noise shared by rows, a bias without noise, squares left out.
    """
    network, shape = layer_networks()[name]
    scale = lambda mean: 0.2 + 0.1 * jnp.cos(jnp.arange(mean.size)).reshape(mean.shape)
    function = MeanField(network, init_scale=scale, noise=estimator)
    family = function.family
    assert isinstance(family, NormalFamily)
    x = jnp.broadcast_to(jax.random.normal(jax.random.key(1), shape), (2, *shape))

    def output(params):
        return function.with_weights(params)(x)

    mean = output(family.mean)
    jacobian = jax.jacrev(output)(family.mean)
    variance = np.zeros(mean.shape)
    for j, s in zip(
        jax.tree.leaves(jacobian), jax.tree.leaves(family.scale), strict=True
    ):
        j = np.asarray(j).reshape(*mean.shape, -1)
        variance += np.sum((j * np.ravel(s)) ** 2, axis=-1)
    num_draws = 4_000
    draw = jax.jit(jax.vmap(lambda key: function(x, key=key).output))
    outputs = np.asarray(draw(jax.random.split(jax.random.key(2), num_draws)))
    z_mean = (outputs.mean(0) - mean) / np.sqrt(variance / num_draws)
    z_variance = (outputs.var(0) / variance - 1) / math.sqrt(2 / num_draws)
    assert np.max(abs(z_mean)) < 4.5
    assert np.max(abs(z_variance)) < 4.5
    errors = (outputs - np.asarray(mean)) / np.sqrt(variance)
    correlation = (errors[:, 0] * errors[:, 1]).mean(0)
    if isinstance(estimator, Reparameterised):
        np.testing.assert_allclose(correlation, 1.0, atol=0.15)
    else:
        assert np.max(abs(correlation)) < 4.5 * 3 / math.sqrt(num_draws)


def test_estimators_agree_through_a_network():
    """Two hidden layers: one row's mean and variance, by two samples."""
    network = eqx.nn.MLP(3, 2, 6, 2, activation=jnp.tanh, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (1, 3))
    keys = jax.random.split(jax.random.key(2), 4_000)
    moments = []
    for estimator in ESTIMATORS:
        function = MeanField(network, init_scale=0.5, noise=estimator)
        draw = jax.jit(jax.vmap(lambda key, f=function: f(x, key=key).output[0]))
        outputs = np.asarray(draw(keys), np.float64)
        errors = (outputs - outputs.mean(0)) ** 2
        moments.append(
            [(v.mean(0), v.std(0) / math.sqrt(len(keys))) for v in (outputs, errors)]
        )
    for other in moments[1:]:
        for (a, a_error), (b, b_error) in zip(moments[0], other, strict=True):
            assert np.all(abs(a - b) < 4.5 * np.hypot(a_error, b_error))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_an_index_is_one_function(estimator):
    """The same for every row and block, and the same whatever the estimator."""
    network = eqx.nn.MLP(3, 2, 6, 2, key=jax.random.key(0))
    function = MeanField(network, init_scale=0.5, noise=estimator)
    x = jax.random.normal(jax.random.key(1), (6, 3))
    key = jax.random.key(2)
    params = function.family.sample(key=jax.random.fold_in(key, 4))
    expected = function.with_weights(params)(x)
    for rows in (slice(None), slice(2, 5)):
        output = function(x[rows], key=key, index=4).output
        np.testing.assert_allclose(output, expected[rows], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("prior", [GaussianPrior(0.5, mean=0.2), LaplacePrior(0.5)])
def test_closed_kl_against_quadrature(prior, x64):
    mean, scale = np.array([0.3, -2.0]), np.array([0.2, 0.7])
    family = NormalFamily.around([jnp.asarray(mean)], [jnp.asarray(scale)])
    grid = np.linspace(-12, 12, 200_001)
    expected = 0.0
    for m, s in zip(mean, scale, strict=True):
        log_q = -0.5 * ((grid - m) / s) ** 2 - math.log(s * math.sqrt(2 * math.pi))
        log_p = np.asarray(prior.leaf_log_prob(jnp.asarray(grid)))
        expected += np.trapezoid(np.exp(log_q) * (log_q - log_p), grid)
    np.testing.assert_allclose(family.kl(prior), expected, rtol=1e-6)


class LaplaceFamily(AbstractFamily):
    """A family of a user's own: w = centre + width * double exponential noise."""

    centre: list
    log_width: list

    def sample(self, *, key):
        keys = list(jax.random.split(key, len(self.centre)))
        return jax.tree.map(
            lambda c, b, k: c + jnp.exp(b) * jax.random.laplace(k, c.shape, c.dtype),
            self.centre,
            self.log_width,
            keys,
        )

    def log_prob(self, params):
        of_leaf = lambda w, c, b: jnp.sum(-abs(w - c) * jnp.exp(-b) - b - math.log(2.0))
        return sum(jax.tree.map(of_leaf, params, self.centre, self.log_width))

    def entropy(self):
        return None

    def kl(self, prior):
        return None


class Slopes(eqx.Module):
    slopes: list

    def __call__(self, x):
        return x * self.slopes[0]


def test_a_family_of_ones_own():
    """KL(Laplace(m, b) || N(0, 1)) = (m² + 2b²)/2 + log(2π)/2 - 1 - log 2b."""
    function = MeanField(
        Slopes([jnp.array([0.5, -1.0])]),
        init_scale=0.3,
        family=lambda mean, scale: LaplaceFamily(
            mean.slopes, jax.tree.map(jnp.log, scale.slopes)
        ),
    )
    assert isinstance(function.family, LaplaceFamily)
    keys = jax.random.split(jax.random.key(0), 20_000)
    sample = jax.vmap(lambda key: function.family.sample(key=key))(keys)
    kls = jax.vmap(lambda w: function.kl(function.family, function.prior, w))(sample)
    exact = sum(
        (m**2 + 2 * 0.09) / 2 + math.log(2 * math.pi) / 2 - 1 - math.log(0.6)
        for m in (0.5, -1.0)
    )
    assert abs(kls.mean() - exact) < 4.5 * kls.std() / math.sqrt(len(keys))
    with pytest.raises(TypeError, match="`Flipout` needs normal weights"):
        Flipout().check(function.family)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_no_key_is_used_twice(estimator):
    """And the loss needs no tracing of a second kind: Equinox's layers, where= too."""
    network = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    function = MeanField(network, ScaleMixturePrior(), noise=estimator)
    x, y = jnp.ones((4, 3)), jnp.ones((4, 2))

    @jax.jit
    def loss(key):
        return elbo_loss(function, LIKELIHOOD, (x, y), num_data=4, key=key)[0]

    with jax.debug_key_reuse(True):
        assert np.isfinite(loss(jax.random.key(3)))


def test_dark_borders_have_gradients():
    """Local noise of an output whose inputs are all 0, without a bias: no 0 / 0."""
    layer = nn.Conv2d(1, 2, 3, use_bias=False, key=jax.random.key(0))
    function = MeanField(layer, noise=LocalReparameterised())
    x = jnp.zeros((2, 6, 6, 1)).at[:, 3, 3].set(1.0)

    def size(family):
        model = eqx.tree_at(lambda f: f.family, function, family)
        return jnp.sum(model(x, key=jax.random.key(1)).output ** 2)

    grads = jax.tree.leaves(eqx.filter_grad(size)(function.family))
    assert all(np.all(np.isfinite(g)) and np.any(g != 0) for g in grads)


def test_priors_of_each_leaf_take_the_networks_structure():
    """A normal of scale 1/√fan-in for each leaf of an Equinox network, as it is."""
    network = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    function = MeanField(network, fan_in_prior(network), init_scale=0.1)
    found = function(jnp.ones((1, 3)), key=jax.random.key(1)).terms["kl_weights"]
    expected = 0.0
    for layer, fan_in in zip(network.layers, (3, 4), strict=True):
        for leaf, n in ((layer.weight, fan_in), (layer.bias, 1)):
            ratio = 0.1**2 * n
            w = np.asarray(leaf, np.float64)
            expected += 0.5 * np.sum(n * w**2 + ratio - 1 - math.log(ratio))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_trained_network_gives_the_means():
    network = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    relative = MeanField(network, init_scale=lambda m: 0.1 * jnp.abs(m) + 1e-3)
    family = relative.family
    assert isinstance(family, NormalFamily)
    assert eqx.tree_equal(eqx.combine(family.mean, relative.rest), network)
    for m, s in zip(
        jax.tree.leaves(family.mean), jax.tree.leaves(family.scale), strict=True
    ):
        np.testing.assert_allclose(s, 0.1 * abs(m) + 1e-3, rtol=1e-4)


def test_refuses_what_cannot_work():
    network = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    with pytest.raises(ValueError, match="`init_scale` must be positive, got 0"):
        MeanField(network, init_scale=0.0)
    with pytest.raises(ValueError, match="The prior has shape"):
        MeanField(network, GaussianPrior(np.ones(7)))
    with pytest.raises(ValueError, match="no parameters to make random"):
        MeanField(network, where=lambda net: net.activation)
    normalised = MeanField(Normalised(key=jax.random.key(0)))
    with pytest.raises(ValueError, match="batch statistics and was given none"):
        normalised(jnp.ones((4, 3)), key=jax.random.key(1))


class Vmapped(eqx.Module):
    """Maps over its rows by itself, so that they cannot be dealt their own noise."""

    inner: eqx.nn.Linear

    def __call__(self, x):
        return jax.vmap(self.inner)(x)


def test_refuses_rows_that_cannot_have_their_own_noise():
    network = Vmapped(eqx.nn.Linear(3, 2, key=jax.random.key(0)))
    x = jnp.ones((4, 3))
    assert MeanField(network)(x, key=jax.random.key(1)).output.shape == (4, 2)
    function = MeanField(network, noise=Flipout())
    with pytest.raises(ValueError, match="wrap the network in `ornstein.nn.PerExam"):
        function(x, key=jax.random.key(1))


def test_softplus_and_its_slope():
    """Also at 0 (seen: 0), and far below, where slopes of two terms may cancel."""
    x = jnp.array([-1000.0, -20.0, -1.0, 0.0, 1e-3, 2.0, 50.0])
    np.testing.assert_allclose(softplus(x), jax.nn.softplus(x), rtol=1e-6)
    slope = jax.vmap(jax.grad(softplus))(x)
    np.testing.assert_allclose(slope, jax.nn.sigmoid(x), rtol=1e-5)
