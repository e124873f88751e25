"""`ornstein evaluate RUN --test FILE`: a run on rows of another file."""

import itertools
import json
import time
from pathlib import Path
from typing import Any

from .._files import UnreadableError, read_json, write_atomically
from .._processes import is_first
from ..recipe import TrainedRun, provenance
from ._run_folder import say_notes
from ._terminal import Terminal, as_json

_FOLDER = "evaluations"


def evaluate_rows(
    run: TrainedRun,
    test: Path,
    terminal: Terminal,
    *,
    num_draws: int,
    separator: str | None,
    command: str,
) -> dict[str, Any]:
    """Judge a run by rows that it had no part in; the result.

    Args:
        run: with the numerics that it is to predict with.
        test: the file of the rows, or a folder of images.
        terminal: for people.
        num_draws: functions averaged over.
        separator: between cells of a `.csv`.
        command: as it was typed.
    """
    started = time.monotonic()
    found = run.evaluate(test, num_draws=num_draws, separator=separator)
    notes = [*run.notes, *found.notes]
    seconds = time.monotonic() - started
    result = as_json(
        {
            "run": str(run.folder.path),
            "test": str(test.absolute()),
            "num_rows": found.num_rows,
            "num_draws": num_draws,
            "notes": notes,
            **found.scores,
            "provenance": provenance(
                command, seed=run.prepared.recipe.training.seed, seconds=seconds
            ),
        }
    )
    say_notes(notes, terminal)
    rows = "1 row" if found.num_rows == 1 else f"{found.num_rows:,} rows"
    flat = {name: result[name] for name in found.scores}
    terminal.table(f"{run.folder.path} on {rows} of {test}", flat)
    folder = run.folder.path / _FOLDER
    folder.mkdir(exist_ok=True)
    path = _place(folder, test)
    if is_first():
        write_atomically(path, json.dumps(result, indent=2).encode())
    terminal.say(f"Wrote {path}")
    return result


def _place(folder: Path, test: Path) -> Path:
    """Where a file's scores stand: those of another of its name stay as they are."""
    for number in itertools.count(1):
        suffix = "" if number == 1 else f"-{number}"
        path = folder / f"{test.stem}{suffix}.json"
        if not path.exists() or _is_of(path, test):
            return path
    raise AssertionError


def _is_of(path: Path, test: Path) -> bool:
    try:
        return read_json(path)["test"] == str(test.absolute())
    except (UnreadableError, KeyError, TypeError):
        return False
