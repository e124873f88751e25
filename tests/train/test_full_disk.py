"""A full disk ends a run in one sentence, and leaves it as it was."""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from train.saving.killed_run import final_arrays, train

from ornstein._files._atomic import write_atomically
from ornstein.train import RunFolder, save_model
from ornstein.train.saving._checkpoint import (
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full (Linux)")


@contextmanager
def small_files(num_bytes: int) -> Iterator[None]:
    """No file may grow beyond that: the system's own error, in every thread."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def same_bits(a, b) -> bool:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


def test_full_disk_under_the_events_stops_the_run(tmp_path, monkeypatch):
    """And it goes on to the same bits once there is room.

    Seen hanging for ever with tensorboardX's own writer: its thread dies of the error,
    and the queue to it fills.
    """
    run = RunFolder.create(tmp_path / "run", {})
    with monkeypatch.context() as patch:
        to_full = lambda path: FULL.open("wb", buffering=2000)
        patch.setattr("tensorboardX.record_writer.open_file", to_full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            train(run, resume=False, slow=False)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(run.events)
    assert checkpoints(run.checkpoints)
    resumed = train(run, resume=True, slow=False)
    whole = train(None, resume=False, slow=False)
    assert same_bits(final_arrays(resumed), final_arrays(whole))


def test_full_disk_under_the_metrics_names_them(tmp_path, monkeypatch):
    """Seen failing: the error named no file."""
    run = RunFolder.create(tmp_path / "run", {})

    def then_full(path: Path, content: bytes) -> None:
        write_atomically(path, content)
        path.unlink()
        path.symlink_to(FULL)

    monkeypatch.setattr("ornstein.train.records._callbacks.write_atomically", then_full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        train(run, resume=False, slow=False)
    assert caught.value.filename == str(run.metrics)


def test_a_checkpoint_without_room_leaves_the_one_before(tmp_path):
    """Seen failing: a `ValueError` of tensorstore's, and half a checkpoint left."""
    tree = {"a": jnp.asarray(np.random.default_rng(0).standard_normal(10_000))}
    save_checkpoint(tmp_path, 1, tree, {"s": 1})
    with small_files(8000), pytest.raises(OSError, match="File too large") as caught:
        save_checkpoint(tmp_path, 2, tree, {"s": 2})
    assert caught.value.filename == str(tmp_path / "step_000000002")
    assert [path.name for path in tmp_path.iterdir()] == ["step_000000001"]
    loaded, meta = load_checkpoint(tmp_path, tree, identity={})
    assert meta == {"s": 1}
    assert same_bits(loaded, tree)


def test_a_file_without_room_is_named_and_stays(tmp_path):
    """Seen failing with the name of the temporary file beside it."""
    path = tmp_path / "model.npz"
    save_model(path, jnp.zeros(10))
    before = path.read_bytes()
    with small_files(8000), pytest.raises(OSError, match="File too large") as caught:
        save_model(path, jnp.zeros(10_000))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]
    with pytest.raises(FileNotFoundError) as missing:
        write_atomically(tmp_path / "nowhere" / "a.json", b"")
    assert missing.value.filename == str(tmp_path / "nowhere" / "a.json")
