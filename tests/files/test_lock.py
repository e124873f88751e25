"""One process at a time in a folder."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax.random as jr
import pytest
from train.linear_model import NOISE, linear_data, linear_model

from ornstein._files._lock import LOCK, lock_folder
from ornstein.likelihood import Gaussian
from ornstein.train import Run, RunFolder, fit

HOLDER = """
import sys, time
from pathlib import Path
from ornstein._files._lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def is_free(folder: Path, *, is_shared: bool = False) -> bool:
    """For another thread, as for another process."""
    found = []

    def attempt():
        try:
            with lock_folder(folder, is_shared=is_shared):
                found.append(True)
        except BlockingIOError:
            found.append(False)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return found[0]


def test_a_held_folder_names_its_owner_until_that_dies(tmp_path):
    """Two fits of one run both ended well, with mixed metrics, before (seen)."""
    run = RunFolder.create(tmp_path / "run", {})
    child = holder(run.path)
    options = {"key": jr.key(0), "num_epochs": 1, "run": Run(run)}
    match = rf"in use by process {child.pid} on .*: wait until it ends"
    with pytest.raises(BlockingIOError, match=match):
        fit(linear_model(), linear_data(), Gaussian(NOISE), **options)
    with pytest.raises(BlockingIOError, match=match):
        RunFolder.create(run.path, {}, overwrite=True)
    assert run.replaced == []
    child.kill()  # no chance to tidy up
    child.communicate()
    fit(linear_model(), linear_data(), Gaussian(NOISE), **options)
    assert not (run.path / LOCK).exists()


def test_a_lock_is_a_threads_own_and_may_be_taken_again(tmp_path):
    with lock_folder(tmp_path):
        with lock_folder(tmp_path):
            assert not is_free(tmp_path)
        assert not is_free(tmp_path)
        assert not is_free(tmp_path, is_shared=True)
    assert is_free(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_shared_lock_keeps_out_those_who_write(tmp_path):
    with lock_folder(tmp_path, is_shared=True):
        assert is_free(tmp_path, is_shared=True)  # and let go again
        assert not is_free(tmp_path), "the file of those who still share was removed"
    assert is_free(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_follows_its_folder(tmp_path):
    """As a run that is overwritten does; another file at the old path stays."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with lock_folder(old):
        old.rename(new)
        old.mkdir()
        (old / LOCK).write_text("mine")
        assert not is_free(new)
    assert (old / LOCK).read_text() == "mine"
    assert is_free(new)


def test_no_link_is_followed(tmp_path):
    """A lock file of a stranger's run must not empty another file."""
    (tmp_path / "precious").write_text("mine")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"), lock_folder(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("name", [".lock", LOCK])
def test_a_file_of_the_users_own_is_no_lock(name, tmp_path):
    """Seen failing: one named `.lock` was emptied, then removed, though refused."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(FileExistsError):
        RunFolder.create(tmp_path, {}, overwrite=True)
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with contextlib.suppress(FileExistsError), lock_folder(tmp_path):
        assert name != LOCK
    assert (tmp_path / name).read_text() == "mine"
