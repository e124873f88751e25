"""A damaged checkpoint: the one before is gone on from, and it says so."""

import json
import logging
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from train.linear_model import NOISE, linear_data
from train.saving.killed_run import final_arrays, train

from ornstein.functions import Deterministic
from ornstein.likelihood import Gaussian
from ornstein.train import CheckpointError, Run, RunFolder, fit
from ornstein.train.saving import _checkpoint
from ornstein.train.saving._checkpoint import (
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)

TREE = {"a": jnp.arange(1000.0), "b": jnp.zeros(3)}


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def data_of(checkpoint: Path) -> Path:
    """The largest of orbax's files: the arrays' numbers."""
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    return max(files, key=lambda path: path.stat().st_size)


def rename_leaf(checkpoint: Path) -> None:
    meta = checkpoint / "meta.json"
    meta.write_bytes(meta.read_bytes().replace(b"['a']", b"['c']"))


def later_step(checkpoint: Path) -> None:
    meta = checkpoint / "meta.json"
    meta.write_bytes(meta.read_bytes().replace(b'"s": 2', b'"s": 3'))


DAMAGES = {
    "data cut": (lambda path: cut(data_of(path)), "the digest does not match"),
    "data flipped": (lambda path: flip(data_of(path)), "the digest does not match"),
    "data empty": (lambda path: data_of(path).write_bytes(b""), "the digest does not"),
    "data missing": (lambda path: data_of(path).unlink(), "the digest does not match"),
    "meta cut": (lambda path: cut(path / "meta.json"), "JSON"),
    "meta empty": (lambda path: (path / "meta.json").write_bytes(b""), "JSON"),
    "meta missing": (lambda path: (path / "meta.json").unlink(), "meta.json is not"),
    "meta changed": (later_step, "the digest does not match"),
    "meta renamed": (rename_leaf, "what it says of itself"),
}


@pytest.fixture
def two_checkpoints(tmp_path: Path) -> Path:
    for step in (1, 2):
        save_checkpoint(
            tmp_path, step, TREE | {"b": jnp.full(3, float(step))}, {"s": step}
        )
    return tmp_path


@pytest.mark.parametrize("name", DAMAGES)
def test_the_one_before_a_damaged_checkpoint_is_used(name, two_checkpoints, caplog):
    """And the damaged one makes room for what is written next.

    Seen failing without the digest of the record ("another model"), and, where the
    damaged one stayed in its place, with step 2 never written again.
    """
    damage, reason = DAMAGES[name]
    damage(two_checkpoints / "step_000000002")
    with caplog.at_level(logging.WARNING, "ornstein"):
        tree, meta = load_checkpoint(two_checkpoints, TREE, identity={})
    assert (meta, tree["b"].tolist()) == ({"s": 1}, [1.0, 1.0, 1.0])
    (sentence,) = caplog.messages
    assert "step_000000002 is truncated or damaged (" in sentence
    assert reason in sentence
    assert "going on from step_000000001, the one before it" in sentence
    save_checkpoint(two_checkpoints, 2, TREE, {"s": 2})
    assert load_checkpoint(two_checkpoints, TREE, identity={})[1] == {"s": 2}
    damage(two_checkpoints / "step_000000002")
    load_checkpoint(two_checkpoints, TREE, identity={})
    assert sorted(path.name for path in two_checkpoints.iterdir()) == [
        "damaged_step_000000002",
        "step_000000001",
    ]


def test_nothing_is_left_to_go_on_from(two_checkpoints):
    """One error, of the newest; and nothing is moved."""
    names = [path.name for path in checkpoints(two_checkpoints)]
    for path in checkpoints(two_checkpoints):
        cut(path / "meta.json")
    match = (
        r"step_000000002 is truncated .*, and no earlier one is complete: put a copy"
    )
    with pytest.raises(CheckpointError, match=match):
        load_checkpoint(two_checkpoints, TREE, identity={})
    assert [path.name for path in checkpoints(two_checkpoints)] == names


def test_what_may_not_be_read_is_not_called_damaged(two_checkpoints, monkeypatch):
    """Catches a whole checkpoint put aside because of its owner."""

    def refuse(path: Path, *, limit: int) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("ornstein.train.saving._checkpoint.read_json", refuse)
    with pytest.raises(PermissionError):
        load_checkpoint(two_checkpoints, TREE, identity={})
    assert len(checkpoints(two_checkpoints)) == 2


def test_a_checkpoint_from_before_records_had_digests(two_checkpoints):
    """Long runs that are under way go on."""
    meta = two_checkpoints / "step_000000002" / "meta.json"
    text = meta.read_text(encoding="utf-8")
    meta.write_text(text.replace('"of_record"', '"of_another"'), encoding="utf-8")
    assert load_checkpoint(two_checkpoints, TREE, identity={})[1] == {"s": 2}


def test_training_goes_on_from_the_one_before_to_the_same_bits(tmp_path):
    """Metrics of after it are written again, once each."""
    run = RunFolder.create(tmp_path / "run", {})
    first = train(run, resume=False, slow=False)
    lines = run.metrics.read_text(encoding="utf-8").count("\n")
    flip(data_of(checkpoints(run.checkpoints)[-1]))
    again = train(run, resume=True, slow=False)
    pairs = zip(
        jax.tree.leaves(final_arrays(first)),
        jax.tree.leaves(final_arrays(again)),
        strict=True,
    )
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
    assert run.metrics.read_text(encoding="utf-8").count("\n") == lines
    assert len(checkpoints(run.checkpoints)) == 2


def test_another_model_of_the_same_shapes_is_refused(tmp_path):
    """The sentence says what differs; runs begun before models were kept go on.

    Catches an activation or a prior that changes in the middle of a run.
    """
    run = RunFolder.create(tmp_path / "run", {})
    key, data = jax.random.key(0), linear_data()
    options = {"key": key, "num_epochs": 1, "batch_size": 16}

    def go(activation: Any, *, resume: bool) -> None:
        network = eqx.nn.MLP(3, 1, 2, 1, activation=activation, key=key)
        model, kept = Deterministic(network), Run(run, resume=resume)
        fit(model, data, Gaussian(NOISE), run=kept, **options)

    go(jnp.tanh, resume=False)
    match = r"step_\d+ is of another model, with .*tanh.* where this one has .*relu.*: "
    with pytest.raises(CheckpointError, match=match):
        go(jax.nn.relu, resume=True)
    go(jnp.tanh, resume=True)
    for path in checkpoints(run.checkpoints):
        meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
        del meta["meta"]["identity"]["model"]
        text = json.dumps(meta["meta"], sort_keys=True, allow_nan=False)
        del meta["of_record"]
        meta["digest"] = _checkpoint._digest(path / "arrays", text)
        (path / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    go(jnp.tanh, resume=True)
