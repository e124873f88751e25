"""Arguments of another type than they should be, each refused in a sentence."""

import jax
import numpy as np
import pandas as pd
import pytest

import ornstein as orn

X, Y = np.zeros((8, 3), np.float32), np.zeros((8, 1), np.float32)
SPLIT = orn.data.Split(X, Y)
KEY = jax.random.key(0)
NOISE = orn.Gaussian(0.1)


def model():
    return orn.MeanField(orn.nn.MLP(3, 1, [4], key=KEY), orn.GaussianPrior(1.0))


def fit(model, split=SPLIT, likelihood=NOISE, key=KEY):
    return orn.fit(model, split, likelihood, key=key, num_epochs=1)


def sample(key=KEY, likelihood=NOISE):
    network, prior = orn.nn.MLP(3, 1, [4], key=KEY), orn.GaussianPrior(1.0)
    options = {"prior": prior, "kernel": orn.HMC(2), "num_samples": 1}
    return orn.sample(network, SPLIT, likelihood, key=key, num_warmup=1, **options)


def fitted():
    return orn.prediction.FittedModel(model(), orn.Gaussian(0.1))


WRONG = {
    "a seed": (lambda: fit(model(), key=3), r"write key=jax.random.key\(3\)"),
    "a seed of chains": (lambda: sample(key=0), r"write key=jax.random.key\(0\)"),
    "a seed of draws": (lambda: orn.predict(fitted(), X, key=5), r"random.key\(5\)"),
    "a class": (lambda: fit(model(), likelihood=orn.Gaussian), "got the class Gaussi"),
    "chains' class": (lambda: sample(likelihood=orn.Gaussian), "the class Gaussian"),
    "a table": (
        lambda: fit(model(), orn.data.Split(pd.DataFrame(X), Y)),
        r"`split.x` must be an array, .* got DataFrame: write numpy.asarray\(x, ",
    ),
    "new rows in a table": (
        lambda: orn.predict(fitted(), pd.DataFrame(X), key=KEY),
        r"`x` must be an array, .* got DataFrame",
    ),
    "new rows in lists": (
        lambda: orn.predict(fitted(), [[1.0, 2.0, 3.0]], key=KEY),
        r"`x` must be an array, .* got list",
    ),
    "a network": (
        lambda: orn.predict(orn.nn.MLP(3, 1, [4], key=KEY), X, key=KEY),
        "`fit` must be what `orn.fit` or `orn.sample` returned, got MLP",
    ),
    "a network to fit": (
        lambda: fit(orn.nn.MLP(3, 1, [4], key=KEY)),
        "got MLP: write `orn.MeanField",
    ),
    "a pair": (lambda: fit(model(), (X, Y)), r"got tuple: .* orn.data.Split\(x, y\)"),
    "a data set": (
        lambda: fit(model(), orn.data.Data("mine", "regression", SPLIT, SPLIT)),
        "got Data: of a data set give a split, such as `data.train`",
    ),
    "half an epoch": (
        lambda: orn.fit(model(), SPLIT, NOISE, key=KEY, num_epochs=1.5),
        "`num_epochs` must be a whole number, got 1.5",
    ),
    "a split to predict": (
        lambda: orn.predict(fitted(), SPLIT, key=KEY),
        "must be inputs alone, got Split: write `data.test.x`",
    ),
    "a scale for a prior": (
        lambda: orn.MeanField(orn.nn.MLP(3, 1, [4], key=KEY), 1.0),
        r"`prior` must be an .* got float: write orn.GaussianPrior\(1.0\)",
    ),
    "a class of priors": (
        lambda: orn.MeanField(orn.nn.MLP(3, 1, [4], key=KEY), orn.GaussianPrior),
        "got the class GaussianPrior",
    ),
    "a class of networks": (
        lambda: orn.Deterministic(orn.nn.MLP),
        r"got the class MLP: make one, as in MLP\(\.\.\., key",
    ),
    "a random function for a network": (
        lambda: orn.MeanField(model()),
        "got the random function `MeanField`: give the network",
    ),
    "one member": (
        lambda: orn.Ensemble(orn.nn.MLP(3, 1, [4], key=KEY)),
        r"got MLP: write orn.Ensemble\(\[network, other\]\)",
    ),
    "a seed of nodes": (
        lambda: orn.ImplicitBNN(orn.nn.MLP(3, 1, [4], key=KEY), key=0),
        r"write key=jax.random.key\(0\)",
    ),
    "a model to diagnose": (
        lambda: orn.diagnose(model(), SPLIT, key=KEY),
        "got MeanField: of a random function alone write",
    ),
    "a seed of a diagnosis": (
        lambda: orn.diagnose(fitted(), SPLIT, key=0),
        r"write key=jax.random.key\(0\)",
    ),
    "an array": (lambda: orn.evaluate(X, Y), "`prediction` must be .* got ndarray"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("unchecked")
def test_another_type_is_one_sentence(name):
    """Catches an AttributeError of whatever met it first (each seen)."""
    call, sentence = WRONG[name]
    with pytest.raises(TypeError, match=sentence):
        call()


def test_legacy_keys_are_keys():
    """Those of jax.random.PRNGKey, which other libraries still give."""
    found = orn.predict(fitted(), X, key=jax.random.PRNGKey(0), num_draws=2)
    assert found.num_rows == 8


def test_a_row_without_its_axis_is_one_sentence():
    """Catches advice about another wrapper of the network, where x[None] is all."""
    with pytest.raises(ValueError, match=r"give rows first, x\[None\]"):
        orn.predict(fitted(), X[0], key=KEY)
