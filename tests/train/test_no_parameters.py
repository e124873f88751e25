"""Networks without parameters, and outputs without an axis: refused at each door."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Split
from ornstein.prediction import FittedModel

X = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")
DATA = Split(X, X[:, :1])
NOISE = orn.Gaussian(0.5)
LEARNED = orn.Gaussian(0.5, learn_scale=True)
FIT: dict[str, Any] = {"key": jr.key(0), "num_epochs": 1}
CHAINS: dict[str, Any] = {"kernel": orn.HMC(2), "key": jr.key(0)}
PRIOR = orn.GaussianPrior(1.0)


def hidden(x: jax.Array) -> jax.Array:
    """What `jax.vmap(network)` is to JAX: a function, whose arrays nobody finds."""
    return jax.vmap(eqx.nn.Linear(3, 1, key=jr.key(0)))(x)


def plain(network: Any) -> FittedModel:
    return FittedModel(orn.Deterministic(network), NOISE)


DOORS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda net: orn.fit(orn.Deterministic(net), DATA, NOISE, **FIT),
    "learned noise": lambda net: orn.fit(orn.Deterministic(net), DATA, LEARNED, **FIT),
    "ensemble": lambda net: orn.fit(orn.Ensemble([net, net]), DATA, LEARNED, **FIT),
    "sample": lambda net: orn.sample(net, DATA, NOISE, prior=PRIOR, **CHAINS),
    "mean field": lambda net: orn.fit(orn.MeanField(net), DATA, NOISE, **FIT),
    "map": lambda net: orn.fit(orn.functions.MAP.of(net, PRIOR), DATA, NOISE, **FIT),
    "laplace": lambda net: orn.fit_laplace(plain(net), DATA),
    "swag": lambda net: orn.fit_swag(
        plain(net), DATA, key=jr.key(0), learning_rate=0.1, num_epochs=2
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_network_without_parameters_is_refused(door: str):
    """Seen failing: with a learned scale the noise alone was trained, and nothing said;
    others spoke of `labels()`, or of `NoneType`."""
    match = r"^The network has no parameters .* such as jax\.vmap\(network\), hides"
    with pytest.raises(ValueError, match=match):
        DOORS[door](hidden)


@pytest.mark.parametrize("door", [name for name in DOORS if name != "swag"])
def test_a_scalar_for_each_row_is_refused(door: str):
    """Seen failing: said to be a network with as many outputs as rows."""
    with pytest.raises(ValueError, match=r"a scalar for each row, .* shape \(1,\)"):
        DOORS[door](eqx.nn.Linear(3, "scalar", key=jr.key(0)))


def test_a_likelihood_of_ones_own_may_take_scalars():
    own = orn.CustomLikelihood(lambda output, y: -jnp.square(output - y))
    network = orn.Deterministic(eqx.nn.Linear(3, "scalar", key=jr.key(0)))
    fit = orn.fit(network, Split(X, X[:, 0]), own, **FIT)
    assert np.isfinite(fit.history["loss"]).all()
