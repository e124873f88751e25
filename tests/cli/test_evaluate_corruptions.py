"""`ornstein evaluate --corruptions`, against the library called by hand."""

import dataclasses
import json
from pathlib import Path

import jax
import pytest

from ornstein.cli import main
from ornstein.cli.commands._evaluate import Evaluate
from ornstein.data import Split, load
from ornstein.evaluation import corruption_scores
from ornstein.recipe import Keys, load_run

TRAIN = "--model implicit --data digits --num-components 2 --num-draws 1 --test-draws 4"
TRAIN += " --train-rows 300 --test-rows 60 --batch-size 100 --epochs 1 --width 8"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", *TRAIN.split(), "--out", str(path)]) == 0
    return path


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # The run's own corrupted images; compiled programs stay where they are.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_evaluate_prints_and_writes_corruptions(run: Path, capsys):
    options = ["--corruptions", "--corruption-rows", "25"]
    assert main(["evaluate", str(run), *options]) == 0
    shown = capsys.readouterr().out
    assert "Corruptions were generated with CIFAR-10-C's constants" in shown
    assert "(generated corruptions)" in shown
    assert "speckle_noise" in shown
    assert "error std" in shown
    found = json.loads((run / "evaluation.json").read_text())["corruptions"]
    found_again = load_run(run).with_rows()
    prepared, fit = found_again.prepared, found_again.fit
    key = jax.random.fold_in(jax.random.fold_in(Keys.of(prepared.recipe).test, 4), 3)
    by_hand = corruption_scores(fit, prepared.data, num_draws=4, key=key, num_rows=25)
    assert found["mce"] == pytest.approx(by_hand["mce"])
    assert len(found["rows"]) == 95
    for row, own in zip(found["rows"], by_hand["rows"], strict=True):
        assert row == pytest.approx(own)
    assert found["num_rows"] == 25

    # As JSON it is alone on standard output; and without the option it is not there.
    assert main(["evaluate", str(run), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["corruptions"] == found
    assert main(["evaluate", str(run), "--json"]) == 0
    assert "corruptions" not in json.loads(capsys.readouterr().out)


def test_refused(run: Path, capsys):
    cases = {
        "--corruption-rows 5": "--corruption-rows is the number of rows for",
        "--corruptions --corruption-rows 61": "61 is not among the 60 test rows",
        "--corruptions --corruption-rows 0": "0 is not among the 60 test rows",
    }
    for options, sentence in cases.items():
        assert main(["evaluate", str(run), *options.split()]) == 2
        error = capsys.readouterr().err
        assert error.startswith("ornstein: ")
        assert sentence in error
        assert error.count("\n") == 1


def test_refused_for_data_without_classes_or_images():
    check = Evaluate(Path("run"), corruptions=True)._check_corruptions
    with pytest.raises(ValueError, match="the targets of toy/cos are numbers"):
        check(load("toy/cos"))
    digits = load("digits")
    split = Split(digits.test.x.reshape(-1, 64), digits.test.y)
    rows = dataclasses.replace(digits, train=split, test=split)
    with pytest.raises(ValueError, match="images, and digits has rows of numbers"):
        check(rows)
    check(digits)
