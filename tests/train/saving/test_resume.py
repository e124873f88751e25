"""Kill, resume, and the same bits; damaged checkpoints; a run's files."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from train.linear_model import NOISE, linear_data, linear_model
from train.saving.killed_run import NUM_EPOCHS, final_arrays, train

from ornstein.likelihood import Gaussian
from ornstein.train import (
    CheckpointError,
    EarlyStopping,
    Run,
    RunFolder,
    Validation,
    fit,
    load_hyperparameters,
    load_model,
    save_model,
)
from ornstein.train.saving._checkpoint import (
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)

SCRIPT = Path(__file__).with_name("killed_run.py")
NUM_KILLS = 50
KILLED_EPOCHS = 1500
"""A twentieth of a second each, at least: more than all kills take away."""


def assert_same_bits(a: Any, b: Any) -> None:
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


def start_child(
    path: Path, *, slow_writes: bool = False, arguments: tuple[str, ...] = ()
) -> subprocess.Popen:
    slow = "1" if slow_writes else "0"
    with (path / "stderr").open("w", encoding="utf-8") as stderr:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), str(path), slow, *arguments],
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent.parent), *sys.path]),
                "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            },
            stderr=stderr,
        )


def assert_ended_well(path: Path, child: subprocess.Popen, seconds: int = 120) -> None:
    code = child.wait(timeout=seconds)
    assert code == 0, (path / "stderr").read_text(encoding="utf-8")


def wait_for(condition: Any, child: subprocess.Popen) -> bool:
    """True once it holds; false if the child ended first."""
    deadline = time.monotonic() + 120
    while child.poll() is None:
        if condition():
            return True
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.002)
    return False


def last_step(path: Path) -> int:
    found = checkpoints(path / "checkpoints")
    return int(found[-1].name.removeprefix("step_")) if found else -1


def kill_at(path: Path, step: int, *, inside_a_write: bool) -> bool:
    """SIGKILL once the run has reached a step; whether it was killed before its end."""
    child = start_child(path, slow_writes=inside_a_write)
    alive = wait_for(lambda: last_step(path) >= step, child)
    if alive and inside_a_write:
        alive = wait_for((path / "writing").exists, child)
    if not alive:
        assert_ended_well(path, child)
        return False
    child.send_signal(signal.SIGKILL)
    child.wait()
    (path / "writing").unlink(missing_ok=True)
    return True


def finish_and_compare(path: Path) -> None:
    assert_ended_well(path, start_child(path))
    uninterrupted = final_arrays(train(None, resume=False, slow=False))
    assert_same_bits(load_model(path / "final.npz", uninterrupted), uninterrupted)
    lines = (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    epochs = [json.loads(line)["epoch"] for line in lines]
    assert epochs == list(range(1, NUM_EPOCHS + 1))


def test_killed_twice_and_resumed_to_the_same_bits(tmp_path):
    """Once between writes and once inside one. Seen failing with the optimiser's
    state or the running mean left out of what is resumed, shuffles that begin anew,
    and epochs out of order.
    """
    path = RunFolder.create(tmp_path / "run", {}).path
    assert kill_at(path, 10, inside_a_write=True)
    assert list((path / "checkpoints").glob(".partial_*")), "not inside a write"
    assert kill_at(path, 30, inside_a_write=False)
    finish_and_compare(path)


@pytest.mark.slow
def test_killed_fifty_times_in_training_and_resumed_to_the_same_bits(tmp_path):
    """At random moments, each inside the loop of training, however far that came.

    A checkpoint every second. Where one is being written, that is where it is killed.
    """
    num_epochs, num_kills = KILLED_EPOCHS, NUM_KILLS
    path = RunFolder.create(tmp_path / "run", {}).path
    arguments = (str(num_epochs), "1")
    rng = random.Random(0)
    num_records = lambda: len((path / "metrics.jsonl").read_text().splitlines())
    first_steps, num_moved = [], 0
    for _ in range(num_kills):
        (path / "training").unlink(missing_ok=True)
        child = start_child(path, arguments=arguments)
        assert wait_for((path / "training").exists, child), "over before its kill"
        before = num_records()
        time.sleep(rng.uniform(0.05, 2.5))
        assert child.poll() is None, "over before its kill"
        child.kill()
        assert child.wait() == -signal.SIGKILL
        assert not (path / "final.npz").exists()
        first_steps.append(int((path / "training").read_text()))
        num_moved += num_records() > before
    assert first_steps == sorted(first_steps)
    assert first_steps[-1] > num_kills, "no progress between kills"
    assert num_moved > num_kills / 2, "most kills fell before the first epoch"
    assert_ended_well(path, start_child(path, arguments=arguments), seconds=400)
    whole = train(None, resume=False, slow=False, num_epochs=num_epochs)
    uninterrupted = final_arrays(whole)
    assert_same_bits(load_model(path / "final.npz", uninterrupted), uninterrupted)
    lines = (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["epoch"] for record in records] == list(range(1, num_epochs + 1))
    for name in ("loss", "val_ema_nll"):
        values = [record[name] for record in records]
        assert values == whole.history[name].tolist()


def test_a_finished_run_resumes_to_its_own_result(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"seed": 0})
    first = train(run, resume=False, slow=False)
    again = train(run, resume=True, slow=False)
    assert_same_bits(final_arrays(first), final_arrays(again))
    assert run.config == {"seed": 0}
    assert len(checkpoints(run.checkpoints)) == 2
    assert list(run.events.iterdir())
    with pytest.raises(FileExistsError, match="pass resume=True"):
        train(run, resume=False, slow=False)
    with pytest.raises(CheckpointError, match="begun with num_steps=64"):
        fit(
            linear_model(),
            linear_data(),
            Gaussian(NOISE, learn_scale=True),
            key=jr.key(7),
            num_epochs=3,
            run=Run(run, resume=True),
        )


def test_what_is_saved_of_a_mesh_is_on_the_host(tmp_path, monkeypatch):
    """The state and the best epoch: no device need have room for it. And what the run
    gives in the end, once begun and once gone on with, is of a device again.
    """
    saved = []

    def save(folder, step, tree, meta):
        saved.extend(jax.tree.leaves(eqx.filter(tree, eqx.is_array)))
        return save_checkpoint(folder, step, tree, meta)

    monkeypatch.setattr("ornstein.train._session.save_checkpoint", save)
    run = RunFolder.create(tmp_path / "run", {})
    for resume in (False, True):
        found = fit(
            linear_model(),
            linear_data(),
            Gaussian(NOISE),
            key=jr.key(7),
            num_epochs=2,
            run=Run(run, resume=resume),
            validation=Validation(linear_data(), early_stopping=EarlyStopping()),
            mesh=jax.make_mesh((1,), ("fsdp",)),
        )
        arrays = jax.tree.leaves(eqx.filter(found.model, eqx.is_array))
        assert arrays
        assert all(isinstance(a, jax.Array) for a in arrays)
    assert saved
    assert all(isinstance(a, np.ndarray) for a in saved)


TREE = {"a": jnp.arange(1000.0), "key": jr.key(3), "empty": jnp.zeros((0, 2)), "f": abs}


@pytest.fixture
def two_checkpoints(tmp_path: Path) -> Path:
    for step in (1, 2):
        save_checkpoint(tmp_path, step, TREE | {"step": jnp.asarray(step)}, {"s": step})
    return tmp_path


def test_checkpoints_come_back(two_checkpoints):
    """Keys and empty arrays included, and only the newest two stay."""
    like = TREE | {"step": jnp.asarray(0), "a": jnp.zeros(1000), "key": jr.key(0)}
    tree, meta = load_checkpoint(two_checkpoints, like, identity={})
    assert meta == {"s": 2}
    assert int(tree["step"]) == 2
    assert_same_bits(tree["a"], TREE["a"])
    assert_same_bits(jr.uniform(tree["key"]), jr.uniform(jr.key(3)))
    save_checkpoint(two_checkpoints, 3, like, {})
    names = [path.name for path in checkpoints(two_checkpoints)]
    assert names == ["step_000000002", "step_000000003"]


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    """Catches (seen) an order by name: each beyond nine digits was removed at once."""
    for step in (999_999_998, 999_999_999, 1_000_000_000):
        save_checkpoint(tmp_path, step, {"a": jnp.ones(2)}, {})
    names = [path.name for path in checkpoints(tmp_path)]
    assert names == ["step_999999999", "step_1000000000"]


def test_a_long_history_comes_back(tmp_path):
    """100,000 epochs of a small table. Catches a whole checkpoint called damaged."""
    record = {"loss": 1.0, "what": "x" * 180}
    meta = {"history": [record | {"epoch": n} for n in range(100_000)]}
    save_checkpoint(tmp_path, 1, {"a": jnp.ones(2)}, meta)
    assert load_checkpoint(tmp_path, {"a": jnp.zeros(2)}, identity={})[1] == meta


def test_checkpoint_of_another_model_is_refused(two_checkpoints):
    with pytest.raises(CheckpointError, match=r"\['b'\] is in the model alone"):
        load_checkpoint(two_checkpoints, {"b": jnp.zeros(2)}, identity={})
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        load_checkpoint(two_checkpoints / "nowhere", TREE, identity={})


def test_run_folder_that_exists_is_refused(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"seed": 1})
    run.write_result({"nll": 0.5})
    with pytest.raises(FileExistsError, match="exists and is a run: resume it"):
        RunFolder.create(run.path, {"seed": 2})
    assert RunFolder.open(run.path).config == {"seed": 1}
    assert run.read_result() == {"nll": 0.5}
    fresh = RunFolder.create(run.path, {"seed": 2}, overwrite=True)
    with pytest.raises(FileNotFoundError, match=r"has no result\.json yet"):
        fresh.read_result()
    with pytest.raises(FileNotFoundError, match="is not a run"):
        RunFolder.open(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="choose another folder"):
        RunFolder.create(tmp_path / "mine", {}, overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_a_checkpoint_is_on_the_disk_before_others_go(tmp_path, monkeypatch):
    """Catches (seen) files that a loss of power would leave empty, with none before."""
    done = []
    of_module = "ornstein.train.saving._checkpoint"
    monkeypatch.setattr(f"{of_module}.to_disk", lambda *paths: done.append(paths))
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *a: (done.append(a), replace(*a))[1])
    remove = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", lambda a: (done.append((a,)), remove(a))[1])
    for step in range(3):
        save_checkpoint(tmp_path, step, TREE, meta={})
    written, moved, named, removed = [list(map(str, a)) for a in done[-4:]]
    assert any(path.endswith("meta.json") for path in written)
    assert any("arrays" in path for path in written)
    assert moved[1].endswith("000000002")
    assert named == [str(tmp_path), str(tmp_path.parent)]
    assert "000000000" in removed[0]


def test_a_run_that_cannot_be_moved_stays(tmp_path, monkeypatch):
    """Catches (seen) an overwriting that removes the run which it could not move, or
    which another process has put back.
    """
    run = RunFolder.create(tmp_path / "run", {"seed": 1})
    run.complete()
    rename, mkdir = type(run.path).rename, type(run.path).mkdir

    def is_mounted(path, *args):
        raise OSError(16, "Device or resource busy", str(path))

    def put_back_before(path, *args, **options):
        if path.name == "run" and not path.exists():
            (aside,) = tmp_path.glob(".run.replaced-*")
            rename(aside, path)
        return mkdir(path, *args, **options)

    for name, broken in (("rename", is_mounted), ("mkdir", put_back_before)):
        with monkeypatch.context() as patch:
            patch.setattr(type(run.path), name, broken)
            with pytest.raises(OSError):  # noqa: PT011
                RunFolder.create(run.path, {"seed": 2}, overwrite=True)
        assert RunFolder.open(run.path).config == {"seed": 1}
        assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_model_file(tmp_path):
    """Every type comes back, bfloat16 and keys too; a damaged file is one sentence.

    NaN is refused: seen failing, `evaluate` ended well with a model of NaN.
    """
    model = (linear_model(), jnp.ones(3, jnp.bfloat16), jr.key(4), np.arange(3))
    path = tmp_path / "model.npz"
    save_model(path, model, hyperparameters={"sigma": 0.1})
    like = (linear_model(), jnp.zeros(3, jnp.bfloat16), jr.key(0), np.zeros(3, int))
    loaded = load_model(path, like)
    assert_same_bits(loaded[:2], model[:2])
    assert_same_bits(jr.key_data(loaded[2]), jr.key_data(model[2]))
    assert loaded[1].dtype == jnp.bfloat16
    assert load_hyperparameters(path) == {"sigma": 0.1}
    with pytest.raises(CheckpointError, match="holds another model"):
        load_model(path, (linear_model(4), *like[1:]))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="is truncated"):
        load_model(path, like)
    save_model(path, (model[0], model[1].at[2].set(jnp.nan), *model[2:]))
    with pytest.raises(CheckpointError, match=r"has NaN in \[1\]: its training"):
        load_model(path, like)


def test_plain_numbers_of_a_model_file_are_compared(tmp_path):
    """Catches (seen) dropout at another rate, taken without a word. A mode may differ,
    1 and 1.0 do not, and files from before go on loading."""
    build = lambda rate, **how: (eqx.nn.Dropout(rate, **how), jnp.ones(2))
    path = tmp_path / "model.npz"
    save_model(path, build(1.0))
    assert load_model(path, build(1, inference=True))[0].inference
    match = r"another model: \[0\]\.p is 1 in the file and 0\.5 in the model: build it"
    with pytest.raises(CheckpointError, match=match):
        load_model(path, build(0.5))
    arrays = dict(np.load(path))
    header = json.loads(arrays["ornstein"].tobytes())
    del header["plain"]
    arrays["ornstein"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)
    assert load_model(path, build(0.5))[0].p == 0.5
