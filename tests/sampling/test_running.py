"""Predictions summed up as chains run are those of all stored samples."""

import itertools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ornstein as orn
from ornstein.functions import thinned
from ornstein.prediction import Summary
from ornstein.sampling import RunningPrediction, _progress, _run
from ornstein.sampling._progress import to_lists
from ornstein.sampling._running import since_stored
from ornstein.sampling._store import as_arrays
from ornstein.train import CheckpointError, save_model

NUM_SAMPLES, NUM_CHAINS = 20, 2


def data(task: str) -> orn.data.Split:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 2)).astype("float32")
    if task == "classes":
        return orn.data.Split(x, (x[:, 0] > 0).astype("int32") + (x[:, 1] > 0.5))
    if task == "zeros and ones":
        return orn.data.Split(x, (x[:, :1] > 0).astype("float32"))
    return orn.data.Split(x, np.sin(x[:, :1]).astype("float32"))


def sampled(task: str, **options: Any) -> Any:
    size = 3 if task == "classes" else 1
    network = orn.nn.MLP(2, size, [4], activation=jnp.tanh, key=jax.random.key(0))
    learned = {"likelihood_prior": orn.GaussianPrior(1.0)}
    likelihood = orn.Gaussian(0.5, learn_scale=True)
    if task == "classes":
        learned, likelihood = {}, orn.Categorical()
    if task == "zeros and ones":
        learned, likelihood = {}, orn.Bernoulli()
    return orn.sample(
        network,
        data(task),
        likelihood,
        kernel=orn.HMC(3, step_size=0.1),
        prior=orn.GaussianPrior(1.0),
        key=jax.random.key(1),
        num_samples=NUM_SAMPLES,
        num_warmup=10,
        num_chains=NUM_CHAINS,
        **learned,
        **options,
    )


@pytest.mark.parametrize("task", ["classes", "zeros and ones", "numbers"])
def test_sums_are_the_prediction_of_all_samples(task: str):
    """Catches a sample that counts twice, another's scale, and a mean of logs."""
    split = data(task)
    running = RunningPrediction(split.x, split.y)
    samples = sampled(task, running=running)
    num_draws = NUM_SAMPLES * NUM_CHAINS
    assert running.num_draws == num_draws
    one = orn.predict(samples, split.x, key=jax.random.key(2), num_draws=num_draws)
    found = running.prediction
    for name in ("mean", "aleatoric", "epistemic"):
        wanted = getattr(one, name)
        assert np.allclose(getattr(found, name), wanted, rtol=1e-4, atol=1e-6), name
    log_probs = one.likelihood.log_prob(one.outputs, jnp.asarray(split.y))
    wanted = jax.nn.logsumexp(log_probs, axis=0) - np.log(num_draws)
    assert np.allclose(running.log_likelihood, wanted, rtol=1e-4)


class _StopsAt:
    def __init__(self, step: int):
        self.step = step

    def start(self, plan) -> None: ...

    def advance(self, step, record) -> None:
        if step >= self.step:
            raise KeyboardInterrupt

    def stop(self) -> None: ...


