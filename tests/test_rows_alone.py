"""Networks of one's own that mix the rows of a batch: noticed at every door."""

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
from ornstein.functions import check_rows_alone
from ornstein.prediction import FittedModel

X = np.random.default_rng(0).normal(size=(30, 4)).astype("float32")
DATA = Split(X, X[:, :1])
NOISE = orn.Gaussian(0.5)
PRIOR = orn.GaussianPrior(1.0)
MIXED = r"`OneRow` gives a row other numbers within a batch than alone, .*PerExample"


class OneRow(eqx.Module):
    """Of one example, written by hand, that runs on a batch too."""

    weight: jax.Array
    change: Callable = eqx.field(static=True)

    def __init__(self, change: Callable, *, scale: float = 1.0, num_inputs: int = 4):
        self.weight = scale * jr.normal(jr.key(0), (num_inputs, 1))
        self.change = change

    def __call__(self, x: Any) -> jax.Array:
        return self.change(x) @ self.weight


normalised = lambda x: (x - x.mean()) / x.std()
as_number = lambda x: x.astype(jnp.float32)


def without_nan(x: jax.Array) -> jax.Array:
    return normalised(jnp.where(jnp.isnan(x), 0.0, x))


def refusing_nan(x: jax.Array) -> jax.Array:
    return normalised(eqx.error_if(x, jnp.any(jnp.isnan(x)), "no number"))


MIXING = {
    "normalised": normalised,
    "centred": lambda x: x - x.mean(0, keepdims=True),
    "by the largest": lambda x: x / jnp.max(jnp.abs(x)),
    "from the first": lambda x: x - x[:1],
    "by its length": lambda x: x / jnp.sqrt(x.shape[0]),
    "by its place": lambda x: x * jnp.arange(1.0, 1.0 + x.shape[0])[:, None],
    "without NaN": without_nan,
    "refusing NaN": refusing_nan,
}


def looked_at(network: Any, x: Any = X) -> None:
    check_rows_alone(orn.Deterministic(network), x, None)


@pytest.mark.parametrize("name", MIXING)
def test_a_network_that_mixes_rows_is_refused(name: str):
    """Seen failing: a row's prediction was another beside other rows."""
    with pytest.raises(ValueError, match=MIXED):
        looked_at(OneRow(MIXING[name]))


def test_weights_of_zero_hide_nothing():
    """Catches a look at numbers alone: a head starts at zero, and training moves it."""
    with pytest.raises(ValueError, match=MIXED):
        looked_at(OneRow(normalised, scale=0.0))


def test_whole_numbers_are_looked_at_beside_others():
    with pytest.raises(ValueError, match=MIXED):
        looked_at(OneRow(lambda x: normalised(as_number(x))), (9 * X).astype("int32"))


def test_rows_of_several_arrays_are_looked_at():
    network = OneRow(lambda x: x["a"] - x["b"].mean(0, keepdims=True))
    with pytest.raises(ValueError, match=MIXED):
        looked_at(network, {"a": X, "b": X})
    looked_at(OneRow(lambda x: x["a"] - x["b"]), {"a": X, "b": X})


def test_a_network_of_ours_may_hold_what_mixes_rows():
    centred = lambda x: x - x.mean()
    network = orn.nn.MLP(4, 1, (3,), activation=centred, key=jr.key(0))
    with pytest.raises(ValueError, match="`MLP` gives a row other numbers"):
        looked_at(network)
    with pytest.raises(ValueError, match=MIXED):
        looked_at(orn.nn.Flattened(OneRow(normalised), 1))


def test_a_row_alone_may_be_something_else():
    """Independent rows, and not those of the example: axis 1 is another one."""
    network = OneRow(lambda x: x.mean(1), num_inputs=3)
    with pytest.raises(ValueError, match=r"PerExample\(network, num_axes=2\)"):
        looked_at(network, np.random.default_rng(1).normal(size=(9, 3, 3)))


class Mapped(eqx.Module):
    """Of a batch, with a normalisation whose statistics are those of training."""

    norm: eqx.nn.BatchNorm

    def __call__(self, x: Any, state: Any) -> Any:
        over_rows = jax.vmap(
            self.norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None)
        )
        return over_rows(x, state)


def halved(x: jax.Array) -> jax.Array:
    return jnp.tanh(x.astype(jnp.bfloat16) / 3).astype(jnp.float32)


