"""Runs survive kills, signals, a second process, a full disk, and NaN."""

import errno
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from ornstein._files import _lock
from ornstein._files._lock import LOCK, lock_folder
from ornstein.cli import main
from ornstein.cli._run_folder import new_run
from ornstein.sampling import ChainProgress, _run as sample_run
from ornstein.studies import EXPERIMENTS, Experiment
from ornstein.train import ProgressBar, RunFolder
from ornstein.train._loop import InMemory
from ornstein.train.saving._checkpoint import checkpoints

TINY = "--epochs 6 --width 2 --drift-widths 2 --num-inducing 0 --dt 0.5 --num-draws 1"
TINY += " --test-draws 2 --data toy/cos"
SAMPLE = "--data toy/cos --kernel hmc --num-integration-steps 2 --width 3 --learn-scale"
SAMPLE += " --num-samples 6 --num-warmup 20 --num-chains 2 --test-draws 12"
OVERWRITE = ["train", *TINY.split(), "--seed", "1", "--overwrite", "--out"]


class Killed(BaseException):
    """In place of SIGKILL, where nothing else of the command runs after it."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", *TINY.split(), "--out", str(path)]) == 0
    return path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def final_bits(run: Path) -> bytes:
    return (run / "checkpoints" / "final.npz").read_bytes()


def is_kept(run: Path, finished: Path) -> bool:
    """Whether a finished run is whole, at its place or beside it."""
    places = [run, *run.parent.glob(f".{run.name}.*")]
    files = ("checkpoints/final.npz", "result.json", "metrics.jsonl", "config.json")
    same = lambda place, name: (
        (place / name).is_file()
        and (place / name).read_bytes() == (finished / name).read_bytes()
    )
    return any(all(same(place, name) for name in files) for place in places)


@contextmanager
def killed_at(stage: str, run: Path) -> Iterator[None]:
    """The next command ends there, and cleans up nothing."""
    make_folder = Path.mkdir

    def kill(*args: Any, **kwargs: Any) -> None:
        raise Killed

    def kill_once_moved(self: Path, *args: Any, **kwargs: Any) -> None:
        if self == run and not run.exists():
            raise Killed
        make_folder(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ornstein.train.saving._run_folder.RunFolder.restore", lambda self: None
        )
        if stage == "before its folder":
            patch.setattr(Path, "mkdir", kill_once_moved)
        elif stage == "before its config":
            patch.setattr("ornstein.train.saving._run_folder.write_atomically", kill)
        elif stage == "before training":
            patch.setattr("ornstein.cli.commands._train.train", kill)
        elif stage == "in training":
            patch.setattr(ProgressBar, "advance", kill)
        elif stage == "before its result":
            patch.setattr("ornstein.cli.commands._train._judge", kill)
        elif stage == "after its result":
            patch.setattr("ornstein.train.saving._run_folder.RunFolder.complete", kill)
        yield


STAGES = [
    *("before its folder", "before its config", "before training", "in training"),
    *("before its result", "after its result"),
]


def test_overwriting_deletes_nothing_before_the_new_run_is_complete(
    run: Path, finished: Path, capsys
):
    """However often it is killed, and called again.

    Reported: killed before training and called again, the old run was gone; killed
    in training, at once.
    """
    for stage in ("before training", *STAGES[:-2]):
        with pytest.raises(Killed), killed_at(stage, run):
            main([*OVERWRITE, str(run)])
        assert is_kept(run, finished), stage
    capsys.readouterr()
    assert main(["evaluate", str(run)]) == 2
    assert re.search(r"\.run\.replaced-\d+ is the run that it", capsys.readouterr().err)
    with pytest.raises(Killed), killed_at("before its result", run):
        main([*OVERWRITE, str(run)])
    assert is_kept(run, finished)
    assert main(["evaluate", str(run)]) == 0  # what was trained is there
    with pytest.raises(Killed), killed_at("after its result", run):
        main([*OVERWRITE, str(run)])
    assert is_kept(run, finished)
    assert json.loads((run / "result.json").read_text())["provenance"]["seed"] == 1
    assert main([*OVERWRITE, str(run)]) == 0
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_a_replaced_run_comes_back_if_its_place_is_empty(run: Path, finished: Path):
    """Killed between two renames. Catches a run that only its hidden name knows."""
    run.rename(run.with_name(".run.replaced-1"))
    assert main(["evaluate", str(run)]) == 0
    assert final_bits(run) == final_bits(finished)


def test_overwriting_with_bad_options_leaves_the_old_run(run: Path, finished: Path):
    """Refused by `fit` itself, once the new folder is there."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ValueError("refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ornstein.cli.commands._train.train", refuse)
        assert main([*OVERWRITE, str(run)]) == 2
    assert final_bits(run) == final_bits(finished)
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_a_disk_without_room_for_the_new_run_leaves_the_old_one(run, finished, capsys):
    """Reported: it was beside its place, and `evaluate` found no run there."""

    def fill(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ornstein.train.saving._run_folder.write_atomically", fill)
        assert main([*OVERWRITE, str(run)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert final_bits(run) == final_bits(finished)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    assert not (run / LOCK).exists()


def test_a_run_goes_by_any_name_of_its_folder(run: Path, finished: Path, capsys):
    """`.`, and a link. Reported: "has an empty name", and after all training."""
    link = run.parent / "link"
    link.symlink_to(run.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(run)
        for command in (["evaluate", "."], ["train", "--resume", "."]):
            assert main(command) == 0
        capsys.readouterr()
        for name in (".", str(run), str(link)):
            assert main([*OVERWRITE, name]) == 2
            assert f"{name} is, or has, the current folder" in capsys.readouterr().err
    assert final_bits(run) == final_bits(finished)
    assert main([*OVERWRITE, str(link)]) == 0
    assert json.loads((run / "result.json").read_text())["provenance"]["seed"] == 1
    assert link.is_symlink()
    assert sorted(path.name for path in run.parent.iterdir()) == ["link", "run"]


def test_no_other_process_gets_in_between(tmp_path: Path):
    """Reported: the new folder was let go of, for a moment, once it was made."""
    path, let_go, freed = tmp_path / "run", _lock._remove, []

    def watched(*args: Any) -> None:
        let_go(*args)
        freed.append(args[0])

    for _ in range(2):  # a new one, and over a run
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_lock, "_remove", watched)
            with new_run(path, {}, data="", overwrite=True) as (_, guard):
                assert freed == []
                guard.has_begun = True
        assert freed
        freed.clear()


@pytest.mark.parametrize("command", ["train", "sample"])
def test_a_folder_that_another_run_takes_is_left_to_it(
    command, tmp_path: Path, monkeypatch, capsys
):
    """Seen failing: refused as a run already, and a search before it was lost."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"ornstein.cli.commands._{command}")
    prepare, taken = module.prepare, tmp_path / "runs" / "toy-cos-1"

    def prepare_meanwhile(*args):
        taken.mkdir(parents=True)
        (taken / "config.json").write_text("{}")
        return prepare(*args)

    def end(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "prepare", prepare_meanwhile)
    monkeypatch.setattr(module, "_carry_out", end)
    options = TINY if command == "train" else SAMPLE
    assert main([command, *options.split(), "--overwrite"]) == 130
    assert "Writing to runs/toy-cos-2" in capsys.readouterr().out
    assert (taken / "config.json").read_text() == "{}"


def test_a_bad_folder_is_refused_before_any_work(run: Path, monkeypatch, capsys):
    """Reported: all trials of --tune ran first; a run put back was not named."""

    def work(*args: Any, **kwargs: Any) -> None:
        raise Killed

    monkeypatch.setattr("ornstein.cli.commands._train.prepare", work)
    monkeypatch.setattr("ornstein.cli.commands._sample.prepare", work)
    tuned = ["train", *TINY.split(), "--tune", "lr", "--out"]
    assert main([*tuned, str(run)]) == 2
    assert "is a run already: go on with" in capsys.readouterr().err
    run.rename(run.with_name(".run.replaced-1"))
    assert main([*tuned, str(run)]) == 2
    error = capsys.readouterr().err
    assert "is a run already (put back: the one" in error
    assert "--overwrite" in error
    for name, arguments in (("train", []), ("sample", [])):
        images = run.parent / "images"
        images.mkdir(exist_ok=True)
        for out in (images, images / "run", run.parent / "run" / ".." / "images" / "a"):
            options = ["--data", str(images), *arguments, "--out", str(out)]
            assert main([name, *options]) == 2
            error = capsys.readouterr().err
            assert "lies in the input" in error or "has the input" in error
        assert list(images.iterdir()) == []


def test_resuming_reads_the_recipe_under_the_lock(run: Path, monkeypatch):
    """Reported: a run replaced in between trained by the old one's recipe."""

    def read(folder: RunFolder) -> None:
        assert any(held[2:] == (os.getpid(), threading.get_ident()) for held in _held())
        raise Killed

    _held = lambda: list(_lock._held)
    monkeypatch.setattr("ornstein.cli.commands._train.read_recipe", read)
    monkeypatch.setattr("ornstein.cli.commands._sample.read_sample_recipe", read)
    for name in ("train", "sample"):
        with pytest.raises(Killed):
            main([name, "--resume", str(run)])


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """By another thread, which is to a lock what another process is."""
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock_folder(folder):
            is_held.set()
            is_over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--resume", "RUN"],
        [*OVERWRITE, "RUN"],
        ["evaluate", "RUN"],
        ["prune", "RUN"],
        ["predict", "RUN", "x.csv", "-o", "p.csv"],
        ["reproduce", "fig1", "--out", "RUN"],
        ["sample", *SAMPLE.split(), "--overwrite", "--out", "RUN"],
    ],
)
def test_a_run_in_use_is_refused_by_its_owners_name(
    command: list[str], run: Path, finished: Path, capsys, monkeypatch
):
    """Reported: all of them went ahead."""
    if command[0] == "reproduce":  # of a run it refuses the folder
        (run / "config.json").unlink()
        (run / "result.json").unlink()
        monkeypatch.setitem(
            EXPERIMENTS.taken, "fig1", Experiment("", "", lambda study: [])
        )
    with held(run):
        capsys.readouterr()
        assert main([str(run) if part == "RUN" else part for part in command]) == 2
        sentence = capsys.readouterr().err.strip().splitlines()[-1]
        assert f"{run} is in use by process {os.getpid()} on" in sentence
        assert final_bits(run) == final_bits(finished)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    assert not (run / LOCK).exists()


def test_predict_locks_no_folder_that_it_may_not_write_to(
    run: Path, tmp_path: Path, monkeypatch
):
    """Catches runs on a disk to read from alone that cannot be predicted with."""

    def refuse(folder: Path, *, is_shared: bool) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(folder))

    monkeypatch.setattr("ornstein.cli._run_folder.lock_folder", refuse)
    (tmp_path / "x.csv").write_text("x0\n1.0\n")
    arguments = ("x.csv", "-o", "p.csv")
    monkeypatch.chdir(tmp_path)
    assert main(["predict", str(run), *arguments]) == 0