def test_a_resumed_chain_has_the_same_bits_and_few_samples(tmp_path: Path):
    """Catches sums that begin again, or depend on where a chain was stopped, and a
    file that grows with it all the same.
    """
    x, y = data("numbers").x, data("numbers").y
    every, whole = sampled("numbers"), RunningPrediction(x, y, store_every=5)
    few = sampled("numbers", running=whole)
    assert few.num_samples == NUM_SAMPLES // 5
    for one, all_of_them in zip(
        jax.tree.leaves(few.positions), jax.tree.leaves(every.positions), strict=True
    ):
        assert np.array_equal(one, all_of_them[:, 4::5])
    folder = tmp_path / "samples"
    with pytest.raises(KeyboardInterrupt):
        sampled(
            "numbers",
            running=RunningPrediction(x, y, store_every=5),
            folder=folder,
            callbacks=[_StopsAt(15)],
        )
    with pytest.raises(CheckpointError, match="its running is"):
        sampled("numbers", running=RunningPrediction(x), folder=folder, resume=True)
    again = RunningPrediction(x, y, store_every=5)
    samples = sampled("numbers", running=again, folder=folder, resume=True)
    assert whole.sums.keys() == again.sums.keys()
    for name, total in whole.sums.items():
        assert np.array_equal(total, again.sums[name]), name
    for one, other in zip(
        jax.tree.leaves(samples.positions), jax.tree.leaves(few.positions), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("stop", [11, 13, 15, 27])
def test_what_a_kernel_said_between_stored_samples_is_kept(
    stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As of a thinned chain: gradients are counted, divergences noted. Catches (seen)
    the info of one step in five alone, and that of steps before a chain was stopped.
    """
    monkeypatch.setattr(_run, "_CALL_SECONDS", 0.0)  # one sample a call
    x, folder = data("numbers").x, tmp_path / "samples"
    some = lambda: RunningPrediction(x, store_every=5)
    few = sampled("numbers", running=some())
    stops = [_StopsAt(stop)]
    with pytest.raises(KeyboardInterrupt):
        sampled("numbers", running=some(), folder=folder, callbacks=stops)
    again = sampled("numbers", running=some(), folder=folder, resume=True)
    for name, expected in sampled("numbers").thin(5).info.items():
        assert few.info[name].dtype == expected.dtype
        np.testing.assert_array_equal(few.info[name], expected, err_msg=name)
        np.testing.assert_array_equal(again.info[name], expected, err_msg=name)


@pytest.mark.parametrize("cuts", [[], [3], [1, 2, 3, 4, 5, 6], [5, 10], [4, 16]])
def test_however_many_come_at_once_the_info_is_that_of_a_thinned_chain(
    cuts: list[int],
):
    """Catches (seen) a divergence, and a count, that are lost between two calls."""
    rng = np.random.default_rng(0)
    info = {
        "is_divergent": rng.random((2, 18)) < 0.15,
        "num_gradients": rng.integers(0, 9, (2, 18)).astype(np.int32),
        "energy": rng.normal(size=(2, 18)).astype(np.float32),
    }
    pending, found = {}, []
    for start, stop in itertools.pairwise([0, *cuts, 18]):
        some = {name: a[:, start:stop] for name, a in info.items()}
        pending = as_arrays(json.loads(json.dumps(to_lists(pending))))
        said, pending = since_stored(pending, some, (4 - start) % 5, 5)
        found.append(said)
    for name, a in info.items():
        whole = np.concatenate([said[name] for said in found], axis=1)
        expected = thinned(name, a, 5)
        assert whole.dtype == expected.dtype
        np.testing.assert_array_equal(whole, expected)
    assert info["is_divergent"].any()


def test_a_state_of_before_has_said_nothing_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Chains that an earlier version left go on. Catches (seen) a `KeyError`."""
    x, folder = data("numbers").x, tmp_path / "samples"
    some = lambda: RunningPrediction(x, store_every=5)

    def save_as_before(path: Path, states: Any, *, hyperparameters: dict) -> None:
        del hyperparameters["pending_info"]
        save_model(path, states, hyperparameters=hyperparameters)

    stops = [_StopsAt(15)]
    monkeypatch.setattr(_progress, "save_model", save_as_before)
    with pytest.raises(KeyboardInterrupt):
        sampled("numbers", running=some(), folder=folder, callbacks=stops)
    monkeypatch.setattr(_progress, "save_model", save_model)
    samples = sampled("numbers", running=some(), folder=folder, resume=True)
    assert samples.num_samples == NUM_SAMPLES // 5


def test_what_cannot_be_summed_up_is_refused():
    x = data("numbers").x
    with pytest.raises(ValueError, match="`store_every` must be"):
        RunningPrediction(x, store_every=0)
    with pytest.raises(ValueError, match="`store_every` of 21 stores none of 20"):
        sampled("numbers", running=RunningPrediction(x, store_every=21))
    running = RunningPrediction(x)
    with pytest.raises(ValueError, match="No sample was summed up yet"):
        _ = running.prediction
    sampled("numbers", running=running)
    with pytest.raises(ValueError, match="There are no targets"):
        _ = running.log_likelihood


@pytest.mark.usefixtures("unchecked")
def test_inputs_alone_are_no_sums():
    with pytest.raises(TypeError, match="`running` must be a `RunningPrediction`"):
        sampled("numbers", running=data("numbers").x)


def test_a_sample_without_likelihood_is_a_term_of_nothing():
    """Catches NaN for good after one bad sample, first or later."""
    log_probs = np.array([[-np.inf, -1.0], [-2.0, -np.inf], [-3.0, -0.5]], np.float32)
    running = RunningPrediction(np.zeros((2, 1)), np.zeros(2))
    zeros = np.zeros(2)
    running.sums = {"count": np.zeros(()), "mean": zeros[:, None]}
    running.sums |= {"largest": zeros - np.inf, "exponentials": zeros}
    for row in log_probs:
        running._add_one(Summary(jnp.zeros((2, 1)), None, None), jnp.asarray(row))
    with np.errstate(divide="ignore"):
        exact = np.log(np.exp(log_probs.astype(float)).mean(0))
    np.testing.assert_allclose(running.log_likelihood, exact, rtol=1e-6)
