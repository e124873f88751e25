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
    assert names[0] == "draws-agree"
    assert "diffusion-gone" in names
    for finding in diagnosis:
        assert set(finding) == {"name", "message", "numbers"}
        assert f"{finding['name']}: {finding['message']}" in out
    gone = diagnosis[names.index("diffusion-gone")]["message"]
    assert "(--sigma, --start-width, --init-scale)" in gone  # no code


@pytest.mark.slow
def test_the_preset_of_the_toy_is_well(tmp_path: Path):
    run = tmp_path / "run"
    assert main(["train", "--data", "toy/cos", "--out", str(run)]) == 0
    result = json.loads((run / "result.json").read_text())
    assert result["drift_gain"] > 4 * result["drift_gain_se"]
    assert result["diagnosis"] == []