@pytest.mark.parametrize(
    ("number", "code", "when"),
    [
        (signal.SIGTERM, 143, "between steps"),
        (signal.SIGTERM, 143, "while compiling"),
        (signal.SIGINT, 130, "between steps"),
    ],
)
def test_a_signal_ends_training_with_a_checkpoint(
    number, code, when, finished: Path, tmp_path: Path, monkeypatch, capsys
):
    """Nothing is lost, and it goes on to the same bits.

    Reported: SIGTERM ended the process at once, and Ctrl-C left the checkpoint of
    up to 30 seconds before.
    """
    path, advance, run_steps = tmp_path / "run", ProgressBar.advance, InMemory.run
    steps = []

    def interrupt(self, step, record):
        advance(self, step, record)
        steps.append(step)
        if when == "between steps" and step >= 2:
            signal.raise_signal(number)

    def interrupt_inside(*args, **rest):
        signal.raise_signal(number)
        return run_steps(*args, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "advance", interrupt)
        if when == "while compiling":
            patch.setattr(InMemory, "run", interrupt_inside)
        before = signal.getsignal(number)
        assert main(["train", *TINY.split(), "--out", str(path)]) == code
        assert signal.getsignal(number) == before
    assert f"ornstein train --resume {path}" in capsys.readouterr().out
    newest = checkpoints(path / "checkpoints")[-1]
    assert newest.name == f"step_{steps[-1]:09d}"
    assert main(["train", "--resume", str(path)]) == 0
    assert final_bits(path) == final_bits(finished)


