"""Commands that write, killed at random and gone on with: the same bits at the end.

    python -m benchmarks.kills [--kills 200] [--seed 0] [--json PATH]

Each command runs once to its end. Then it is begun again and killed (SIGKILL) after a
time that is uniform between nothing and what the whole took, resumed as its user would,
killed again up to four times, and let through; and so on until all kills are spent.
What a run wrote must be, bit for bit, what the whole one did: parameters or samples,
metrics, scores. Checkpoints are written every 0.2 seconds, not every 30, so that kills
fall among them.
"""

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from rich.console import Console

from ._timing import Target, print_table, print_targets, write_json
from ._zygote import ended, preload, start

SAVE_EVERY = 0.2
_MOST_OF_ONE_RUN = 4
_OF_TIME = ("seconds", "provenance", "commit", "time")
"""What differs between two runs of anything, in the names of results."""

_TRAIN = "--data toy/cos --num-draws 1 --test-draws 2"
_SAMPLE = "--data toy/cos --width 3 --learn-scale --num-chains 2 --test-draws 12"
CASES = {
    "train mean-field": f"train {_TRAIN} --model mean-field --width 4 --epochs 400",
    "train dropout": f"train {_TRAIN} --model mc-dropout --width 4 --epochs 400 "
    "--ema 0.99",
    "sample hmc": f"sample {_SAMPLE} --kernel hmc --num-integration-steps 10 "
    "--num-samples 1000 --num-warmup 300",
    "sample sgld": f"sample {_SAMPLE} --kernel sgld --step-size 1e-4 --batch-size 20 "
    "--num-samples 1000 --num-warmup 500 --thin 5",
    "reproduce ibnn-table1": "reproduce ibnn-table1",
}
"""What is killed, and how it is written."""


class Outcome(NamedTuple):
    """What became of a command.

    Attributes:
        num_kills: that it got.
        num_runs: that came to their end, each compared with the whole one.
        seconds: that the whole one took.
        killed: how often in which of its stages.
    """

    num_kills: int
    num_runs: int
    seconds: float
    killed: dict[str, int]


def kill_often(
    name: str, folder: Path, *, num_kills: int, rng: random.Random
) -> Outcome:
    """Kill a command at random and go on with it, until the kills are spent.

    Args:
        name: of the command, in `CASES`.
        folder: a new one, for its runs.
        num_kills: how often.
        rng: of the moments.

    Raises:
        SystemExit: if a run cannot be gone on with, or ends in other bits.
    """
    folder.mkdir(parents=True)
    whole, log = folder / "whole", folder / "log.txt"
    run = lambda path: start(_arguments(name, path), log, save_every=SAVE_EVERY)
    _check(ended(run(whole)), name, log)  # compiles what the next ones find compiled
    begin = time.monotonic()
    _check(ended(run(folder / "again")), name, log)
    seconds = time.monotonic() - begin
    compare(folder / "again", whole)
    killed: Counter[str] = Counter()
    num_runs = 0
    while killed.total() < num_kills:
        path = folder / f"run-{num_runs}"
        # So that no run is only ever killed near its end.
        last = min(num_kills, killed.total() + rng.randint(1, _MOST_OF_ONE_RUN))
        while True:
            is_last = killed.total() == last
            within = {} if is_last else {"within": rng.uniform(0.0, seconds)}
            code = ended(run(path), **within)
            if code is not None:
                _check(code, name, log)
                break
            killed[stage_of(path)] += 1
        compare(path, whole)
        num_runs += 1
    return Outcome(killed.total(), num_runs, seconds, dict(killed))


def _arguments(name: str, path: Path) -> list[str]:
    """As a user begins a run, or goes on with one that is there."""
    command, *options = CASES[name].split()
    if command != "reproduce" and (path / "config.json").is_file():
        return [command, "--resume", str(path)]
    return [command, *options, "--out", str(path)]


def _check(code: int | None, name: str, log: Path) -> None:
    if code != 0:
        end = log.read_text(encoding="utf-8", errors="replace")[-3000:]
        raise SystemExit(f"{name} ended with {code}:\n{end}")


def stage_of(path: Path) -> str:
    """How far a run had come, by what it had written.

    Args:
        path: of its folder.
    """
    checkpoints = path / "checkpoints"
    stages = {
        "after its result": path / "result.json",
        "judged": checkpoints / "final.npz",
        "with two checkpoints": checkpoints / "samples" / "state-before.npz",
        "with a checkpoint": checkpoints / "samples" / "state.npz",
    }
    for stage, file in stages.items():
        if file.exists():
            return stage
    found = len(list(checkpoints.glob("step_*")))
    if found:
        return "with two checkpoints" if found > 1 else "with a checkpoint"
    return "before any checkpoint" if path.exists() else "before its folder"


def compare(path: Path, whole: Path) -> None:
    """Refuse a run that is not, bit for bit, the one that was never interrupted.

    Args:
        path: of the run.
        whole: of the other one.

    Raises:
        SystemExit: naming what differs.
    """
    files = [
        *whole.glob("checkpoints/final.npz"),
        *whole.glob("checkpoints/samples/*.npy"),
    ]
    for file in files:
        name = file.relative_to(whole)
        for key, a, b in _arrays(path / name, file):
            if a.tobytes() != b.tobytes():
                raise SystemExit(f"{path / name} differs from the whole run's {key}.")
    for name in ("metrics.jsonl", "result.json"):
        if (whole / name).exists() and _told(path / name) != _told(whole / name):
            raise SystemExit(f"{path / name} differs from the whole run's.")


def _arrays(path: Path, other: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if path.suffix == ".npy":
        yield path.stem, np.load(path), np.load(other)
        return
    with np.load(path) as ours, np.load(other) as theirs:
        for key in theirs.files:
            yield key, ours[key], theirs[key]


def _told(path: Path) -> list[Any]:
    """What a file of JSON, or of lines of it, says apart from times."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    return [_without_times(json.loads(line)) for line in lines]


def _without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_times(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_times(item)
        for name, item in value.items()
        if not any(word in name for word in _OF_TIME)
    }


def main(*, kills: int = 200, seed: int = 0, json: Path | None = None) -> None:
    """Kill, resume, compare.

    Args:
        kills: in all, shared by the commands.
        seed: of the moments.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    preload()
    rng = random.Random(seed)
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for i, name in enumerate(CASES):
            share = (kills * (i + 1)) // len(CASES) - (kills * i) // len(CASES)
            outcome = kill_often(name, Path(scratch) / str(i), num_kills=share, rng=rng)
            rows[name] = outcome._asdict()
            Console().print(f"{name}: {outcome}")
    print_table(
        "Killed at random, gone on with, and the same bits",
        ("command", "kills", "whole runs", "seconds of one", "killed where"),
        [
            (
                name,
                row["num_kills"],
                row["num_runs"],
                row["seconds"],
                ", ".join(f"{n} {stage}" for stage, n in row["killed"].items()),
            )
            for name, row in rows.items()
        ],
    )
    total = sum(row["num_kills"] for row in rows.values())
    targets = [Target("kills survived", total, at_least=kills)]
    print_targets(targets)
    if json is not None:
        write_json(json, rows, targets)


if __name__ == "__main__":
    tyro.cli(main)
