"""`ornstein train` ends with a diagnosis."""

import json
from pathlib import Path

import pytest

from ornstein.cli import main


def test_train_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Weights without a scale; each message is printed, and kept in the result."""
    run = tmp_path / "run"
    options = "--data toy/cos --model mean-field --width 4 --epochs 3 --test-draws 2"
    options += " --init-scale 1e-7"
    assert main(["train", *options.split(), "--out", str(run)]) == 0
    out, _ = capsys.readouterr()
    diagnosis = json.loads((run / "result.json").read_text())["diagnosis"]
    names = [finding["name"] for finding in diagnosis]
    assert {"draws-agree", "diffusion-gone", "bound-below-constant"} <= set(names)
    for finding in diagnosis:
        assert set(finding) == {"name", "message", "numbers"}
        assert f"{finding['name']}: {finding['message']}" in out
    assert main(["evaluate", str(run), "--json"]) == 0  # knows the records, too
    again = json.loads(capsys.readouterr().out)["diagnosis"]
    assert {finding["name"] for finding in again} == set(names)
    assert {"kl-still"} <= set(names)
    gone = diagnosis[names.index("diffusion-gone")]["message"]
    assert "larger scale (--init-scale), or" in gone  # no code


@pytest.mark.parametrize(
    ("command", "options", "advice"),
    [
        ("train", "--model deterministic --epochs 3 --scale 0.01", "--model ensemble"),
        (
            "sample",
            "--kernel hmc --num-chains 1 --num-warmup 500 --num-samples 20 "
            "--num-integration-steps 2 --width 4 --scale 0.01",
            "`ornstein sample --num-chains ...`",
        ),
    ],
)
def test_bands_that_are_too_narrow(
    command: str,
    options: str,
    advice: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
):
    """A noise of a tenth of what there is: said by the command, and by `evaluate`.

    Catches chains without a diagnosis, whose bands were believed.
    """
    run = tmp_path / "run"
    words = [command, "--data", "toy/cos", *options.split(), "--out", str(run)]
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "coverage-off: The 50, 90 and 95 % bands hold" in out
    assert "they are too narrow" in out
    assert advice in out
    assert main(["evaluate", str(run), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    names = [finding["name"] for finding in result["diagnosis"]]
    assert "coverage-off" in names
    assert "worse-than-constant" in names


@pytest.mark.slow
def test_the_preset_of_the_toy_is_well(tmp_path: Path):
    run = tmp_path / "run"
    assert main(["train", "--data", "toy/cos", "--out", str(run)]) == 0
    result = json.loads((run / "result.json").read_text())
    assert result["drift_gain"] > 4 * result["drift_gain_se"]
    assert result["diagnosis"] == []
