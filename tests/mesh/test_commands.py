"""`--distributed`: the command line in two processes of this machine, over gloo."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mesh.two_commands import (
    end,
    free_port,
    kill_child,
    start,
    together,
    wait_for,
)

import ornstein_processes
from ornstein.cli import main
from ornstein_processes import place_of

_BOUND = 1e-5
TRAIN = "train --target y --model deterministic --network mlp --width 4 --epochs 12"
TRAIN += " --batch-size 32 --test-draws 2 --seed 3 --data"
SAMPLE = "sample --target y --kernel hmc --num-integration-steps 2 --width 3"
SAMPLE += " --num-samples 6 --num-warmup 12 --num-chains 2 --test-draws 4"
SAMPLE += " --start-from prior --data"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 2))
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.sin(x[:, 0]) + x[:, 1]})
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def alone(table: Path, tmp_path_factory) -> Path:
    """A run of one process."""
    run = tmp_path_factory.mktemp("alone") / "run"
    assert main([*TRAIN.split(), str(table), "--out", str(run)]) == 0
    return run


def losses(run: Path) -> np.ndarray:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return np.array([json.loads(line)["loss"] for line in lines])


def is_alike(one: Path, other: Path) -> bool:
    found, wanted = losses(one), losses(other)
    return len(found) == len(wanted) and np.allclose(found, wanted, rtol=_BOUND)


@pytest.mark.slow
def test_training_is_that_of_one_process(table: Path, alone: Path, tmp_path: Path):
    """Catches a second writer, a second voice, and numbers of another batch."""
    run = tmp_path / "run"
    args = [*TRAIN.split(), str(table), "--out", str(run), "--json"]
    first, second = together(args)
    assert (first.code, second.code) == (0, 0), first.errors + second.errors
    assert is_alike(run, alone)
    assert json.loads(first.out)["model"] == "deterministic"  # and nothing of gloo's
    assert second.out == second.errors == ""
    nll = [json.loads((r / "result.json").read_text())["nll"] for r in (run, alone)]
    assert nll[0] == pytest.approx(nll[1], rel=1e-4)
    rows = tmp_path / "rows.csv"
    shutil.copy(table, rows)
    for place in ("one", "two"):
        predict = ["predict", str(run), str(rows), "-o", str(tmp_path / f"{place}.csv")]
        if place == "one":
            assert main(predict) == 0
        else:
            assert [ended.code for ended in together(predict)] == [0, 0]
    one, two = (pd.read_csv(tmp_path / f"{place}.csv") for place in ("one", "two"))
    assert np.allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_killed_pair_goes_on(table: Path, alone: Path, tmp_path: Path):
    """Catches a hang of the one that is left, and a run that cannot be gone on with."""
    run, port = tmp_path / "run", free_port()
    long = TRAIN.replace("--epochs 12", "--epochs 20000")
    args = [*long.split(), str(table), "--out", str(run)]
    both = [start(args, i, port) for i in range(2)]
    wait_for(run, "metrics.jsonl")
    wait_for(run / "checkpoints", "step_*")
    kill_child(both[1])
    left, killed = end(*both)
    assert left.code == 1
    assert killed.code == 137
    assert "another process of this run has ended" in left.errors
    assert f"`ornstein train --resume {run}` in all processes" in left.errors
    assert "this process was ended by SIGKILL" in killed.errors
    assert "stack trace" not in left.errors + killed.errors
    # The rest of it is as long as this test is not: it is told to end, and does.
    port = free_port()
    both = [start(["train", "--resume", str(run)], i, port) for i in range(2)]
    num = len(losses(run))
    wait_for_more(run, num)
    both[0].terminate()  # one of them alone
    first, second = end(*both)
    assert (first.code, second.code) == (143, 143), first.errors + second.errors
    assert f"Interrupted: go on with `ornstein train --resume {run}`" in first.out
    assert len(losses(run)) > num


def wait_for_more(run: Path, num: int) -> None:
    for _ in range(4000):
        if len((run / "metrics.jsonl").read_text().splitlines()) > num:
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise TimeoutError


@pytest.mark.slow
def test_rows_on_disk_are_read_by_both(table: Path, tmp_path: Path, capsys):
    """Catches a process that stays behind where the other meets a shard that is gone,
    and a run gone on with in another order of rows.
    """
    shards, run = tmp_path / "shards", tmp_path / "run"
    shards.mkdir()
    rows = pd.read_csv(table)
    for i in range(4):
        rows[40 * i : 40 * (i + 1)].to_parquet(shards / f"{i}.parquet")
    long = TRAIN.replace("--epochs 12", "--epochs 20000")
    args = [*long.split(), str(shards), "--stream", "--out", str(run)]
    both = [start(args, i, port) for port in [free_port()] for i in range(2)]
    wait_for(run, "metrics.jsonl")
    wait_for(run / "checkpoints", "step_*")
    (shards / "2.parquet").rename(tmp_path / "elsewhere")
    ended = end(*both)
    assert [one.code for one in ended] == [2, 2], [one.errors for one in ended]
    # Its rows are those of one process, and the other says so.
    said = sorted(one.errors for one in ended)
    assert "Another process of this run could not read its rows" in said[0]
    assert "2.parquet is gone, which was there" in said[1]
    (tmp_path / "elsewhere").rename(shards / "2.parquet")
    assert main(["train", "--resume", str(run)]) == 2
    assert "by 2 processes where this one has" in capsys.readouterr().err


@pytest.mark.slow
def test_chains_are_those_of_one_process(table: Path, tmp_path: Path):
    """Samples of the first steps, before rounding has led chains elsewhere."""
    runs = tmp_path / "one", tmp_path / "two"
    args = [*SAMPLE.split(), str(table), "--out"]
    assert main([*args, str(runs[0])]) == 0
    ended = together([*args, str(runs[1])])
    assert [e.code for e in ended] == [0, 0], ended[0].errors + ended[1].errors
    for file in sorted((runs[0] / "checkpoints" / "samples").glob("*.npy")):
        one, two = (
            np.load(r / "checkpoints" / "samples" / file.name)[:, :2] for r in runs
        )
        assert np.allclose(one, two, rtol=1e-3, atol=1e-4), file.name


@pytest.mark.slow
def test_processes_that_disagree_say_so(table: Path, tmp_path: Path):
    """Catches training on what only one of them was given."""
    args = [*TRAIN.split(), str(table), "--out", str(tmp_path / "run")]
    for ended in together(args, [*args, "--seed", "4"]):
        assert ended.code in (1, 2)  # of the one that hears of the other's end
        assert "Process 1 of this run has another --seed than process 0 (4 instead" in (
            ended.errors
        )
    other = tmp_path / "other" / table.name
    other.parent.mkdir()
    other.write_text(table.read_text().replace("1", "2", 1))
    args[args.index(str(table))] = table.name
    port = free_port()
    both = []
    for i, folder in enumerate((table.parent, other.parent)):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            both.append(start(args, i, port))
    for ended in end(*both):
        assert ended.code in (1, 2)  # of the one that hears of the other's end
        assert "Process 1 of this run has another `split` than process 0" in (
            ended.errors
        )


@pytest.mark.slow
def test_nobody_answers(tmp_path: Path):
    """Catches a wait without an end, or one that ends in a stack trace."""
    args = ["train", "--data", "digits", "--coordinator-timeout", "3"]
    port = free_port()
    (alone,) = end(start(args, 1, port))
    assert alone.code == 2
    assert f"no coordinator at localhost:{port} within 3 seconds" in alone.errors
    (first,) = end(start(args, 0, port))
    assert first.code == 2
    assert f"not all of 2 processes came to localhost:{port} within 3" in first.errors
    assert "stack trace" not in alone.errors + first.errors


WRONG = {
    "--coordinator here --processes 2 --process 0": "must be the HOST:PORT of",
    "--coordinator h:1 --processes 2": "--process I is missing: give all of",
    "--coordinator h:1 --processes 2 --process 2": "--process 2 is not among 2",
    "--coordinator h:1 --processes two --process 0": "--processes must be a number",
    "--coordinator-timeout soon": "--coordinator-timeout must be positive seconds",
    "--coordinator=h:1 --processes=0 --process=0": "--processes must be at least 1",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_place_is_refused(line: str, capsys):
    with pytest.raises(ValueError, match=WRONG[line]):
        place_of(line.split())
    assert ornstein_processes.watch(["train", "--distributed", *line.split()]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ornstein: ")
    assert WRONG[line] in said


def test_a_place_without_others_is_refused(capsys):
    assert main(["train", "--data", "digits", "--processes", "2"]) == 2
    assert "--processes is of --distributed: give that, too" in capsys.readouterr().err
    assert main(["train", "--data", "digits", "--distributed"]) == 2
    assert "is for the program `ornstein` in a shell" in capsys.readouterr().err


def test_the_watcher_imports_no_jax():
    program = "import sys, ornstein_program; print('jax' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"
