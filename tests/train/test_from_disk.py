"""`fit` of rows on disk: the steps of rows in memory, and nothing lost on the way."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
import pytest

from ornstein.data import DataError, Split, Streamed, load
from ornstein.data.stream._order import Part, windows
from ornstein.functions import Deterministic
from ornstein.likelihood import Gaussian
from ornstein.train import CheckpointError, NonFiniteError, Run, RunFolder, Skip, fit

BATCH, EPOCHS = 16, 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    table = pd.DataFrame(x, columns=["a", "b"]).assign(y=x[:, 0] - x[:, 1] ** 2)
    found = tmp_path / "shards"
    found.mkdir()
    for number in range(3):
        part = table.iloc[number * 50 : (number + 1) * 50]
        part.to_parquet(found / f"{number}.parquet", row_group_size=20)
    return found


def rows_of(folder: Path, buffer: int = 45) -> Streamed:
    """120 rows in ten blocks, some forty in a window."""
    data = load(str(folder), target="y", stream=True, shuffle_buffer=buffer)
    assert isinstance(data.train, Streamed)
    return data.train


def network() -> Deterministic:
    return Deterministic(eqx.nn.MLP(2, 1, 4, 1, activation=jnp.tanh, key=jr.key(0)))


def quick_fit(split: Any, **options: Any):
    settings: dict[str, Any] = {"num_epochs": EPOCHS, "batch_size": BATCH}
    settings |= {"key": jr.key(1), "learning_rate": 1e-2} | options
    return fit(network(), split, Gaussian(0.5), **settings)


def assert_same(a: Any, b: Any) -> None:
    pairs = zip(jax.tree.leaves(a.model), jax.tree.leaves(b.model), strict=True)
    for left, right in pairs:
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(a.history["loss"], b.history["loss"])


def in_order(split: Streamed, key: jax.Array) -> Split:
    """The rows of all steps, one batch after the other, as `fit` meets them."""
    shuffle_key, _, _ = jr.split(key, 3)
    seed = np.asarray(jr.key_data(shuffle_key)).tolist()
    batches = split.batches(BATCH, seed=seed, start=0)
    found = [next(batches) for _ in range(EPOCHS * (len(split) // BATCH))]
    batches.close()
    return Split(*(np.concatenate(part) for part in zip(*found, strict=True)))


def test_steps_are_those_of_rows_in_memory(folder: Path):
    """A loop by hand over the batches, with plain gradients and optax.

    Catches a batch that is passed over or used twice where two calls, or two windows,
    meet.
    """
    split, key = rows_of(folder), jr.key(1)
    rate = optax.cosine_decay_schedule(1e-2, 21)
    found = quick_fit(
        split, learning_rate=rate, optimiser=optax.sgd, clip_norm=None, key=key
    )
    rows = in_order(split, key)

    def loss(net, x, y):
        error = (y - jax.vmap(net)(x)) / 0.5
        constant = float(np.log(0.5 * np.sqrt(2 * np.pi)))
        return jnp.mean(jnp.sum(0.5 * error**2, axis=1)) + constant

    net, losses = network().network, []
    for step in range(21):
        at = slice(step * BATCH, (step + 1) * BATCH)
        value, grads = eqx.filter_value_and_grad(loss)(net, rows.x[at], rows.y[at])
        size = float(rate(step))
        net = eqx.apply_updates(net, jax.tree.map(lambda g, s=size: -s * g, grads))
        losses.append(float(value))
    means = np.array(losses).reshape(EPOCHS, -1).mean(1)
    np.testing.assert_allclose(found.history["loss"], means, rtol=1e-5)
    ours = jax.tree.leaves(eqx.filter(found.model.network, eqx.is_array))
    theirs = jax.tree.leaves(eqx.filter(net, eqx.is_array))
    for left, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)


def test_calls_of_any_length_take_the_same_steps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Catches rows of one call that the next overwrites, and a last one cut short."""
    whole = quick_fit(rows_of(folder))
    for size in (1, 500):  # bytes: a batch a call, and some
        monkeypatch.setattr("ornstein.train._loop._CALL_BYTES", size)
        assert_same(quick_fit(rows_of(folder)), whole)


