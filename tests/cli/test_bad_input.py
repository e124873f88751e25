"""Bad input: exit 2, one sentence, files as they were, no traceback."""

import json
import re
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from ornstein.cli import main
from ornstein.cli._diagnosis import recorded
from ornstein.cli._main import _cache_programs
from ornstein.data import DataError, load, load_schema, save_schema
from ornstein.train import RunFolder

TINY = "--epochs 2 --width 2 --drift-widths 2 --num-inducing 0 --dt 0.5 --num-draws 1"
TINY += " --test-draws 2 --data toy/cos"


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", *TINY.split(), "--out", str(path)]) == 0
    return path


@pytest.fixture
def folder(finished_run: Path, tmp_path: Path, monkeypatch) -> Path:
    """A working folder with a finished run, damaged ones, and odd files."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished_run, "run")
    shutil.copytree(finished_run, "cut")
    final = Path("cut/checkpoints/final.npz")
    final.write_bytes(final.read_bytes()[:200])
    for newest in Path("cut/checkpoints").glob("step_*"):
        meta = newest / "meta.json"
        meta.write_text(meta.read_text()[:50])
    shutil.copytree(finished_run, "unfinished")
    Path("unfinished/checkpoints/final.npz").unlink()
    shutil.copytree(finished_run, "garbled")
    Path("garbled/config.json").write_text('{"recipe": {')
    shutil.copytree(finished_run, "newer")
    config = json.loads(Path("newer/config.json").read_text())
    config["recipe"]["model"]["colour"] = "blue"
    Path("newer/config.json").write_text(json.dumps(config))
    Path("folder").mkdir()
    Path("folder/notes.txt").write_text("mine")
    Path("empty.csv").write_text("")
    rows = [f"{i},{i}" for i in range(40)]
    Path("inf.csv").write_text("\n".join(["a,y", *rows, "inf,1", ""]))
    Path("good.csv").write_text("\n".join(["a,y", *rows, ""]))
    Path("x.csv").write_text("b\n1.0\n")
    np.savez("wide.npz", x=np.zeros((3, 2), np.float32))
    return tmp_path


CASES = {
    "no command": ("", "command is missing"),
    "unknown command": ("trian", "no command 'trian'.*: give one of train"),
    "unknown option": (f"train {TINY} --colour blue", "has no option --colour: "),
    "unknown value": (f"train {TINY} --solver rk9", "give one of euler, euler-heun"),
    "not a number": (f"train {TINY} --sigma wide", "--sigma"),
    "unknown data": ("train --data toy/cosine", "no data set 'toy/cosine'"),
    "no such preset": (f"train {TINY} --preset paper", "no preset 'paper' for toy/cos"),
    "run exists": (f"train {TINY} --out run", "--resume run.*--overwrite"),
    "not a run": (f"train {TINY} --out folder --overwrite", "exists and is not a run"),
    "dt zero": (f"train {TINY} --dt 0 --out new", "--dt must be positive"),
    "dt negative": (f"train {TINY} --dt=-0.1 --out new", "--dt must be positive"),
    "dt does not divide": (
        f"train {TINY} --dt 0.3 --out new",
        "--dt 0.3 does not divide.*try --dt 0.25",
    ),
    "bad dt keeps the old run": (
        f"train {TINY} --dt 0.3 --out run --overwrite",
        "does not divide",
    ),
    "bad batch keeps the old run": (
        f"train {TINY} --accumulate 7 --out run --overwrite",
        "--accumulate 7 does not divide the 40 rows",
    ),
    "reversible": (
        f"train {TINY} --gradient reversible --out new",
        "--gradient reversible walks.*use --solver reversible-heun, or --gradient che",
    ),
    "adaptive euler": (
        f"train {TINY} --rtol 0.1 --out new",
        "--rtol needs.* this --solver does.*use --solver heun or --solver sra1, or --d",
    ),
    "adaptive stl": (
        f"train {TINY} --rtol 0.1 --solver heun --estimator stl --out new",
        "--estimator stl does not go with adaptive",
    ),
    "epochs": (f"train {TINY} --epochs 0 --out new", "--epochs must be positive"),
    "epochs beyond counting": (
        f"train {TINY} --epochs 100000000000000000000 --out new",
        "--epochs must be at most 2147483647, got 1",
    ),
    "steps beyond counting": (
        f"train {TINY} --epochs 2000000000 --batch-size 8 --out new",
        "--epochs 2000000000 are 10000000000 steps",
    ),
    "seed": (
        f"train {TINY} --seed {2**70} --out new",
        "--seed must be a whole number from 0 to 4294967295, got 1",
    ),
    "seed of chains": ("sample --data toy/cos --seed=-1 --out new", "from 0 to 4294"),
    "seed of a figure": (f"reproduce fig1 --seed {2**70} --out new", "--seed must be"),
    "infinite rate": (
        f"train {TINY} --learning-rate inf --out new",
        "--learning-rate must be a finite number, got inf",
    ),
    "infinite in single precision": (
        f"train {TINY} --scale 1e300 --out new",
        "--scale must be 0 or of a size from .*, got 1e\\+300: it would be infinite in",
    ),
    "nothing in single precision": (
        "train --model ensemble --weight-scale 1e-39 --out new",
        "--weight-scale must be 0 or .* got 1e-39: it would be 0 in single precision",
    ),
    "NaN": ("evaluate run --dial 0.5 nan", "--dial must be a finite number, got nan"),
    "ema": (f"train {TINY} --ema 1 --out new", "--ema must lie above 0.*leave it out"),
    "scale": (f"train {TINY} --scale 0 --out new", "--scale must be positive, got 0"),
    "negative split": (f"train {TINY} --split -1 --out new", "no numbered splits"),
    "too large": (f"train {TINY} --width 99999999999 --out new", "not enough memory"),
    "not UTF-8": ("predict run x\udcff.csv -o p.csv", r"'x\\udcff.csv' is not UTF-8"),
    "sigma": (f"train {TINY} --sigma 0 --out new", "--sigma must be positive.*--model"),
    "widths": (f"train {TINY} --drift-widths 2x2 --out new", "joined by hyphens"),
    "likelihood": (
        f"train {TINY} --likelihood categorical --out new",
        "`Categorical`",
    ),
    "tune what": (
        f"train {TINY} --tune lr,colour --validation-fraction 0.2 --out new",
        "--tune colour is not one of lr, noise-lr, sigma",
    ),
    "patience": (f"train {TINY} --patience 3 --out new", "--validation-fraction"),
    "split": (f"train {TINY} --split 3 --out new", "no numbered splits"),
    "draws of one function": (
        "train --data good.csv --target y --model map --num-draws 4 --out new",
        "--num-draws does nothing for --model map: leave it out",
    ),
    "a likelihood's": (
        "train --data good.csv --target y --model mean-field --df 3 --out new",
        "--df does nothing for --likelihood auto",
    ),
    "a network's": (
        "train --data good.csv --target y --model mean-field --norm batch --out new",
        "--norm does nothing for --network mlp",
    ),
    "a default that is not read": (
        "train --data good.csv --target y --model deterministic --dt=0.1 --out new",
        "--dt does nothing for --network mlp",
    ),
    "a kernel's": (
        "sample --data good.csv --target y --kernel hmc --no-image-augmentation",
        "--image-augmentation does nothing for --kernel hmc",
    ),
    "downloads to be compared": (
        "compare --data good.csv --target y --data-dir none",
        "--data-dir does nothing for --data good.csv: leave it out",
    ),
    "columns of a table with times": (
        "train --data good.csv --time a --features y --out new",
        "--features does nothing for --time a",
    ),
    "no target": ("train --data good.csv --out new", "target"),
    "missing column": ("train --data good.csv --target z --out new", "'z'"),
    "nan": ("train --data inf.csv --target y --out new", "[Ii]nf"),
    "empty file": ("train --data empty.csv --target y --out new", "empty.csv"),
    "resume nothing": ("train --resume nowhere", "nowhere is not a run"),
    "resume with options": (f"train --resume run {TINY}", "leave the others out"),
    "resume with an optimiser": (
        "train --resume run --optimiser muon",
        "leave the others out",
    ),
    "resume with a default": (
        "train --resume run --batch-size 128",
        "leave the others out",
    ),
    "no trial": (
        "train --data toy/cos --steps 2 --tune lr --tune-epochs 0 --out new",
        "--tune-epochs must be positive, got 0",
    ),
    "predict by none": (
        "predict run x.csv -o p.csv --draws 0",
        "--draws must be at least 1, got 0",
    ),
    "prune by none": ("prune run --draws 0", "--draws must be at least 1, got 0"),
    "resume with data": ("train --resume run --data digits", "leave the others out"),
    "passes of no trial": (
        f"train {TINY} --tune-epochs 3 --out new",
        "--tune-epochs does nothing without --tune: give --tune lr",
    ),
    "the paper's prior of paths": (
        "train --data mnist --preset paper --model map --network sdebnn --out new",
        "--preset paper has no prior .* --network sdebnn with --model map: leave --pre",
    ),
    "resume a cut run": ("train --resume cut", "truncated or damaged"),
    "evaluate nothing": ("evaluate nowhere", "nowhere is not a run"),
    "evaluate a cut run": ("evaluate cut", "truncated"),
    "evaluate an unfinished run": ("evaluate unfinished", "--resume unfinished"),
    "garbled config": ("evaluate garbled", "config.json is truncated or damaged"),
    "newer config": ("evaluate newer", "no option 'colour'.*another version"),
    "evaluate dt": ("evaluate run --dt 0.3", "does not divide"),
    "dial": ("evaluate run --dial 0.5 0.3", "must divide depth.*dt = 0.3"),
    "evaluate dt and rtol": ("evaluate run --dt 0.5 --rtol 0.1", "one or the other"),
    "predict no file": ("predict run gone.csv -o p.csv", "There is no"),
    "predict columns": ("predict run wide.npz -o p.csv", "shape \\(2,\\)"),
    "predict output": ("predict run x.csv -o p.txt", "must be a .csv file"),
    "predict folder": ("predict run x.csv -o gone/p.csv", "no folder gone"),
    "predict level": ("predict run x.csv -o p.csv --interval 2", "--interval must lie"),
    "predict sure": (
        "predict run x.csv -o p.csv --interval 0.99999999",
        "--interval must be at most 0.999999",
    ),
    "option of another model": (
        "train --model mean-field --sigma 0.3 --out new",
        "--sigma does nothing for --network mlp",
    ),
    "weight option of an SDE-BNN": (
        f"train {TINY} --dropout 0.3 --out new",
        "--dropout does nothing for --model sdebnn",
    ),
    "unknown model": ("train --model forest --out new", "--model"),
    "no preset of a model": (
        "train --model ensemble --preset paper --data mnist --out new",
        "no preset 'paper' for mnist with --model ensemble",
    ),
    "dropout": (
        "train --model mc-dropout --dropout 1 --out new",
        "`rate` is the fraction of inputs dropped",
    ),
    "members": (
        "train --model ensemble --num-members 1 --out new",
        "at least 2 members, got 1",
    ),
    "draws and members": (
        "train --model ensemble --num-members 3 --test-draws 5 --out new",
        "--test-draws 5.*multiple of 3",
    ),
    "estimator and noise": (
        "train --model mean-field --estimator stl --out new",
        "give --weight-noise plain, not local",
    ),
    "IVON of an SDE-BNN": (
        f"train {TINY} --optimiser ivon --out new",
        "--optimiser ivon moves.*--model sdebnn does not have: give --model mean-field",
    ),
    "IVON and a prior": (
        "train --model mean-field --optimiser ivon --prior laplace --out new",
        "--prior laplace is not normal: give --prior gaussian",
    ),
    "IVON and warm-up": (
        "train --model mean-field --optimiser ivon --kl-warmup 0.1 --out new",
        "one weight above 0 in every step",
    ),
    "IVON and its start": (
        "train --model mean-field --optimiser ivon --init-scale 0.1 --out new",
        "--init-scale does nothing for --optimiser ivon",
    ),
    "curvature that is never forgotten": (
        "train --model mean-field --optimiser ivon --hessian-decay 1 --out new",
        "--hessian-decay must lie above 0 and below 1, got 1.0: try 0.9995",
    ),
    "curvature by Adam": (
        "train --model mean-field --hessian-decay 0.99 --out new",
        "--hessian-decay does nothing for --optimiser adam",
    ),
    "a path where none is": (
        "train --model mean-field --random-weights path --out new",
        "--random-weights path is for weights that move through depth, and those of "
        "--network mlp do not: give --network sdebnn",
    ),
    "points by IVON": (
        "train --model mean-field --network sdebnn --random-weights path "
        "--optimiser ivon --out new",
        "--optimiser ivon trains points without a prior: give --optimiser adam",
    ),
    "empirical Bayes by Adam": (
        "train --model mean-field --empirical-bayes --out new",
        "--empirical-bayes does nothing for --optimiser adam",
    ),
    "weight decay": (f"train {TINY} --weight-decay=-1 --out new", "not be negative"),
    "tune sigma of a network": (
        "train --model ensemble --tune sigma --validation-fraction 0.2 --out new",
        "--tune sigma searches --sigma, which does nothing for --network mlp",
    ),
    "tune components of a network": (
        "train --data gone.csv --model ensemble --tune components --out new",
        "--tune components searches --num-components, .* for --model ensemble: leave",
    ),
    "tune the nodes' rate of IVON": (
        "train --model mean-field --optimiser ivon --tune noise-lr --out new",
        "--noise-learning-rate",
    ),
    "components for the batch": (
        "train --model implicit --batch-size 8 --tune components --out new",
        "8 rows cannot be dealt to 16 components",
    ),
    "unknown network": (
        "train --model implicit --network lenet5 --out new",
        "--network 'lenet5' is not one of mlp, hierarchical, lenet",
    ),
    "network of an SDE-BNN": (
        f"train {TINY} --network mlp --norm frn --out new",
        "--norm does nothing for --model sdebnn",
    ),
    "pretrained file": (
        "train --model implicit --network resnet-18 --network-width 0.1 "
        "--pretrained gone.pt",
        "gone.pt",
    ),
    "rows": (
        "train --model implicit --train-rows 0 --out new",
        "--train-rows 0 is not",
    ),
    "sweep of numbers": ("evaluate run --noise-sweep", "--noise-sweep is about"),
    "other data of another form": (
        "evaluate run --ood-data digits",
        "digits has images, and the model takes rows of 1 numbers",
    ),
    "other data unknown": ("evaluate run --ood-data moon", "no data set 'moon'"),
    "prune nothing": ("prune nowhere", "nowhere is not a run"),
    "prune an SDE-BNN": ("prune run", "holds a `SDEBNN`.*--model mean-field"),
    "prune all": ("prune run --fraction 1", "--fraction must be at least 0"),
    "prune folder": ("prune run -o gone/p.npz", "no folder gone"),
    "experiment without models": (
        "reproduce fig1 --models sdebnn",
        "--models does nothing for `reproduce fig1`",
    ),
    "table of other data": (
        "reproduce table1 --data svhn --out new",
        "no recipes for 'svhn' at --scale quick, only for cifar10, mnist",
    ),
    "scale of another experiment": (
        "reproduce fig1 --scale hours",
        "--scale hours is not one of fig1's: give quick, gpu, full.",
    ),
    "scale of other data": (
        "reproduce table1 --scale hours --data mnist --out new",
        "no recipes for 'mnist' at --scale hours, only for cifar10:",
    ),
    "row without a recipe": (
        "reproduce table1 --models forest --out new",
        "no recipe 'forest' for mnist",
    ),
    "ODE net of another method": (
        "train --model implicit --network odenet --out new",
        "--model implicit puts noise on.*use --model deterministic",
    ),
    "odd images": (
        "train --model deterministic --network odenet --blocks 1-1-1-1 --out new",
        "Images of 8 by 8 cannot be halved 4 times",
    ),
    "roughness of a rough path": (
        f"train {TINY} --regularise-dynamics 0.1 --roughness-order 2 --out new",
        "R_2 needs.*does not exist in an SDE-BNN",
    ),
    "random layers": (
        f"train {TINY} --random-layers 9 --out new",
        "--random-layers names layer 9, but f_h has",
    ),
    "noise window": (
        f"train {TINY} --noise-window 0.4 --out new",
        "--noise-window is '0.4', but must be two depths",
    ),
    "weights without a log ratio": (
        f"train {TINY} --importance-weighted --out new",
        "--importance-weighted weighs each draw .*: give --estimator full",
    ),
    "weights on minibatches": (
        f"train {TINY} --importance-weighted --estimator full --batch-size 8 "
        "--num-draws 2 --out new",
        "no bound on --batch-size 8 of 40 training rows",
    ),
    "weights of one draw": (
        f"train {TINY} --importance-weighted --estimator full --batch-size 40 "
        "--out new",
        "--importance-weighted with --num-draws 1 is the plain bound: give",
    ),
    "unknown experiment": ("reproduce fig99", "give one of fig1, fig2"),
    "reproduce into a file": ("reproduce fig1 --out x.csv", "x.csv is a file"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_one_sentence_and_changes_nothing(case: str, folder: Path, capsys):
    """Seen failing: `new_run` without its restore loses the run to --accumulate 7."""
    arguments, match = CASES[case]
    before = snapshot(folder)
    capsys.readouterr()
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    sentence = err.strip().splitlines()[-1]
    assert sentence.startswith("ornstein: "), err
    assert re.search(match, sentence), sentence
    assert "Traceback" not in err + out
    assert snapshot(folder) == before


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_home_that_nobody_has_is_said(command, capsys):
    """Seen failing: a traceback of a `RuntimeError`."""
    assert main([command, "--data", "~nouser9/x.csv", "--target", "y"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "~nouser9/x.csv: there is no home folder ~nouser9: give" in said


def test_without_a_home_programs_are_not_kept(monkeypatch):
    """Seen failing: a traceback of a `RuntimeError`, of every command."""

    def nobody(number):
        raise KeyError(number)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        _cache_programs()
        assert jax.config.values["jax_compilation_cache_dir"] is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


DAMAGED = ['{"epoch": 1, "elb', "\0\0\0", "3", "[1]", "[" * 100_000]
DAMAGED += ['{"epoch": 1' + 400 * "0" + "}", '{"epoch": [1]}', '{"epoch": "a"}', ""]


@pytest.mark.parametrize("line", DAMAGED, ids=lambda line: line[:14])
def test_a_damaged_record_of_epochs_is_said(line, tmp_path: Path):
    """Seen failing: tracebacks, and sentences that name no file."""
    run = RunFolder(tmp_path)
    run.metrics.write_text('{"epoch": 0, "elbo": null}\n')
    found = recorded(run)
    assert found["epoch"] == [0]
    assert np.isnan(found["elbo"])
    run.metrics.write_text(f'{{"epoch": 0}}\n{line}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl is truncated or damaged"):
        recorded(run)


@pytest.mark.parametrize("number", [10**400, float("nan")], ids=["huge", "nan"])
def test_a_scaling_that_is_no_number_is_refused(number, tmp_path: Path):
    """Seen failing: an `OverflowError`, and predictions of NaN."""
    path = tmp_path / "data.json"
    save_schema(path, load("toy/cos"))
    saved = json.loads(path.read_text())
    saved["y_scaling"] = {
        "mean": {"dtype": "float32", "values": [number]},
        "scale": {"dtype": "float32", "values": [1.0]},
        "axes": None,
    }
    path.write_text(json.dumps(saved))
    with pytest.raises(DataError, match=r"data\.json is damaged"):
        load_schema(path)
