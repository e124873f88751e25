"""Batches whose loss or gradient is not a number: stopped at, or skipped, counted."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from train.linear_model import NOISE, linear_data, linear_model

from ornstein.data._base import Split
from ornstein.likelihood import Gaussian
from ornstein.train import Cosine, Fit, NonFiniteError, Run, RunFolder, Skip, Stop, fit

NUM_ROWS, BATCH = 64, 16
BAD = 7.0
"""Of an input, which the augmentation turns into NaN."""


def spoil(x: Any, *, key: Any) -> Any:
    del key
    return jnp.where(jnp.any(x == BAD), jnp.nan, x)


def fitted(bad_rows: tuple[int, ...] = (), **options: Any) -> Fit:
    """Every epoch has one bad batch for each bad row, or fewer that hold several."""
    data = linear_data(num_rows=NUM_ROWS)
    x = np.array(data.x)
    x[list(bad_rows)] = BAD
    defaults = {"on_nonfinite": Skip(), "num_epochs": 5, "learning_rate": 1e-2}
    return fit(
        linear_model(),
        Split(x, data.y),
        Gaussian(NOISE, learn_scale=True),
        key=jr.key(3),
        batch_size=BATCH,
        augmentation=spoil,
        ema_decay=0.9,
        **(defaults | options),
    )


def same_bits(a: Any, b: Any) -> bool:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


def results(found: Fit) -> Any:
    return found.model, found.likelihood, found.ema


@pytest.mark.parametrize("in_memory", [True, False])
def test_skipping_changes_nothing_where_all_is_finite(in_memory):
    """But a rounding, as these are two programs; and nothing is said."""
    skips = fitted(in_memory=in_memory)
    stops = fitted(in_memory=in_memory, on_nonfinite=Stop())
    pairs = map(jax.tree.leaves, (results(skips), results(stops)))
    for a, b in zip(*pairs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert skips.history["num_skipped"].tolist() == [0] * 5
    assert "num_skipped" not in stops.history
    assert skips.notes == stops.notes


def test_a_skipped_batch_leaves_everything_as_it_was():
    """Of one batch an epoch, all of them bad: what `fit` began with comes back.

    Catches an optimiser, a mean of the weights or moments that moved (NaN for ever).
    """
    options = {"num_epochs": 3, "optimiser": optax.adam}
    data = linear_data(num_rows=BATCH)
    found = fit(
        linear_model(),
        Split(np.full_like(data.x, BAD), data.y),
        Gaussian(NOISE, learn_scale=True),
        key=jr.key(3),
        batch_size=BATCH,
        augmentation=spoil,
        on_nonfinite=Skip(),
        **options,
    )
    assert same_bits(found.model, linear_model())
    assert found.history["num_skipped"].tolist() == [1, 1, 1]
    assert np.isnan(found.history["loss"]).all()


def test_means_and_rates_count_a_skipped_step():
    """Weights that hardly move, and steps of SGD whose rate falls to nothing.

    Catches (seen) a mean that is divided by the weight of steps which it has not seen,
    and rates that lag behind those of the record.
    """
    still = fitted((5, 40), learning_rate=1e-12)
    mean = still.averaged()
    pairs = zip(
        jax.tree.leaves((mean.model, mean.likelihood)),
        jax.tree.leaves((still.model, still.likelihood)),
        strict=True,
    )
    for averaged, own in pairs:
        np.testing.assert_allclose(averaged, own, rtol=1e-5, atol=1e-9)

    rates = []

    def noted(rate: optax.Schedule) -> optax.GradientTransformation:
        def at(step: Any) -> Any:
            jax.debug.callback(lambda a: rates.append(float(a)), rate(step))
            return rate(step)

        return optax.sgd(at)

    found = fitted((5, 40), optimiser=noted, schedule=Cosine())
    assert rates[-1] == pytest.approx(found.history["learning_rate"][-1])


@pytest.mark.parametrize("in_memory", [True, False])
def test_bad_batches_are_left_out_and_counted(in_memory):
    """One of four in each epoch; means are of the other three."""
    found = fitted((5,), in_memory=in_memory)
    assert found.history["num_skipped"].tolist() == [1] * 5
    assert np.isfinite(found.history["loss"]).all()
    assert np.isfinite(found.history["gradient_snr"][-2:]).any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found.model))
    (note,) = [note for note in found.notes if "skipped" in note]
    assert note.startswith("5 of 20 steps were skipped, as their loss or gradient was")
    assert "--on_nonfinite stop" in note.spelt("--{}".format)
    with pytest.raises(NonFiniteError, match=r"Training stopped at step \d+ \(epoch 1"):
        fitted((5,), in_memory=in_memory, on_nonfinite=Stop())


@pytest.mark.parametrize("in_memory", [True, False])
def test_too_many_in_a_row_stop(in_memory):
    """At the step after them, wherever calls are cut. Rows of all batches are bad."""
    bad = tuple(range(NUM_ROWS))
    match = r"stopped at step 3 \(epoch 1, .*\) after 3 that were skipped in a row: the"
    with pytest.raises(NonFiniteError, match=match):
        fitted(bad, in_memory=in_memory, on_nonfinite=Skip(3))
    with pytest.raises(ValueError, match="`most_in_a_row` must be at least 1, got 0"):
        Skip(0)
    with pytest.raises(TypeError, match="on_nonfinite"):
        fitted(on_nonfinite="skip")


def test_a_resumed_run_counts_on(tmp_path, monkeypatch):
    """To the same bits and the same count. Catches a count of before that is lost."""
    monkeypatch.setattr("ornstein.train._loop.InMemory.call_seconds", 0.0)
    whole = fitted((5, 40))

    class Stopped:
        def start(self, plan: Any) -> None: ...
        def epoch(self, record: dict[str, Any]) -> None: ...
        def stop(self) -> None: ...

        def advance(self, step: int, record: dict[str, Any]) -> None:
            if step == 10:
                raise KeyboardInterrupt

    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(KeyboardInterrupt):
        fitted((5, 40), run=Run(run), callbacks=(Stopped(),))
    found = fitted((5, 40), run=Run(run, resume=True))
    assert same_bits(results(found), results(whole))
    for name in ("num_skipped", "loss"):
        assert found.history[name].tolist() == whole.history[name].tolist()
    assert found.notes == whole.notes
    lines = run.metrics.read_text(encoding="utf-8").splitlines()
    counted = [json.loads(line)["num_skipped"] for line in lines]
    assert counted == whole.history["num_skipped"].tolist()


def test_a_long_row_goes_on_after_a_resume(tmp_path, monkeypatch):
    """Killed in a row of bad batches, it stops where the whole run does."""
    monkeypatch.setattr("ornstein.train._loop.InMemory.call_seconds", 0.0)
    bad, run = tuple(range(NUM_ROWS)), RunFolder.create(tmp_path / "run", {})
    options = {"on_nonfinite": Skip(6)}
    with pytest.raises(NonFiniteError, match="at step 6 "):
        fitted(bad, run=Run(run, checkpoint_every=0.0), **options)
    with pytest.raises(NonFiniteError, match="at step 6 "):
        fitted(bad, run=Run(run, resume=True), **options)
