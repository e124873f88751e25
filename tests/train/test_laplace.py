"""Laplace's approximation against closed forms and slow twins.

Seen failing: a curvature that is the mean over rows and not their sum, the last block's
repeated rows counted twice. They are also about a prior's scale taken for its
precision, an evidence without its determinant, a linearised draw around 0.
"""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.evaluation import evidence_bound
from ornstein.network import call_network
from ornstein.prediction import FittedModel
from ornstein.train import DiagonalGGN, FullGGN, LastLayer, laplace_like
from ornstein.train.posthoc import _evidence, _gauss_newton

NUM_ROWS, NOISE, PRIOR = 30, 0.5, 0.8


def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(NUM_ROWS, 3)).astype(np.float32)


def targets(phi: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=phi.shape[1])
    return phi @ truth + NOISE * rng.normal(size=len(phi))


def posterior(phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a linear regression on `phi`, in closed form."""
    precision = phi.T @ phi / NOISE**2 + np.eye(phi.shape[1]) / PRIOR**2
    covariance = np.linalg.inv(precision)
    return covariance @ phi.T @ y / NOISE**2, covariance


def log_evidence(phi: np.ndarray, y: np.ndarray) -> float:
    """The density of the targets, which are jointly normal."""
    kernel = PRIOR**2 * phi @ phi.T + NOISE**2 * np.eye(len(y))
    fit = y @ np.linalg.solve(kernel, y)
    return -0.5 * (fit + np.linalg.slogdet(kernel)[1] + len(y) * np.log(2 * np.pi))


def covariance_of(model: orn.LaplaceApproximation) -> np.ndarray:
    root = np.asarray(model.deviation.root, np.float64)  # pyright: ignore
    return root @ root.T


def regression() -> tuple[FittedModel, Split, np.ndarray, np.ndarray]:
    """A linear network at the posterior's mean, its data, and features and targets."""
    x = features()
    y = targets(x)
    mean, _ = posterior(x, y)
    network = orn.nn.Linear(3, 1, use_bias=False, key=jr.key(0))
    weight = jnp.asarray(mean, jnp.float32)[:, None]
    network = jax.tree.map(lambda leaf: weight, network)
    fit = FittedModel(orn.Deterministic(network), orn.Gaussian(NOISE))
    return fit, Split(x, y[:, None].astype(np.float32)), x, y


def test_a_linear_regression_is_exact():
    """Catches a lost factor N or 1 / 2, and a scale in place of a precision."""
    fit, split, x, y = regression()
    found = orn.fit_laplace(
        fit, split, structure=FullGGN(), prior=orn.GaussianPrior(PRIOR)
    )
    _, covariance = posterior(x, y)
    np.testing.assert_allclose(covariance_of(found.model), covariance, rtol=1e-4)
    exact = log_evidence(x, y)
    np.testing.assert_allclose(found.model.log_evidence, exact, rtol=1e-5)
    # Where q is the posterior, the bound is the evidence, whatever draws it is made of.
    bound = evidence_bound(found, split, key=jr.key(1), num_draws=500)
    assert abs(bound["elbo"] - exact) < 4.5 * bound["elbo_se"] < 0.3


def test_the_predictive_of_a_linear_regression_is_exact():
    """Catches draws of another covariance than the posterior's, or around 0."""
    fit, split, x, y = regression()
    found = orn.fit_laplace(
        fit, split, structure=FullGGN(), prior=orn.GaussianPrior(PRIOR)
    )
    mean, covariance = posterior(x, y)
    num_draws = 4_000
    drawn = orn.predict(found, x[:5], key=jr.key(2), num_draws=num_draws)
    outputs = np.asarray(drawn.outputs, np.float64)[..., 0]
    variance = np.einsum("ij,jk,ik->i", x[:5], covariance, x[:5])
    z_mean = (outputs.mean(0) - x[:5] @ mean) / np.sqrt(variance / num_draws)
    z_variance = (outputs.var(0) / variance - 1) / np.sqrt(2 / num_draws)
    assert np.abs(z_mean).max() < 4.5
    assert np.abs(z_variance).max() < 4.5


def test_the_last_layer_on_given_features_is_exact():
    """Catches features of another layer, and a bias that stays a point."""
    network = orn.nn.MLP(3, 1, [4], activation=jnp.tanh, key=jr.key(3))
    x = features()
    hidden = np.tanh(np.asarray(network.layers[0](jnp.asarray(x)), np.float64))
    phi = np.concatenate([hidden, np.ones((NUM_ROWS, 1))], axis=1)
    y = targets(phi)
    mean, covariance = posterior(phi, y)
    head = [jnp.asarray(mean[:-1, None], jnp.float32), jnp.asarray(mean[-1:])]
    at = lambda net: [net.layers[-1].weight, net.layers[-1].bias]
    network = eqx.tree_at(at, network, [leaf.astype(jnp.float32) for leaf in head])
    fit = FittedModel(orn.Deterministic(network), orn.Gaussian(NOISE))
    split = Split(x, y[:, None].astype(np.float32))
    found = orn.fit_laplace(
        fit, split, structure=LastLayer(), prior=orn.GaussianPrior(PRIOR)
    )
    np.testing.assert_allclose(
        covariance_of(found.model), covariance, rtol=2e-3, atol=2e-6
    )
    np.testing.assert_allclose(
        found.model.log_evidence, log_evidence(phi, y), rtol=1e-4
    )
    assert "given the others" in found.model.posterior_parts().notes[-1]


CLASSES = {
    "categorical": (orn.Categorical(), np.arange(NUM_ROWS) % 3, 3),
    "bernoulli": (orn.Bernoulli(), (np.arange(NUM_ROWS * 2) % 3 > 0).reshape(-1, 2), 2),
    "gaussian": (
        orn.Gaussian(np.array([0.5, 2.0])),
        np.random.default_rng(4).normal(size=(NUM_ROWS, 2)).astype(np.float32),
        2,
    ),
}


def curvatures(network, likelihood, y, monkeypatch):
    """That of `fit_laplace`, full and diagonal, in blocks of 7 rows; and a function of
    flat weights to the log likelihood."""
    monkeypatch.setattr(_gauss_newton, "_BLOCK_ROWS", 7)
    x = jnp.asarray(features())
    weights, rest = eqx.partition(network, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(weights)
    data = (np.asarray(x), y)
    found = [
        _gauss_newton.gauss_newton(
            lambda weights: eqx.combine(weights, rest),
            weights,
            likelihood,
            data,
            state=None,
            is_diagonal=is_diagonal,
        )
        for is_diagonal in (False, True)
    ]
    outputs = lambda weights: (
        call_network(eqx.combine(unravel(weights), rest), x).output
    )
    return found, flat, outputs


@pytest.mark.parametrize("name", CLASSES)
def test_the_curvature_of_a_linear_network_is_the_hessian(name, monkeypatch):
    """Catches a wrong root of a likelihood's curvature, and rows that count twice.

    A network that is linear in its weights has no second derivatives of its own.
    """
    likelihood, y, num_outputs = CLASSES[name]
    network = orn.nn.Linear(3, num_outputs, key=jr.key(5))
    (full, diagonal), flat, outputs = curvatures(network, likelihood, y, monkeypatch)
    total = lambda weights: -jnp.sum(likelihood.log_prob(outputs(weights), y))
    hessian = np.asarray(jax.hessian(total)(flat))
    np.testing.assert_allclose(full.curvature, hessian, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(diagonal.curvature, np.diag(hessian), rtol=1e-3)
    np.testing.assert_allclose(full.log_likelihood, -total(flat), rtol=1e-5)


@pytest.mark.parametrize("name", CLASSES)
def test_the_curvature_of_a_network_is_gauss_newtons(name, monkeypatch):
    """Catches Jacobians of the wrong outputs: J^T (hessian by f) J, all at once."""
    likelihood, y, num_outputs = CLASSES[name]
    network = orn.nn.MLP(3, num_outputs, [4], activation=jnp.tanh, key=jr.key(6))
    (full, diagonal), flat, outputs = curvatures(network, likelihood, y, monkeypatch)
    jacobian = jax.jacfwd(outputs)(flat)
    of_row = lambda output, target: -likelihood.log_prob(output[None], target[None])[0]
    by_output = jax.vmap(jax.hessian(of_row))(outputs(flat), jnp.asarray(y))
    twin = jnp.einsum("nkd,nkl,nle->de", jacobian, by_output, jacobian)
    np.testing.assert_allclose(full.curvature, twin, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(diagonal.curvature, np.diag(twin), rtol=1e-3, atol=1e-5)


def test_independent_weights_have_the_diagonals_variances():
    """Catches a diagonal of the covariance in place of the precision's."""
    fit, split, x, _ = regression()
    found = orn.fit_laplace(
        fit, split, structure=DiagonalGGN(), prior=orn.GaussianPrior(PRIOR)
    )
    variances = 1 / (np.sum(x**2, axis=0) / NOISE**2 + 1 / PRIOR**2)
    deviation = found.model.deviation
    (scale,) = jax.tree.leaves(deviation.scale)  # pyright: ignore
    np.testing.assert_allclose(scale[:, 0] ** 2, variances, rtol=1e-4)


def test_the_largest_evidence_is_mackays():
    """Catches a search that stops elsewhere: a grid, and the fixed point of MacKay."""
    rng = np.random.default_rng(7)
    eigenvalues, square = rng.gamma(1.0, 20.0, size=12), 3.0
    residuals = _evidence.Residuals(40, 25.0)
    found = _evidence.largest_evidence(-50.0, eigenvalues, square, residuals)
    for s in np.geomspace(0.01, 100, 41):
        for c in np.geomspace(0.1, 10, 41):
            other = _evidence.evidence_at(
                -50.0, eigenvalues, square, residuals, prior_factor=s, noise_factor=c
            )
            assert other.log_evidence <= found.log_evidence + 1e-9
    determined = found.num_determined
    assert 0 < determined < 12
    np.testing.assert_allclose(found.prior_factor**2, square / determined, rtol=1e-3)
    np.testing.assert_allclose(found.noise_factor**2, 25 / (40 - determined), rtol=1e-3)


def test_the_evidence_of_other_scales_is_exact():
    """Catches factors that enter the evidence as another prior or noise would not."""
    fit, split, *_ = regression()
    at = lambda likelihood, prior: orn.fit_laplace(
        FittedModel(fit.model, likelihood),
        split,
        structure=FullGGN(),
        prior=orn.GaussianPrior(prior),
        empirical_bayes=True,
    )
    # From whatever scales the search begins, it ends at the same.
    one = at(orn.Gaussian(0.3, learn_scale=True), 0.2)
    other = at(orn.Gaussian(2.0, learn_scale=True), 3.0)
    for name in ("log_evidence", "kl"):
        pair = [float(getattr(found.model, name)) for found in (one, other)]
        np.testing.assert_allclose(*pair, rtol=1e-4)
    np.testing.assert_allclose(one.likelihood.scale, other.likelihood.scale, rtol=1e-3)
    np.testing.assert_allclose(
        covariance_of(one.model), covariance_of(other.model), rtol=1e-2
    )
    assert "a point estimate of them in it" in one.notes[-1]
    # And what it ends at is the evidence there.
    fixed = orn.fit_laplace(
        FittedModel(fit.model, orn.Gaussian(float(one.likelihood.scale))),
        split,
        structure=FullGGN(),
        prior=one.model.prior,
    )
    np.testing.assert_allclose(
        fixed.model.log_evidence, one.model.log_evidence, rtol=1e-5
    )
    assert one.notes[:-1] == fixed.notes
    # A scale that is not learned is not changed.
    kept = at(orn.Gaussian(0.3), 0.2)
    np.testing.assert_allclose(kept.likelihood.scale, 0.3, rtol=1e-6)


@pytest.mark.parametrize("linearised", [True, False])
def test_a_draw_is_what_it_says(linearised):
    """Catches a derivative at other weights, or the network where it is not meant."""
    network = orn.nn.MLP(3, 2, [4], activation=jnp.tanh, key=jr.key(9))
    x = features()
    fit = FittedModel(orn.Deterministic(network), orn.Gaussian(0.5))
    split = Split(x, x[:, :2])
    found = orn.fit_laplace(
        fit, split, structure=FullGGN(), linearised=linearised
    ).model
    drawn = found(jnp.asarray(x), key=jr.key(1), index=3).output
    sampled = found.deviation.sample(found.mode, key=jr.fold_in(jr.key(1), 3))
    call = lambda weights: found.with_weights(weights)(jnp.asarray(x))
    if linearised:
        at_mode, change = jax.jvp(call, (found.mode,), (sampled,))
        expected = at_mode + change
        with pytest.raises(ValueError, match="is no network of other weights"):
            found.network_at(3, key=jr.key(1))
    else:
        expected = call(jax.tree.map(jnp.add, found.mode, sampled))
        np.testing.assert_allclose(
            found.network_at(3, key=jr.key(1))(jnp.asarray(x)), expected, rtol=1e-5
        )
    np.testing.assert_allclose(drawn, expected, rtol=1e-4, atol=1e-5)


def test_a_network_without_a_forward_mode():
    """Catches `jax.jvp`, which our convolutions refuse (seen)."""
    network = orn.nn.LeNet(3, key=jr.key(10), width=0.2)
    x = np.random.default_rng(0).normal(size=(6, 28, 28, 1)).astype(np.float32)
    split = Split(x, np.arange(6) % 3)
    fit = FittedModel(orn.Deterministic(network), orn.Categorical())
    found = orn.fit_laplace(fit, split, structure=DiagonalGGN())
    outputs = orn.predict(found, x, key=jr.key(0), num_draws=3).outputs
    assert np.isfinite(outputs).all()
    assert np.ptp(outputs, axis=0).max() > 1e-4


def test_a_map_keeps_its_own_prior():
    """Catches a prior of N(0, 1) in place of the one that it was trained with."""
    x = features()
    network = orn.nn.MLP(3, 1, [4], key=jr.key(11))
    split = Split(x, x[:, :1])
    prior = orn.fan_in_prior(network, scale=0.7)
    fit = FittedModel(orn.functions.MAP.of(network, prior), orn.Gaussian(0.5))
    found = orn.fit_laplace(fit, split)  # the last layer's part of it
    for leaf in jax.tree.leaves(found.model.prior.priors):  # pyright: ignore
        assert float(leaf) in (0.0, pytest.approx(0.7 / 2))
    given = orn.fit_laplace(fit, split, prior=prior)
    np.testing.assert_allclose(given.model.kl, found.model.kl)


def test_it_is_saved_and_loaded(tmp_path):
    """Catches a model whose file another process cannot build the like of."""
    x = features()
    network = orn.nn.MLP(3, 1, [4], key=jr.key(12))
    fit = FittedModel(orn.Deterministic(network), orn.Gaussian(0.5))
    for structure in (LastLayer(), DiagonalGGN()):
        found = orn.fit_laplace(fit, Split(x, x[:, :1]), structure=structure)
        path = tmp_path / "model.npz"
        orn.save_model(path, found.model)
        new = orn.Deterministic(orn.nn.MLP(3, 1, [4], key=jr.key(13)))
        loaded = orn.load_model(path, laplace_like(new, structure=structure))
        draw = lambda model: model(jnp.asarray(x), key=jr.key(0), index=1).output
        np.testing.assert_array_equal(draw(loaded), draw(found.model))


def test_weights_at_the_prior():
    """Catches a prior's draw that is added to the trained weights."""
    fit, split, *_ = regression()
    prior = orn.GaussianPrior(PRIOR, mean=5.0)
    found = orn.fit_laplace(fit, split, structure=FullGGN(), prior=prior)
    put_back = found.model.posterior_parts().at_prior(("weights",), jr.key(0))
    drawn = jax.vmap(lambda i: put_back(jnp.eye(3), key=jr.key(1), index=i).output)(
        jnp.arange(2_000)
    )
    z = (np.asarray(drawn).mean() - 5.0) / (PRIOR / np.sqrt(6_000))
    assert abs(z) < 4.5
    assert float(put_back.kl) == 0


NETWORK = orn.nn.MLP(3, 1, [4], key=jr.key(0))
DATA = Split(features(), features()[:, :1])
FIT = FittedModel(orn.Deterministic(NETWORK), orn.Gaussian(0.5))
REFUSED = {
    "a network": (
        lambda: orn.fit_laplace(NETWORK, DATA),
        TypeError,
        "takes a fit, got MLP: give what `orn.fit` returned",
    ),
    "another family": (
        lambda: orn.fit_laplace(
            FittedModel(orn.MeanField(NETWORK), orn.Gaussian(0.5)), DATA
        ),
        TypeError,
        "got one of `MeanField`: train `orn.Deterministic",
    ),
    "a name": (
        lambda: orn.fit_laplace(FIT, DATA, structure="diagonal"),
        TypeError,
        "`structure` must be an `AbstractStructure`, got str",
    ),
    "a number": (
        lambda: orn.fit_laplace(FIT, DATA, prior=1.0),
        TypeError,
        "`prior` must be an `AbstractPrior`, got float",
    ),
    "a prior with a peak": (
        lambda: orn.fit_laplace(FIT, DATA, prior=orn.LaplacePrior(1.0)),
        ValueError,
        "around a normal prior, got `LaplacePrior`",
    ),
    "a likelihood": (
        lambda: orn.fit_laplace(FittedModel(FIT.model, orn.Cauchy(0.5)), DATA),
        ValueError,
        "not of `Cauchy`",
    ),
    "a likelihood with a peak": (
        lambda: orn.fit_laplace(FittedModel(FIT.model, orn.Laplace(0.5)), DATA),
        ValueError,
        "has no curvature that is positive and the same for all targets",
    ),
    "many weights": (
        lambda: orn.fit_laplace(
            FittedModel(
                orn.Deterministic(orn.nn.MLP(3, 1, [100, 100], key=jr.key(0))),
                orn.Gaussian(0.5),
            ),
            DATA,
            structure=FullGGN(),
        ),
        ValueError,
        r"`FullGGN` of 10,601 weights .* use `LastLayer\(\)`, `DiagonalGGN\(\)`",
    ),
    "no weights": (
        lambda: orn.fit_laplace(FIT, DATA, structure=FullGGN(lambda net: ())),
        ValueError,
        "chose no weights",
    ),
    "no layer": (
        lambda: orn.fit_laplace(
            FittedModel(orn.Deterministic(eqx.nn.PReLU()), orn.Gaussian(0.5)),
            Split(features(), features()),
        ),
        ValueError,
        "has no linear or convolutional layer",
    ),
    "targets": (
        lambda: orn.fit_laplace(FIT, Split(features(), features())),
        ValueError,
        "targets of shape",
    ),
    "a whole data set": (
        lambda: orn.fit_laplace(FIT, (features(), features())),
        TypeError,
        "`split` must have `x` and `y`, got tuple",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_one_sentence(name):
    """Catches an AttributeError of whatever met it first."""
    call, error, sentence = REFUSED[name]
    with pytest.raises(error, match=sentence):
        call()
