"""Outputs never replace what is read, or a run's own files."""

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from ornstein._files import _atomic
from ornstein.cli import main
from ornstein.data import load
from ornstein.data._formulas import escaped, unescaped
from ornstein.report import save_figure

NAMES = ("=cmd()|' /C calc'!A0", "@sum(1)", "-2")
TINY = "--model mean-field --network mlp --width 2 --epochs 1 --num-draws 1"
TINY += " --test-draws 2 --target class"


def table(path: Path, names: tuple[str, ...] = NAMES) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["+a", "b", "class"])
        writer.writerows([i, i % 5, names[i % len(names)]] for i in range(60))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    table(folder / "own.csv")
    arguments = ["--data", str(folder / "own.csv"), "--out", str(folder / "run")]
    assert main(["train", *TINY.split(), *arguments]) == 0
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch) -> Path:
    """A run, its table (where the run says it is), new inputs and links."""
    shutil.copytree(trained / "run", tmp_path / "run")
    shutil.copy(trained / "own.csv", tmp_path / "new.csv")
    monkeypatch.chdir(tmp_path)
    Path("there.csv").write_text("mine")
    Path("there.npz").write_text("mine")
    Path("there.png").write_text("mine")
    Path("link.csv").symlink_to("new.csv")
    os.link("new.csv", "hard.csv")
    os.link("run/checkpoints/final.npz", "hard.npz")
    Path("link.npz").symlink_to("run/checkpoints/final.npz")
    os.mkfifo("pipe.csv")
    Path("run/tuning.json").write_text("[]")
    Path("study").mkdir()
    Path("study/result.json").write_text('{"name": "fig2"}')
    return tmp_path


def snapshot(*folders: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }


REFUSED = {
    "predict its input": (
        "predict run new.csv -o new.csv",
        "replace the input new.csv",
    ),
    "though overwriting": (
        "predict run new.csv -o new.csv --overwrite",
        "replace the input new.csv",
    ),
    "predict by a link": (
        "predict run new.csv -o link.csv --overwrite",
        "--output link.csv would replace the input new.csv",
    ),
    "predict by a hard link": (
        "predict run new.csv -o hard.csv --overwrite",
        "--output hard.csv would replace the input new.csv",
    ),
    "predict the training table": (
        "predict run new.csv -o {own} --overwrite",
        "own.csv would replace the input",
    ),
    "predict what is there": (
        "predict run new.csv -o there.csv",
        "--output there.csv exists: replace it with --overwrite",
    ),
    "predict into a pipe": (
        "predict run new.csv -o pipe.csv --overwrite",
        "pipe.csv is no regular file",
    ),
    "predict from a pipe": ("predict run pipe.csv -o p.csv", "pipe.csv cannot be read"),
    "predict from a terminal": ("predict run /dev/stdin -o p.csv", "/dev/stdin"),
    "predict into checkpoints": (
        "predict run new.csv -o run/checkpoints/p.csv",
        "is where the run .*run keeps its own files",
    ),
    "prune the model": (
        "prune run -o run/checkpoints/final.npz --overwrite",
        "is where the run .*run keeps its own files",
    ),
    "prune the model by a link": (
        "prune run -o link.npz --overwrite",
        "is where the run .*run keeps its own files",
    ),
    "prune the model by a hard link": (
        "prune run -o hard.npz --overwrite",
        "is where the run run keeps its own files",
    ),
    "export over the trials": (
        "export run -o run/tuning.json --overwrite",
        "is where the run .*run keeps its own files",
    ),
    "prune the configuration": (
        "prune run -o run/config.json --overwrite",
        "is where the run .*run keeps its own files",
    ),
    "export over an audit": (
        "export run -o run/audit.json --overwrite",
        "is where the run .*run keeps its own files",
    ),
    "export among twins": (
        "export run -o run/audit/kept.npz --overwrite",
        "is where the run .*keeps its own files",
    ),
    "export onto a folder": ("export run -o .", r"--output \. is a folder: give a"),
    "prune what is there": ("prune run -o there.npz", "--output there.npz exists"),
    "prune a device": ("prune run -o /dev/null --overwrite", "is no regular file"),
    "prune the training table": (
        "prune run -o {own} --overwrite",
        "own.csv would replace the input",
    ),
    "reproduce into a run": (
        "reproduce fig1 --out run",
        "files of a run, or of",
    ),
    "reproduce into another": ("reproduce fig1 --out study", "of another experiment"),
    "train over its table": (
        "train --data run/inside.csv --target class --out run --overwrite",
        "--out run has the input run/inside.csv",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_and_leaves_every_file(case, folder, trained, capsys):
    """Reported: each of these replaced the file that it names, but for the pipes,
    which hung."""
    table(folder / "run" / "inside.csv")
    (folder / "run" / "audit").mkdir(exist_ok=True)
    for name in ("audit.json", "audit/kept.npz"):
        (folder / "run" / name).write_text("{}")
    arguments, match = REFUSED[case]
    before = snapshot(folder, trained)
    own = str(trained / "own.csv")
    assert main([word.format(own=own) for word in arguments.split()]) == 2
    sentence = capsys.readouterr().err.strip().splitlines()[-1]
    with pytest.raises(ValueError, match=match):
        raise ValueError(sentence)
    assert snapshot(folder, trained) == before


def test_compare_reads_no_run(folder, monkeypatch, capsys):
    """Reported: a user's own result.json was taken for one of a run."""

    def compare(*args, **kwargs):
        raise ValueError("here it begins")

    monkeypatch.setattr("ornstein.cli.commands._compare.compare", compare)
    Path("result.json").write_text("mine")
    words = "compare --data new.csv --target class -o result.json --overwrite"
    assert main(words.split()) == 2
    assert "here it begins" in capsys.readouterr().err


def test_overwrite_replaces_what_is_the_users(folder, capsys):
    """And a second prune asks, as a sparse file of another fraction may be there."""
    assert main("predict run new.csv -o there.csv --overwrite".split()) == 0
    assert Path("there.csv").read_text().startswith("prediction,")
    assert main("prune run --fraction 0.5".split()) == 0
    kept = Path("run/sparse.npz").read_bytes()
    assert main("prune run --fraction 0.9".split()) == 2
    assert Path("run/sparse.npz").read_bytes() == kept
    assert main("prune run --fraction 0.9 --overwrite".split()) == 0
    assert Path("run/sparse.npz").read_bytes() != kept
    del capsys


def test_names_may_be_as_long_as_the_system_has_them(tmp_path: Path):
    """Seen failing, after all of its work: the name beside it was longer."""
    path, other = (tmp_path / (255 * letter) for letter in "xy")
    _atomic.write_atomically(path, b"all")
    _atomic.link_atomically(path, other)
    assert other.read_bytes() == b"all"
    assert sorted(tmp_path.iterdir()) == [path, other]
    # Seen alike: other machines' processes have the same numbers.
    alike = [path.with_name(250 * "x" + letter) for letter in "yz"]
    short = [path.with_name(60 * "x" + letter) for letter in "yz"]
    assert len({_atomic._beside(path) for path in (*alike, *short)}) == 4


def test_a_write_that_fails_leaves_the_old_file(folder, monkeypatch, capsys):
    """Catches a file opened for writing before its content is whole."""

    def full(*args):
        raise OSError(28, "No space left on device", "there.csv")

    monkeypatch.setattr(_atomic.os, "fsync", full)
    assert main("predict run new.csv -o there.csv --overwrite".split()) == 2
    assert Path("there.csv").read_text() == "mine"
    with pytest.raises(OSError, match="No space left"):
        save_figure(Path("there.png"), Figure())
    assert Path("there.png").read_text() == "mine"
    assert not list(Path().glob(".*tmp"))
    del capsys


def test_cells_that_a_spreadsheet_would_run_are_marked(folder, capsys):
    """OWASP's characters in class names and headers; numbers stay; and back again."""
    assert main("predict run new.csv -o p.csv --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["num_rows"] == 60
    with Path("p.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert not [cell for cell in header if cell[0] in "=+-@\t\r"]
    labels = {row[0] for row in rows}
    assert labels <= {f"'{NAMES[0]}", f"'{NAMES[1]}", "-2"}
    numbers = np.array([[float(cell) for cell in row[1:]] for row in rows])
    assert np.isfinite(numbers).all()
    # What was predicted can be learned from: the names are what they were.
    table(Path("back.csv"), tuple(escaped(name) for name in NAMES))
    back = load("back.csv", target="class")
    assert set(back.class_names) == set(NAMES)
    assert list(back.feature_names) == ["+a", "b"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@a", "'@a"),
        ("\t=a", "'\t=a"),
        ("\r=a", "'\r=a"),
        ("'=a", "''=a"),
        ("-1", "-1"),
        ("+1.5e-3", "+1.5e-3"),
        ("-1,5", "-1,5"),
        ("+,3", "+,3"),
        ("-1.234,5e3", "-1.234,5e3"),
        ("-1+1", "'-1+1"),
        ("-1,5+A1", "'-1,5+A1"),
        ("-.,", "'-.,"),
        ("@1,5", "'@1,5"),
        ("a=b", "a=b"),
        ("'a", "'a"),
        ("", ""),
    ],
)
def test_escaping_has_an_inverse(text: str, written: str):
    assert escaped(text) == written
    assert unescaped(written) == text
