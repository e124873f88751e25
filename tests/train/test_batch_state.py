"""Batch statistics through training: every step moves them on, and a run keeps them.

Seen failing: a state reset each step, the biased variance, statistics of the draws
summed, a resumed run that starts its statistics anew.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from functions.small_networks import Normalised, equinox_vectors

from ornstein.data._base import Split
from ornstein.functions import Deterministic, ImplicitBNN
from ornstein.likelihood import Gaussian
from ornstein.prediction import predict
from ornstein.train import (
    Constant,
    EarlyStopping,
    Fit,
    Run,
    RunFolder,
    Validation,
    fit,
    load_model,
    save_model,
)

RATE, NOISE = 0.05, 0.5


def small_split(num_rows: int = 24) -> Split:
    rng = np.random.default_rng(0)
    x = (2 * rng.standard_normal((num_rows, 3)) + 1).astype(np.float32)
    return Split(x, np.sin(x[:, :2]))


def by_hand(network: Normalised, split: Split, num_steps: int) -> tuple[Any, Any, Any]:
    """Gradient descent and running averages: parameters, means, variances."""
    x, y = jnp.asarray(split.x), jnp.asarray(split.y)
    layers = network.first, network.last
    params = [a for layer in layers for a in (layer.weight, layer.bias)]
    params += [network.norm.scale, network.norm.offset]

    def loss(params: list) -> tuple[Any, Any]:
        w, b, last_w, last_b, scale, offset = params
        h = x @ w + b[None]
        mean, variance = jnp.mean(h, 0), jnp.var(h, 0)
        h = (h - mean[None]) / jnp.sqrt(variance + 1e-5)[None]
        output = jnp.tanh(h * scale[None] + offset[None]) @ last_w + last_b[None]
        squares = jnp.sum((y - output) ** 2, axis=1) / (2 * NOISE**2)
        return jnp.mean(squares), (mean, variance)

    step = jax.jit(jax.grad(loss, has_aux=True))
    running_mean, running_variance = np.zeros(4), np.ones(4)
    for _ in range(num_steps):
        grads, (mean, variance) = step(params)
        params = [p - RATE * g for p, g in zip(params, grads, strict=True)]
        running_mean = 0.9 * running_mean + 0.1 * np.asarray(mean)
        unbiased = np.asarray(variance) * len(x) / (len(x) - 1)
        running_variance = 0.9 * running_variance + 0.1 * unbiased
    return params, running_mean, running_variance


@pytest.mark.parametrize("num_draws", [1, 3])
def test_state_and_weights_are_those_of_a_loop(num_draws: int):
    network, split = Normalised(key=jr.key(0)), small_split()
    result = fit(
        Deterministic(network),
        split,
        Gaussian(NOISE),
        key=jr.key(1),
        num_epochs=6,
        batch_size=24,
        optimiser=optax.sgd,
        learning_rate=RATE,
        schedule=Constant(),
        clip_norm=None,
        num_draws=num_draws,
    )
    params, mean, variance = by_hand(network, split, 6)
    assert isinstance(result.model, Deterministic)
    trained: Any = result.model.network
    found = [trained.first.weight, trained.first.bias, trained.last.weight]
    found += [trained.last.bias, trained.norm.scale, trained.norm.offset]
    for a, b in zip(found, params, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    found_mean, found_variance = result.state.get(trained.norm.index)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_variance, variance, rtol=1e-4)
    moved = np.max(abs(np.asarray(found[0] - network.first.weight)))
    assert moved > 0.01
    start = result.model.network.norm.index.init
    np.testing.assert_array_equal(np.asarray(start), [np.zeros(4), np.ones(4)])
    # Prediction, by hand from the running averages.
    w, b, last_w, last_b, scale, offset = map(np.asarray, params)
    h = (split.x @ w + b - mean) / np.sqrt(variance + 1e-5)
    expected = np.tanh(h * scale + offset) @ last_w + last_b
    prediction = predict(result, split.x, key=jr.key(0), num_draws=1, batch_size=7)
    np.testing.assert_allclose(prediction.mean, expected, rtol=1e-3, atol=1e-4)


class Stop(Exception):
    """Pulls the plug after some steps."""


class Interrupt:
    """A callback that stops the run after some steps."""

    def __init__(self, step: int):
        self.step = step

    def start(self, plan: Any) -> None:
        del plan

    def advance(self, step: int, record: dict[str, Any]) -> None:
        del record
        if step >= self.step:
            raise Stop

    def epoch(self, record: dict[str, Any]) -> None:
        del record

    def stop(self) -> None:
        pass


def train(
    run: RunFolder | None, *, is_ours: bool, resume: bool = False, **options: Any
) -> Fit:
    """A model made anew, as another process would."""
    split = small_split(32)
    if is_ours:
        network: Any = Normalised(key=jr.key(0))
    else:
        network = equinox_vectors(is_normalised=True, key=jr.key(0))
    return fit(
        ImplicitBNN(network, num_components=2, key=jr.key(1)),
        Split(split.x[:24], split.y[:24]),
        Gaussian(NOISE, learn_scale=True),
        key=jr.key(2),
        num_epochs=6,
        batch_size=8,
        learning_rate=0.02,
        num_draws=2,
        ema_decay=0.9,
        validation=Validation(
            Split(split.x[24:], split.y[24:]),
            num_draws=2,
            early_stopping=EarlyStopping(patience=20),
        ),
        run=run and Run(run, resume=resume, checkpoint_every=0.0),
        **options,
    )


def arrays_of(result: Fit) -> list[bytes]:
    history = {k: v for k, v in result.history.items() if k != "seconds"}
    kept = (result.model, result.likelihood, result.state, result.ema, history)
    arrays = jax.tree.leaves(eqx.filter(kept, eqx.is_array_like))
    return [np.asarray(a).tobytes() for a in arrays]


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "Equinox's"])
def test_resumed_run_has_the_same_bits(tmp_path, is_ours: bool):
    """And its fit comes back from a file, batch statistics included."""
    uninterrupted = train(None, is_ours=is_ours)
    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(Stop):
        train(run, is_ours=is_ours, callbacks=(Interrupt(7),))
    resumed = train(run, is_ours=is_ours, resume=True)
    assert arrays_of(resumed) == arrays_of(uninterrupted)
    assert not eqx.tree_equal(
        jax.tree.leaves(resumed.state), jax.tree.leaves(eqx.nn.State(resumed.model))
    )
    save_model(tmp_path / "fit.npz", (resumed.model, resumed.state))
    make = Normalised(key=jr.key(8))
    if not is_ours:
        make = equinox_vectors(is_normalised=True, key=jr.key(8))
    like = ImplicitBNN(make, num_components=2, key=jr.key(9))
    model, state = load_model(tmp_path / "fit.npz", (like, eqx.nn.State(like)))
    loaded = Fit(model, resumed.likelihood, state, {}, None)
    x = small_split().x
    first, second = (
        predict(f, x, key=jr.key(0), num_draws=2).outputs for f in (resumed, loaded)
    )
    np.testing.assert_array_equal(first, second)


def test_a_state_that_is_given_is_where_training_starts():
    """And it is the caller's still."""
    model = Deterministic(Normalised(key=jr.key(0)))
    network: Any = model.network
    given = (100 * jnp.ones(4), 50 * jnp.ones(4))
    state = eqx.nn.State(model).set(network.norm.index, given)
    result = fit(
        model,
        small_split(),
        Gaussian(NOISE),
        key=jr.key(0),
        num_epochs=1,
        batch_size=24,
        state=state,
    )
    mean, variance = result.state.get(network.norm.index)
    assert np.all(abs(np.asarray(mean) - 90) < 5)
    assert np.all(np.asarray(variance) > 44)
    np.testing.assert_array_equal(state.get(network.norm.index)[0], np.full(4, 100.0))
