"""The harness that kills commands can tell one run from another."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kills import CASES, compare, stage_of
from ornstein.cli._main import COMMANDS
from ornstein.cli._parse import parse


def run_like(path: Path) -> Path:
    """What a run leaves, in small."""
    samples = path / "checkpoints" / "samples"
    samples.mkdir(parents=True)
    np.save(samples / "0.npy", np.arange(6.0))
    np.savez(path / "checkpoints" / "final.npz", leaf_0=np.ones(3))
    result = {"nll": 0.5, "train_seconds": len(str(path)), "rows": [{"seconds": 1}]}
    (path / "result.json").write_text(json.dumps(result))
    (path / "metrics.jsonl").write_text('{"loss": 1.0, "seconds": 2.0}\n' * 2)
    return path


def change_zero(path: Path) -> None:
    """Equal as a number, and other bits."""
    values = np.array([-0.0, 1, 2, 3, 4, 5])
    np.save(path / "checkpoints" / "samples" / "0.npy", values)


def change_parameters(path: Path) -> None:
    np.savez(path / "checkpoints" / "final.npz", leaf_0=np.ones(3) + 1e-15)


def change_metrics(path: Path) -> None:
    (path / "metrics.jsonl").write_text('{"loss": 1.0, "seconds": 2.0}\n')


def change_scores(path: Path) -> None:
    (path / "result.json").write_text('{"nll": 0.6, "rows": [{}]}')


CHANGES = {
    change_zero: "0.npy differs",
    change_parameters: "final.npz differs from the whole run's leaf_0",
    change_metrics: "metrics.jsonl differs",
    change_scores: "result.json differs",
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_run_is_refused(change, tmp_path):
    """Catches a comparison of shapes, of numbers, or of nothing."""
    whole, other = run_like(tmp_path / "whole"), run_like(tmp_path / "a longer name")
    compare(other, whole)
    change(other)
    with pytest.raises(SystemExit, match=CHANGES[change]):
        compare(other, whole)


def test_stages_are_told_by_what_there_is(tmp_path):
    path = tmp_path / "run"
    assert stage_of(path) == "before its folder"
    (path / "checkpoints" / "samples").mkdir(parents=True)
    assert stage_of(path) == "before any checkpoint"
    for step, stage in ((1, "with a checkpoint"), (2, "with two checkpoints")):
        (path / "checkpoints" / f"step_{step:09d}").mkdir()
        assert stage_of(path) == stage
    (path / "checkpoints" / "final.npz").touch()
    assert stage_of(path) == "judged"
    (path / "result.json").touch()
    assert stage_of(path) == "after its result"


@pytest.mark.parametrize("name", CASES)
def test_commands_that_are_killed_are_commands(name):
    """Catches an option that is no more, before CI has killed anything."""
    parse([*CASES[name].split(), "--out", "new"], COMMANDS)