class Stopping:
    """A callback that interrupts after some steps, as Ctrl-C does."""

    def __init__(self, after: int):
        self.after = after

    def start(self, plan: Any) -> None: ...

    def advance(self, step: int, record: dict[str, Any]) -> None:
        if step >= self.after:
            raise KeyboardInterrupt

    def epoch(self, record: dict[str, Any]) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize("after", [1, 9])
def test_a_run_that_is_resumed_ends_in_the_same_bits(
    folder: Path, tmp_path: Path, after: int
):
    """Catches a place in the rows that is not the step's (seen: windows from the first
    of the epoch on)."""
    whole = quick_fit(rows_of(folder))
    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(KeyboardInterrupt):
        quick_fit(rows_of(folder), run=Run(run), callbacks=[Stopping(after)])
    resumed = quick_fit(rows_of(folder), run=Run(run, resume=True))
    assert_same(resumed, whole)


def test_a_shard_that_goes_missing_loses_no_step(folder: Path, tmp_path: Path):
    """Put back, the run goes on from the step at which the shard was missed."""
    whole = quick_fit(rows_of(folder, buffer=1))
    split, run = rows_of(folder, buffer=1), RunFolder.create(tmp_path / "run", {})
    expected, gone = max((steps_before(split, f), f) for f in folder.iterdir())
    assert expected > 0
    gone.rename(tmp_path / "away")
    with pytest.raises(DataError, match="is gone, which was there"):
        quick_fit(split, run=Run(run))
    newest = sorted(run.checkpoints.iterdir())[-1]
    num_steps = int(newest.name.removeprefix("step_"))
    (tmp_path / "away").rename(gone)
    assert_same(quick_fit(split, run=Run(run, resume=True)), whole)
    # Of the windows before the missing one, all whole batches were taken.
    assert num_steps == expected


def steps_before(split: Streamed, gone: Path) -> int:
    """Whole batches of the windows that do not have the shard."""
    shuffle_key, _, _ = jr.split(jr.key(1), 3)
    seed = np.asarray(jr.key_data(shuffle_key)).tolist()
    num_rows = 0
    how = {"most_rows": split.most_rows, "seed": seed, "part": Part()}
    for window in windows(split.shards.block_rows, epoch=0, **how):
        paths = {split.shards.files.groups[block].path for block in window.blocks}
        if gone in paths:
            break
        num_rows += window.num_rows
    return num_rows // BATCH


def test_another_order_of_rows_is_refused(folder: Path, tmp_path: Path):
    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(KeyboardInterrupt):
        quick_fit(rows_of(folder), run=Run(run), callbacks=[Stopping(1)])
    said = r"of another order, with rows shuffled among 45 .* 46 from"
    with pytest.raises(CheckpointError, match=said):
        quick_fit(rows_of(folder, buffer=46), run=Run(run, resume=True))


def test_a_batch_that_is_no_number_stops_there(folder: Path):
    """Catches steps after it, of the calls that were under way."""
    with pytest.raises(NonFiniteError, match=r"Training stopped at step \d \(epoch 1"):
        quick_fit(rows_of(folder), learning_rate=1e20, clip_norm=None)
    split = rows_of(folder)
    found = quick_fit(split, on_nonfinite=Skip(10))
    assert found.history["num_skipped"].sum() == 0


def test_all_rows_on_the_device_are_refused(folder: Path):
    with pytest.raises(ValueError, match="leave it out, or load the data without str"):
        quick_fit(rows_of(folder), in_memory=True)


def test_a_process_whose_partner_cannot_read_stops_at_that_step(
    folder: Path, tmp_path: Path, monkeypatch
):
    """Catches steps whose sums would wait for a process that is not there."""
    left = [3]  # batches that the partner can read

    def least_of_both(number: int) -> list[int]:
        shared = min(-number, left[0])
        left[0] -= shared
        return [-shared]

    monkeypatch.setattr("ornstein.train._loop.largest", least_of_both)
    monkeypatch.setattr("ornstein.train._loop.part_of", lambda mesh: (0, 2))
    run = RunFolder.create(tmp_path / "run", {})
    with pytest.raises(DataError, match="Another process of this run could not read"):
        quick_fit(rows_of(folder), run=Run(run))
    newest = sorted(run.checkpoints.iterdir())[-1].name
    assert int(newest.removeprefix("step_")) == 3
