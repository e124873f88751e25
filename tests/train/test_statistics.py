"""Batch statistics of given weights, against numpy's means and variances of batches.

Seen failing: the old statistics kept as a first batch, the last batch alone, weights
of the last step where those of the running mean were asked for.
"""

from itertools import islice
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_networks import (
    Normalised,
    equinox_vectors,
    with_moments,
)

from ornstein import nn
from ornstein.data._base import Split
from ornstein.functions import Deterministic, ImplicitBNN, MeanField
from ornstein.likelihood import Gaussian
from ornstein.network import batch_states
from ornstein.train import (
    EarlyStopping,
    Fit,
    Validation,
    fit,
    recompute_statistics,
    validate,
)
from ornstein.train._shuffle import batch_indices

X = (2 * np.random.default_rng(0).standard_normal((26, 3)) + 1).astype(np.float32)


def by_numpy(network: Any, x: np.ndarray, batch_size: int) -> tuple:
    """Of what meets the normalisation: mean of the means, mean of the variances."""
    h = x @ np.asarray(network.first.weight) + np.asarray(network.first.bias)
    num_batches = len(x) // batch_size
    h = h[: num_batches * batch_size].reshape(num_batches, batch_size, -1)
    return h.mean((0, 1)), h.var(1, ddof=1).mean(0)