def test_a_command_that_goes_on_is_quoted_for_a_shell(tmp_path: Path):
    """Seen failing: `ornstein train --resume my run`."""
    run = RunFolder.create(tmp_path / "my run", {})
    assert run.resuming == f"`ornstein train --resume '{run.path}'`"


def test_a_signal_before_training_leaves_nothing(tmp_path: Path, monkeypatch):
    prepare = lambda recipe: signal.raise_signal(signal.SIGTERM)
    monkeypatch.setattr("ornstein.cli.commands._train.prepare", prepare)
    assert main(["train", *TINY.split(), "--out", str(tmp_path / "run")]) == 143
    assert list(tmp_path.iterdir()) == []


def test_sigterm_ends_sampling_with_its_samples(tmp_path: Path, monkeypatch, capsys):
    """What was kept until the signal is kept, and it goes on to the same numbers."""
    path, whole = tmp_path / "stopped", tmp_path / "whole"
    assert main(["sample", *SAMPLE.split(), "--out", str(whole)]) == 0
    advance, kept = ChainProgress.advance, []

    def interrupt(self, step, record):
        advance(self, step, record)
        kept.append(record["num_kept"])
        if record["num_kept"] >= 2:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(sample_run, "_BUFFER_BYTES", 1)  # a sample in each call
        patch.setattr(ChainProgress, "advance", interrupt)
        assert main(["sample", *SAMPLE.split(), "--out", str(path)]) == 143
    assert f"ornstein sample --resume {path}" in capsys.readouterr().out
    assert kept[-1] == 2
    with np.load(path / "checkpoints" / "samples" / "state.npz") as state:
        meta = json.loads(state["ornstein"].tobytes())["hyperparameters"]
    assert meta["num_kept"] == 2
    assert main(["sample", "--resume", str(path)]) == 0
    read = lambda run: json.loads((run / "result.json").read_text())["nll"]
    assert read(path) == read(whole)


