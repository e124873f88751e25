"""SWAG of a trained network, by `fit_swag`.

They catch momentum left out, and a prior whose energy is not divided by the rows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.functions import MAP
from ornstein.prediction import FittedModel
from ornstein.train import swag_like

NUM_ROWS = 12
X = np.random.default_rng(0).normal(size=(NUM_ROWS, 3)).astype(np.float32)
Y = (X[:, :1] - X[:, 1:2]).astype(np.float32)
DATA = Split(X, Y)
KEY = jr.key(0)


def linear_fit(prior: float | None = None) -> FittedModel:
    network = orn.nn.Linear(3, 1, use_bias=False, key=KEY)
    model = (
        orn.Deterministic(network)
        if prior is None
        else MAP.of(network, orn.GaussianPrior(prior))
    )
    return FittedModel(model, orn.Gaussian(0.5))


@pytest.mark.parametrize(("prior", "decay"), [(None, 0.0), (None, 0.1), (0.7, 0.0)])
def test_its_iterates_are_those_of_sgd(prior, decay):
    """Whole batches, so that the path is one of gradient descent with momentum."""
    fit = linear_fit(prior)
    rate, epochs = 0.02, 5
    found = orn.fit_swag(
        fit,
        DATA,
        key=KEY,
        learning_rate=rate,
        num_epochs=epochs,
        weight_decay=decay,
        rank=3,
    ).model
    w = np.asarray(jax.tree.leaves(fit.model.network)[0], np.float64)
    trace, path = np.zeros_like(w), []
    for _ in range(epochs):
        gradient = X.T @ (X @ w - Y) / 0.5**2 / NUM_ROWS + decay * w
        if prior is not None:
            gradient += w / prior**2 / NUM_ROWS
        trace = 0.9 * trace + gradient
        w = w - rate * trace
        path.append(w)
    (mean,), (scale,) = jax.tree.leaves(found.mean), jax.tree.leaves(found.scale)
    np.testing.assert_allclose(mean, np.mean(path, axis=0), rtol=1e-4)
    np.testing.assert_allclose(scale, np.std(path, axis=0), rtol=1e-3)
    assert found.rank == 3


def test_it_is_scored_saved_and_loaded(tmp_path):
    """Catches moments of another structure than another process builds."""
    network = orn.nn.MLP(3, 1, [4], key=KEY)
    fit = FittedModel(orn.Deterministic(network), orn.Gaussian(0.5))
    found = orn.fit_swag(fit, DATA, key=KEY, learning_rate=0.01, num_epochs=4)
    prediction = orn.predict(found, X, key=KEY, num_draws=4)
    assert np.ptp(prediction.outputs, axis=0).min() > 0
    orn.save_model(tmp_path / "swag.npz", found.model)
    new = orn.Deterministic(orn.nn.MLP(3, 1, [4], key=jr.key(1)))
    like = swag_like(new, num_epochs=4, rank=None)
    loaded = orn.load_model(tmp_path / "swag.npz", like)
    draw = lambda model: model(jnp.asarray(X), key=KEY, index=1).output
    np.testing.assert_array_equal(draw(loaded), draw(found.model))


class Dropped(eqx.Module):
    """Of one example, with dropout of its own."""

    linear: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __call__(self, x):
        return self.dropout(self.linear(x))


@pytest.mark.parametrize("prior", [None, 0.7])
def test_dropout_that_is_off_stays_off(prior):
    """As `fit` advises. Catches (seen) dropout that is on again, and refused."""
    network = Dropped(eqx.nn.Linear(3, 1, key=KEY), eqx.nn.Dropout(0.5))
    network = eqx.nn.inference_mode(network)
    model = (
        orn.Deterministic(network)
        if prior is None
        else MAP.of(network, orn.GaussianPrior(prior))
    )
    fit = FittedModel(model, orn.Gaussian(0.5))
    options = {"key": KEY, "learning_rate": 0.01, "num_epochs": 3}
    found = orn.fit_swag(fit, DATA, **options)
    plain = FittedModel(orn.Deterministic(network.linear), orn.Gaussian(0.5))
    if prior is None:
        same = orn.fit_swag(plain, DATA, **options).model
        pairs = zip(
            jax.tree.leaves(found.model.mean), jax.tree.leaves(same.mean), strict=True
        )
        for leaf, other in pairs:
            np.testing.assert_allclose(leaf, other, rtol=1e-6)
    assert np.isfinite(orn.predict(found, X, key=KEY, num_draws=2).outputs).all()


NETWORK = orn.nn.MLP(3, 1, [4], key=KEY)
REFUSED = {
    "a network": (NETWORK, {}, TypeError, "`fit_swag` takes a fit, got MLP"),
    "a seed": (linear_fit(), {"key": 3}, TypeError, r"write key=jax.random.key\(3\)"),
    "no rate": (linear_fit(), {"learning_rate": 0.0}, ValueError, "must be positive"),
    "one epoch": (linear_fit(), {"num_epochs": 1}, ValueError, "at least 2, got 1"),
    "a rank": (linear_fit(), {"rank": 5, "num_epochs": 3}, ValueError, "`rank` is"),
    "too far": (
        linear_fit(),
        {"learning_rate": 1e20, "num_epochs": 9},
        orn.train.NonFiniteError,
        "lower `learning_rate`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_one_sentence(name):
    """Catches weights that are not numbers, and errors of whatever met them first."""
    fit, options, error, sentence = REFUSED[name]
    options = {"key": KEY, "learning_rate": 0.01, "num_epochs": 3} | options
    with pytest.raises(error, match=sentence):
        orn.fit_swag(fit, DATA, **options)
