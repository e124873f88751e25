"""A run says by which calls it was made, and which goes on with it."""

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from ornstein.cli import _calls, main
from ornstein.sampling import ChainProgress
from ornstein.train import ProgressBar

TRAIN = "--data toy/cos --model deterministic --width 2 --epochs 6 --test-draws 1"
SAMPLE = "--data toy/cos --kernel hmc --num-integration-steps 2 --width 2"
SAMPLE += " --test-draws 12 --num-samples 6 --num-warmup 20 --num-chains 2"
SAMPLE += " --learn-scale"
COMMANDS = {"train": (TRAIN, ProgressBar), "sample": (SAMPLE, ChainProgress)}
_OWN = {"command", "commit", "versions", "device", "processor", "cores"}
_OWN |= {"seed", "seconds", "call_seconds"}


def call(*arguments: Any) -> list[str]:
    return [str(argument) for argument in arguments]


def said_by(path: Path) -> dict[str, Any]:
    return json.loads((path / "result.json").read_text())["provenance"]


def commands_of(provenance: dict[str, Any]) -> list[str]:
    """As they were typed, from the first."""
    calls = [provenance["begun"], *provenance["resumed"]]
    return [" ".join(shlex.split(each["command"])[1:]) for each in calls]


class Killed(BaseException):
    """In place of SIGKILL."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_resumed_run_names_all_its_calls(name: str, tmp_path: Path, monkeypatch):
    """One that was killed, one interrupted, and the last. Reported: the last alone."""
    options, bar = COMMANDS[name]
    path, advance = tmp_path / "run", bar.advance

    def ended_by(error: type[BaseException]) -> Any:
        def end(self: Any, step: int, record: dict[str, Any]) -> None:
            advance(self, step, record)
            time.sleep(0.2)
            raise error

        return end

    begin = call(name, *options.split(), "--seed", 3, "--out", path)
    go_on = call(name, "--resume", path)
    with monkeypatch.context() as patch:
        patch.setattr(_calls, "_NOTED_EVERY", 0.0)
        patch.setattr(_calls.Calls, "leave", lambda self: None)
        patch.setattr(bar, "advance", ended_by(Killed))
        with pytest.raises(Killed):
            main(begin)
    with monkeypatch.context() as patch:
        patch.setattr(bar, "advance", ended_by(KeyboardInterrupt))
        assert main(go_on) == 130
    assert main(go_on) == 0
    found = said_by(path)
    assert commands_of(found) == list(map(" ".join, (begin, go_on, go_on)))
    assert set(found) == _OWN | {"begun", "resumed"}
    assert found["command"] == found["resumed"][-1]["command"]
    calls = [found["begun"], *found["resumed"]]
    for each in calls:
        assert each["commit"] == found["commit"]
        assert each["versions"] == found["versions"]
        assert each["seed"] == 3
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", each["date"])
    assert calls[1]["seconds"] >= 0.2
    earlier = calls[0]["seconds"] + calls[1]["seconds"]
    assert found["seconds"] == pytest.approx(earlier + found["call_seconds"], abs=0.11)
    if name == "sample":
        result = json.loads((path / "result.json").read_text())
        assert earlier < result["train_seconds"] <= found["seconds"] + 0.1


def test_a_run_of_one_call_says_what_it_said(tmp_path: Path, capsys):
    """And where each file lies. Reported: "final.npz", in no place where that was."""
    path = tmp_path / "run"
    begin = call("train", *TRAIN.split(), "--out", path)
    assert main(begin) == 0
    found = said_by(path)
    assert commands_of(found) == [" ".join(begin)]
    assert found["seconds"] == found["call_seconds"]
    assert found["begun"]["command"] == found["command"]
    wrote = re.sub(r"\s+", " ", capsys.readouterr().out).partition("Wrote ")[2]
    names = wrote.partition(": ")[2].strip().split(", ")
    assert {"checkpoints/final.npz", "result.json"} <= set(names)
    assert any(name.startswith("figures/") for name in names)
    assert all((path / name).exists() for name in names)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_older_run_does_not_know_its_beginning(name: str, tmp_path: Path, capsys):
    """`null`, and no sum that leaves the unknown out.

    The sentence that it exists names its own command. Reported: `ornstein train` for
    a run of samples.
    """
    path = tmp_path / "run"
    begin = call(name, *COMMANDS[name][0].split(), "--out", path)
    assert main(begin) == 0
    (path / "calls.json").unlink()
    capsys.readouterr()
    assert main(call(name, "--resume", path)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "is finished: nothing is added to it, and it is judged again" in said
    found = said_by(path)
    assert found["begun"] is None
    assert [each["command"] for each in found["resumed"]] == [found["command"]]
    assert found["seconds"] is None
    assert found["call_seconds"] > 0
    capsys.readouterr()
    assert main(begin) == 2
    assert f"go on with `ornstein {name} --resume {path}`" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_finished_run_does_not_train_any_longer(name: str, tmp_path: Path):
    """Judging it again adds a call, and no seconds of training. Catches (seen) the
    seconds of all calls."""
    path = tmp_path / "run"
    assert main(call(name, *COMMANDS[name][0].split(), "--out", path)) == 0
    read = lambda: json.loads((path / "result.json").read_text())
    first = read()
    for num_resumed in (1, 2):
        assert main(call(name, "--resume", path)) == 0
        again = read()
        assert again["train_seconds"] == first["train_seconds"]
        assert len(again["provenance"]["resumed"]) == num_resumed
    (path / "result.json").write_text("[")
    assert main(call(name, "--resume", path)) == 0
    assert read()["train_seconds"] >= first["train_seconds"]