def shuffled(key: jax.Array, batch_size: int) -> np.ndarray:
    """The rows in the order of the batches."""
    batches = batch_indices(len(X), batch_size, key=key, start=0)
    return X[np.concatenate([*islice(batches, len(X) // batch_size)])]


def assert_statistics(state: Any, network: Any, expected: tuple) -> None:
    for found, value in zip(state.get(network.norm.index), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_size", [6, 128])
def test_statistics_are_the_mean_of_the_batches(batch_size: int):
    """Four batches of 6 and two rows left over; and one batch of all. Neither an old
    state matters, nor that weights are random."""
    model = Deterministic(Normalised(key=jr.key(0)))
    network: Any = model.network
    batch_size = min(batch_size, len(X))
    expected = by_numpy(network, shuffled(jr.key(1), batch_size), batch_size)
    old = eqx.nn.State(model).set(network.norm.index, (jnp.ones(4), jnp.ones(4)))
    for function, state in (
        (model, None),
        (model, old),
        (MeanField(network, init_scale=1e-6), None),
    ):
        found = recompute_statistics(
            function, X, key=jr.key(1), state=state, batch_size=batch_size
        )
        assert_statistics(found, network, expected)


def test_folded_network_has_statistics_of_its_own():
    """With multipliers of 2 in front of the layer, its outputs' spread doubles."""
    network = Normalised(key=jr.key(0))
    model = ImplicitBNN(network, num_components=2, key=jr.key(1))
    mean = jnp.concatenate([jnp.full(3, 2.0), jnp.ones(4)])[None]
    folded = with_moments(model, mean, 0.0).to_deterministic()
    fitted = Fit(folded, Gaussian(1.0), eqx.nn.State(folded), {}, None)
    found = fitted.with_statistics_of(X, key=jr.key(2), batch_size=13)
    rows = shuffled(jr.key(2), 13)
    expected = by_numpy(folded.network, rows, 13)
    assert_statistics(found.state, folded.network, expected)
    plain = by_numpy(network, rows, 13)
    np.testing.assert_allclose(expected[1], 4 * plain[1], rtol=1e-4)


def test_running_mean_of_weights_has_statistics_of_its_own():
    split = Split(X, np.sin(X[:, :2]))
    result = fit(
        Deterministic(Normalised(key=jr.key(0))),
        split,
        Gaussian(0.5),
        key=jr.key(1),
        num_epochs=10,
        batch_size=13,
        learning_rate=0.1,
        ema_decay=0.9,
    )
    averaged = result.averaged().with_statistics_of(X, key=jr.key(2), batch_size=13)
    rows = shuffled(jr.key(2), 13)
    expected = by_numpy(averaged.model.network, rows, 13)
    assert_statistics(averaged.state, averaged.model.network, expected)
    last = by_numpy(result.model.network, rows, 13)
    assert np.max(abs(last[0] - expected[0])) > 0.01
    assert eqx.tree_equal(averaged.model, result.averaged().model)


def test_the_running_mean_is_judged_with_statistics_of_its_own():
    """Bit for bit those of `with_statistics_of`, also of the best epoch. Catches (seen)
    those of the steps' weights, and those of an earlier best epoch."""
    held = Split(X[:13], 0.5 * np.sin(X[:13, :2]))
    result = fit(
        Deterministic(Normalised(key=jr.key(0))),
        Split(X, np.sin(X[:, :2])),
        Gaussian(0.5),
        key=jr.key(1),
        num_epochs=60,
        batch_size=13,
        learning_rate=0.02,
        ema_decay=0.9,
        validation=Validation(held, early_stopping=EarlyStopping(patience=3)),
    )
    nlls = result.history["val_ema_nll"]
    best = int(np.argmin(nlls))
    assert 3 < best < len(nlls) - 1
    own_key = jr.split(jr.key(1), 3)[2]  # of what is held out
    averaged = result.averaged().with_statistics_of(X, key=own_key, batch_size=13)
    scores = validate(
        averaged.model,
        averaged.likelihood,
        (held.x, held.y),
        key=jr.key(0),
        num_draws=8,
        state=averaged.state,
    )
    assert scores["nll"] == nlls[best]


def test_statistics_of_some_batches():
    """The first two of four."""
    model = Deterministic(Normalised(key=jr.key(0)))
    found = recompute_statistics(model, X, key=jr.key(1), batch_size=6, max_batches=2)
    expected = by_numpy(model.network, shuffled(jr.key(1), 6)[:12], 6)
    assert_statistics(found, model.network, expected)


def test_equinox_statistics_go_on_as_they_do_in_training():
    model = Deterministic(equinox_vectors(is_normalised=True, key=jr.key(0)))
    state = eqx.nn.State(model)
    found = recompute_statistics(model, X, key=jr.key(1), batch_size=13)
    for rows in shuffled(jr.key(1), 13).reshape(2, 13, 3):
        state = model(jnp.asarray(rows), key=jr.key(0), state=state).state
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", [Deterministic, MeanField])
def test_statistics_of_a_network_in_inference_mode_are_kept(family: Any):
    """Frozen on purpose: catches (seen) those of the batches in their place."""
    network = eqx.nn.inference_mode(Normalised(key=jr.key(0)))
    model = family(network)
    index, *_ = batch_states(model)
    old = eqx.nn.State(model).set(index, (jnp.ones(4), jnp.ones(4)))
    assert recompute_statistics(model, X, key=jr.key(1), state=old) is old


def test_dropout_that_is_off_stays_off():
    """Beside a norm that is not. Catches (seen) dropout without a key."""
    layers = equinox_vectors(is_normalised=True, key=jr.key(0)).module.layers
    silent = eqx.nn.Dropout(0.5, inference=True)
    network = nn.PerExample(eqx.nn.Sequential([*layers, silent]))
    states = [
        recompute_statistics(Deterministic(each), X, key=jr.key(1), batch_size=13)
        for each in (network, nn.PerExample(eqx.nn.Sequential(layers)))
    ]
    found, expected = map(jax.tree.leaves, states)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_model_without_batch_statistics_has_none():
    model = Deterministic(nn.MLP(3, 1, (4,), key=jr.key(0)))
    assert recompute_statistics(model, X, key=jr.key(1)) is None


def test_rows_in_the_order_of_their_classes_are_shuffled():
    """As a folder of images has them. Catches (seen) variances within classes alone."""
    model = Deterministic(Normalised(key=jr.key(0)))
    network: Any = model.network
    x = np.repeat(X[:4], 64, axis=0)  # four kinds of rows
    state: Any = recompute_statistics(model, x, key=jr.key(1), batch_size=32)
    h = x @ np.asarray(network.first.weight) + np.asarray(network.first.bias)
    np.testing.assert_allclose(state.get(network.norm.index)[1], h.var(0), rtol=0.2)
