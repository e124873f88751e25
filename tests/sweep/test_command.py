"""`ornstein sweep`: what it refuses, and runs of a call that was killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ornstein.cli import main
from ornstein.cli._flags import flags_of
from ornstein.cli._main import COMMANDS
from ornstein.cli._parse import LOOKED_AT, parse
from ornstein.cli._sweep import Sweep, _args, _jobs
from ornstein.cli.commands import Train
from ornstein.sweep import Grid
from ornstein.sweep._folder import SweepFolder, at_work

RUN = ["--model", "mean-field", "--steps", "30", "--width", "3", "--test-draws", "4"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A table of two columns and a target."""
    x = np.random.default_rng(0).normal(size=(40, 2)).round(3)
    lines = [f"{a},{b},{a - b:.3f}" for a, b in x]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,y", *lines, ""]))
    return path


REFUSED = {
    "help": ("--over help=1,2 -- train", "--over help cannot be: it runs nothing"),
    "unknown option": (
        "--over seed=0,1 -- train --stepz 3",
        "ornstein: `ornstein train` has no option --stepz (did you mean --steps?)",
    ),
    "unknown axis": ("--over seedd=0,1 -- train", "--seedd 0: `ornstein train` has no"),
    "bad value": ("--over seed=0,x -- train", "--seed x: --seed takes a whole number"),
    "bad number": (
        "--over num_samples=4,0 -- sample --data toy/cos",
        "--num-samples 0: --num-samples must be positive",
    ),
    "of a named family": (
        "--over dropout=0.1,0.2 -- train --data toy/cos --model ensemble",
        "ornstein: --dropout 0.1: --dropout does nothing for --model ensemble",
    ),
    "a rate": (
        "--over learning_rate=1e-3,-1 -- train --data toy/cos --model ensemble",
        "--learning-rate -1: --learning-rate must be positive",
    ),
    "passed over": (
        "--over seed=0,1 -- train --data uci/yacht --model chains --sigma 3",
        "ornstein: --sigma does nothing for --model chains",
    ),
    "unread, though it is the default": (
        "--over seed=0,1 -- train --data toy/cos --model swag --linearised",
        "ornstein: --linearised does nothing for --model swag",
    ),
    "no rows to judge by": (
        "--over seed=0,1 -- train --data toy/cos --patience 3",
        "ornstein: --patience needs rows to judge epochs by",
    ),
    "a search of nothing": (
        "--over seed=0,1 -- train --data toy/cos --tune lr,colour",
        "ornstein: --tune colour is not one of",
    ),
    "a search of what is not read": (
        "--over model=sdebnn,ensemble -- train --data toy/cos --tune components",
        "ornstein: --tune components searches --num-components, which does nothing",
    ),
    "a process of none": (
        "--over seed=0,1 -- train --data toy/cos --coordinator a:1",
        "ornstein: --coordinator is of --distributed",
    ),
    "rows on disk of a table": (
        "--over seed=0,1 -- train --data {rows} --target y --model map --stream",
        "rows.csv cannot be read with --stream",
    ),
    "of other data": (
        "--over image_size=8,16 -- train --data {rows} --target y --model map",
        "--image-size 8: --image-size is for a folder of images",
    ),
    "of a table with times": (
        "--over seed=0,1 -- train --data {rows} --target y --model map --tempos 1 2",
        "ornstein: --tempos is for sequences in a table of your own",
    ),
    "sequences for a model of rows": (
        "--over model=latent-sde,ensemble -- train --data toy/gbm",
        "--model ensemble: toy/gbm holds sequences",
    ),
    "one weighted draw": (
        "--over num_draws=1,4 -- train --data toy/cos --model sdebnn "
        "--importance-weighted --estimator full",
        "--num-draws 1: --importance-weighted with --num-draws 1 is the plain bound",
    ),
    "more parts than rows": (
        "--over accumulate=4,200 -- train --data digits --model map",
        "--accumulate 200: --accumulate 200 does not divide the 128 rows",
    ),
    "steps": (
        "--over dt=0.5,0.3 -- train --data digits --model sdebnn",
        "--dt 0.3: --dt 0.3 does not divide the interval",
    ),
    "no noise": (
        "--over sigma=0.1,0 -- train --data toy/cos --model sdebnn",
        "--sigma 0: --sigma must be positive",
    ),
    "a window": (
        "--over noise_window=0-1,0-2 -- train --data digits --model sdebnn",
        "--noise-window 0-2: --noise-window must be two depths",
    ),
    "layers": (
        "--over random_layers=1,9 -- train --data {rows} --target y --model sdebnn",
        "--random-layers 9: --random-layers names layer 9, but f_h has 2",
    ),
    "a solver": (
        "--over solver=reversible-heun,heun -- train --data toy/cos --model sdebnn "
        "--gradient reversible",
        "ornstein: --gradient reversible walks the solver backwards",
    ),
    "empty range": ("--over seed=4..0 -- train", "--over seed=4..0 has an empty range"),
    "one run": ("--over seed=0 -- train", "--over makes a grid of one run"),
    "twice": ("--over seed=0,1 -- train --seed=3", "--seed stands in --over and after"),
    "twice, spelt": ("--over lr_x=0,1 -- train --lr-x 3", "--lr-x stands in --over"),
    "twice, a switch": (
        "--over learn_scale=yes,no -- train --no-learn-scale",
        "--learn-scale stands in --over",
    ),
    "its own": ("--over seed=0,1 -- train --out x", "--out is given by the sweep"),
    "its own axis": ("--over out=a,b -- train", "--over out cannot be"),
    "another command": ("--over seed=0,1 -- evaluate x", "not of 'evaluate'"),
    "no --": ("--over seed=0,1 train --seed 1", "stands after `--`"),
    "no command": ("--over seed=0,1", "--over needs the command of one run"),
    "no grid": ("-- train", "a sweep needs what varies"),
    "nothing": ("", "is not a sweep to go on with"),
    "no sweep": ("--table", "is not a sweep: it has no sweep.json"),
    "table and runs": ("--table --workers 2", "--workers does nothing for --table"),
    "no workers": (
        "--workers 0 --over seed=0,1 -- train",
        "--workers must be positive",
    ),
    "of ray": ("--gpus 1 --over seed=0,1 -- train", "--gpus does nothing for --engine"),
    "quotes": ("--over data=a'b,c -- train", "a quotation mark without another"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_one_sentence_and_nothing_runs(
    case: str, rows, tmp_path, capsys
):
    """Catches what is found out by forty runs, one after the other."""
    line, said = REFUSED[case]
    line = line.replace("{rows}", str(rows))
    out = tmp_path / "sweep"
    assert main(["sweep", "--out", str(out), *line.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("ornstein: ")
    assert error.count("\n") == 1
    assert not out.exists()


def test_the_guides_value_of_several_words_is_taken():
    """Catches (seen) an option whose widths are one word, joined by hyphens."""
    guide = Path(__file__).parents[2] / "docs" / "guide" / "sweep.md"
    over = re.findall(r'--over "(.*?)"', guide.read_text())
    assert over
    flags = flags_of(COMMANDS["train"])
    start = ["train", "--data", "a.csv", "--target", "y"]
    cells = Grid.parse(over)
    given = [parse([*start, *_args(cell, flags)], COMMANDS) for cell in cells]
    assert [run.recipe.data.features for run in given] == [("area", "rooms"), ("area",)]


def until(condition) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_a_killed_sweep_ends_with_the_table_of_single_runs(rows, tmp_path, capsys):
    """Two runs, SIGKILL in the second; then the grid grows by one that fails.

    Catches orphans, settings that do not reach their run, and runs that are redone.
    """
    out, common = tmp_path / "sweep", ["--data", str(rows), "--target", "y", *RUN]
    call = ["sweep", "--out", str(out), "--over", "seed=0,4", "--", "train", *common]
    parent = subprocess.Popen([sys.executable, "-m", "ornstein", *call])
    second = out / "runs" / "seed=4"
    steps = second / "metrics.jsonl"
    has_begun = lambda: steps.exists() and steps.stat().st_size > 0
    until(lambda: has_begun() or parent.poll() is not None)
    parent.kill()
    assert parent.wait() == -signal.SIGKILL
    first = (out / "runs" / "seed=0" / "result.json").read_bytes()
    assert not (second / "result.json").exists()
    assert main(["sweep", "--out", str(out)]) == 0
    assert "of which 1 are finished" in capsys.readouterr().out
    assert (out / "runs" / "seed=0" / "result.json").read_bytes() == first
    assert len(json.loads((second / "calls.json").read_text())["calls"]) == 2
    found = json.loads((out / "table.json").read_text())["rows"]
    for seed, row in zip((0, 4), found, strict=True):
        alone = tmp_path / f"alone-{seed}"
        args = ["train", *common, "--seed", str(seed), "--out", str(alone)]
        assert main(args) == 0
        result = json.loads((alone / "result.json").read_text())
        for name in ("nll", "rmse", "elbo", "num_parameters"):
            assert row[name] == pytest.approx(result[name], rel=1e-5), name
    assert found[0]["nll"] != found[1]["nll"]
    capsys.readouterr()
    call[call.index("seed=0,4")] = "seed=0,4,9"
    (out / "runs" / "seed=9").touch()  # in its run's way
    assert main([*call[:3], "--json", *call[3:]]) == 1
    said = capsys.readouterr()
    assert "1 of 3 runs failed, seed=9 with" in said.err
    assert not said.out


def test_a_command_whose_parent_is_gone_does_not_begin(rows, tmp_path):
    """Catches an orphan that was still starting, and takes a folder from the next."""
    args = ["train", "--data", str(rows), "--target", "y", *RUN]
    done = subprocess.run(
        [sys.executable, "-m", "ornstein.cli._watched", *args],
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 143
    assert sorted(os.listdir(tmp_path)) == ["rows.csv"]


def test_calls_that_go_on_have_the_mesh_and_the_folder(tmp_path: Path):
    """Catches (seen) a run that goes on with one device, and data that are looked for
    in the folder of the second call."""
    grid = Grid.parse(["seed=0,1"])
    words = ("train", "--data", "rows.csv", "--mesh", "data=2")
    with at_work(tmp_path / "sweep", words, grid, "ornstein sweep"):
        begun = Path.cwd()
    os.chdir(tmp_path)
    try:
        jobs = _jobs(SweepFolder.open("sweep"), {})
    finally:
        os.chdir(begun)
    assert all(job.resume[-2:] == ["--mesh", "data=2"] for job in jobs)
    assert {job.working for job in jobs} == {begun}
    assert all(job.folder.parent == tmp_path / "sweep" / "runs" for job in jobs)


def test_a_sweep_from_before_goes_on_from_any_folder(rows, tmp_path, monkeypatch):
    """Catches (seen) options of older runs and data that are looked at as those of a
    call from elsewhere."""
    began, elsewhere = tmp_path / "began", tmp_path / "elsewhere"
    for folder in (began / "photos", elsewhere):
        folder.mkdir(parents=True)
    monkeypatch.chdir(began)
    words = ["train", "--data", "photos", "--model", "map", "--image-size", "8"]
    with at_work(tmp_path / "sweep", words, Grid.parse(["seed=0,1"]), "") as sweep:
        sweep.run(sweep.cells[0]).mkdir()
    monkeypatch.chdir(elsewhere)
    call = ["sweep", f"--out={sweep.path}", "--over=seed=0,1,2", "--", *words]
    again = parse(call, COMMANDS)
    assert isinstance(again, Sweep)
    with pytest.raises(ValueError, match="photos is none"):
        again._grid()
    with again._where_it_began():
        again._grid()
    assert Path.cwd() == elsewhere
    unread = ["train", "--data", str(rows), "--target", "y", "--num-draws", "4"]
    unread += ["--model", "map"]
    monkeypatch.setenv(LOOKED_AT, "1")
    command = parse(unread, COMMANDS)
    assert isinstance(command, Train)
    command.check()
    monkeypatch.delenv(LOOKED_AT)
    command = parse(unread, COMMANDS)
    assert isinstance(command, Train)
    with pytest.raises(ValueError, match="num_draws"):
        command.check()