APART: dict[str, Any] = {
    "of both kinds": OneRow(jnp.tanh),
    "half precision": OneRow(halved),
    "as one row": OneRow(lambda x: x.reshape(-1, 4)),
    "infinite": OneRow(lambda x: 1.0 / (0.0 * x)),
    "layers": eqx.nn.Sequential([eqx.nn.Linear(4, 1, key=jr.key(0))]),
    "a function": lambda x: jnp.sort(x, axis=-1),
    "meant": orn.nn.WholeBatch(OneRow(normalised)),
    "of one row": orn.nn.PerExample(OneRow(normalised)),
}


@pytest.mark.parametrize("name", APART)
def test_rows_apart_are_not_refused(name: str):
    looked_at(APART[name])


def test_a_normalisation_is_as_it_predicts():
    """Catches a look in training, in which its statistics are of the batch."""
    for mode in ("batch", "ema"):
        model = orn.Deterministic(Mapped(eqx.nn.BatchNorm(4, "batch", mode=mode)))
        check_rows_alone(model, X, eqx.nn.State(model))


def test_random_functions_are_one_function_of_all_rows():
    own = lambda x: jnp.tanh(x)
    network = orn.nn.MLP(4, 1, (3,), activation=own, key=jr.key(0))
    for model in (
        orn.MCDropout(network, rate=0.5),
        orn.ImplicitBNN(network, key=jr.key(0)),
        orn.MeanField(network, noise=orn.Flipout()),
    ):
        check_rows_alone(model, X, None)


def test_few_rows_are_enough():
    for num_rows in (1, 2):
        with pytest.raises(ValueError, match=MIXED):
            looked_at(OneRow(normalised), X[:num_rows])
        looked_at(OneRow(jnp.tanh), X[:num_rows])


def test_where_nan_is_an_error_it_is_none():
    with jax.debug_nans(True):
        looked_at(OneRow(jnp.tanh))
        with pytest.raises(ValueError, match=MIXED):
            looked_at(OneRow(normalised, scale=0.0))


def test_nothing_is_looked_at_within_a_trace():
    network = OneRow(normalised)

    @jax.jit
    def traced(x: jax.Array) -> jax.Array:
        looked_at(network, x)
        return network(x)

    assert traced(X).shape == (30, 1)


FIT: dict[str, Any] = {"key": jr.key(0), "num_epochs": 1}
CHAINS: dict[str, Any] = {"kernel": orn.HMC(2), "prior": PRIOR, "key": jr.key(0)}


def fitted(network: Any) -> FittedModel:
    return FittedModel(orn.Deterministic(network), NOISE)


DOORS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda net: orn.fit(orn.Deterministic(net), DATA, NOISE, **FIT),
    "mean field": lambda net: orn.fit(orn.MeanField(net), DATA, NOISE, **FIT),
    "map": lambda net: orn.fit(orn.functions.MAP.of(net, PRIOR), DATA, NOISE, **FIT),
    "ensemble": lambda net: orn.fit(orn.Ensemble([net, net]), DATA, NOISE, **FIT),
    "sample": lambda net: orn.sample(net, DATA, NOISE, **CHAINS),
    "predict": lambda net: orn.predict(fitted(net), X, key=jr.key(0)),
    "laplace": lambda net: orn.fit_laplace(
        fitted(net), DATA, structure=orn.train.FullGGN()
    ),
    "swag": lambda net: orn.fit_swag(
        fitted(net), DATA, key=jr.key(0), learning_rate=0.01, num_epochs=2
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_it_every_time(door: str):
    """Seen failing at each: none had looked. A second call is as the first."""
    for _ in range(2):
        with pytest.raises(ValueError, match=MIXED):
            DOORS[door](OneRow(normalised))


def test_told_how_a_row_is_alone_from_training_to_reload(tmp_path):
    """What the refusal says to write makes a row's numbers its own, also reloaded."""
    model = orn.Deterministic(orn.nn.PerExample(OneRow(normalised)))
    fit = orn.fit(model, DATA, NOISE, **FIT)
    alone = jnp.stack([fit.model.network.module(row) for row in X])
    orn.save_model(tmp_path / "net.npz", (fit.model, fit.likelihood))
    loaded = orn.load_model(tmp_path / "net.npz", (model, NOISE))
    for each in (fit, FittedModel(*loaded)):
        for rows in (slice(None), slice(3, 5)):
            found = orn.predict(each, X[rows], key=jr.key(0), num_draws=1).mean
            np.testing.assert_allclose(found, alone[rows], rtol=1e-4, atol=1e-5)


def test_a_network_of_one_number_of_rows_is_refused():
    """Catches a product of the batch with itself, where rows are as many as numbers."""
    with pytest.raises(ValueError, match="runs on a batch of 4 rows and not on other"):
        looked_at(OneRow(lambda x: jnp.eye(4) @ x @ jnp.ones((4, 1)) @ x[:1]), X[:4])