@pytest.mark.parametrize(
    ("weight", "code", "match"),
    [
        (np.nan, 2, r"final\.npz has NaN in .*: its training diverged"),
        (np.inf, 2, r"final\.npz has infinity in .*: its training diverged"),
        (3e38, 1, "Some predictions are NaN or infinite: the training diverged"),
    ],
)
def test_weights_that_predict_nothing_are_refused(weight, code, match, run, capsys):
    """Reported: `evaluate` wrote NaN scores and ended with 0; then of inf, 3e38."""
    final = run / "checkpoints" / "final.npz"
    with np.load(final) as file:
        content = dict(file)
    header = json.loads(content["ornstein"].tobytes())
    for i, (_, shape, dtype) in enumerate(header["leaves"]):
        if dtype == "float32":
            content[f"leaf_{i}"] = np.full(shape, weight, dtype).ravel().view(np.uint8)
    np.savez(final, **content)
    Path(run.parent / "x.csv").write_text("x0\n1.0\n")
    table = str(run.parent / "table.csv")
    for command in (
        ["evaluate", str(run)],
        ["predict", str(run), str(run.parent / "x.csv"), "-o", table],
        *([["prune", str(run)]] if code == 2 else []),
    ):
        capsys.readouterr()
        assert main(command) == code
        sentence = capsys.readouterr().err.strip().splitlines()[-1]
        assert re.search(match, sentence)
    assert not (run / "evaluation.json").exists()
    assert not Path(table).exists()


def test_the_model_of_another_run_is_refused(run: Path, capsys):
    """Of the same shapes. Reported: it was judged as the run's own."""
    config = json.loads((run / "config.json").read_text())
    config["recipe"]["training"]["seed"] += 1
    (run / "config.json").write_text(json.dumps(config))
    assert main(["evaluate", str(run)]) == 2
    assert "final.npz is the model of another run" in capsys.readouterr().err
    final = run / "checkpoints" / "final.npz"
    with np.load(final) as file:
        content = dict(file)
    header = json.loads(content["ornstein"].tobytes()) | {"hyperparameters": {}}
    content["ornstein"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(final, **content)  # as it was written before
    assert main(["evaluate", str(run)]) == 0


def command(*arguments: str) -> subprocess.Popen:
    """As people start it, without the tests' strictness."""
    return subprocess.Popen(
        [sys.executable, "-m", "ornstein_program", *arguments],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_step(run: Path, step: int, child: subprocess.Popen) -> None:
    deadline = time.monotonic() + 180
    names = lambda: [path.name for path in checkpoints(run / "checkpoints")]
    while not names() or names()[-1] < f"step_{step:09d}":
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline, "it hangs"
        time.sleep(0.01)


@pytest.mark.slow
def test_sigterm_as_a_scheduler_sends_it(tmp_path: Path):
    """To a process of its own; the second command goes on."""
    path = tmp_path / "run"
    child = command("train", *TINY.split(), "--epochs", "200000", "--out", str(path))
    wait_for_step(path, 0, child)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 143, err
    assert f"go on with `ornstein train --resume {path}`" in out + err
    assert "Traceback" not in err


@pytest.mark.slow
def test_overwriting_killed_at_random_keeps_the_old_run(run: Path, finished: Path):
    """SIGKILL, at times over start-up and training."""
    rng = random.Random(0)
    for _ in range(6):
        child = command(*OVERWRITE, str(run), "--epochs", "200000")
        time.sleep(rng.uniform(1.0, 12.0))
        child.kill()
        child.communicate()
        assert is_kept(run, finished)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_ends_training_in_one_sentence(small_disk: Path):
    """And with room again it goes on to the same bits. Seen hanging for ever."""
    path, whole = small_disk / "run", small_disk / "whole"
    options = [*TINY.split(), "--epochs", "3000"]
    child = command("train", *options, "--out", str(path))
    wait_for_step(path, 0, child)
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    out, err = child.communicate(timeout=180)
    assert child.returncode == 2, (child.returncode, out, err)
    sentence = err.strip().splitlines()[-1]
    assert re.search(r"^ornstein: .*: No space left on device: make room", sentence)
    assert sentence.endswith(f"go on with `ornstein train --resume {path}`.")
    assert "Traceback" not in err
    ballast.unlink()
    for arguments in (("--resume", str(path)), (*options, "--out", str(whole))):
        child = command("train", *arguments)
        _, err = child.communicate(timeout=300)
        assert child.returncode == 0, err
    assert final_bits(path) == final_bits(whole)
