"""Runs as the command line makes and reads them."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data import Data
from ..experiments import (
    Judged,
    Prepared,
    Recipe,
    SampleRecipe,
    open_sampling,
    prepare,
)
from ..functions import PosteriorSamples
from ..functions._network import initial_state
from ..predict import Fitted
from ..sample import SamplingPlan
from ..train import CheckpointError, Plan, RunFolder, load_model, save_model
from ._terminal import Terminal

SAMPLES = "samples"
_MODEL = "final.npz"


class Untouched:
    """Puts an overwritten run back, unless training begins: a callback.

    Args:
        path: of the new run.
        aside: where the old one lies, if there was one.
    """

    def __init__(self, path: Path, aside: Path | None):
        self.path, self.aside = path, aside
        self.has_begun = False

    def start(self, plan: Plan | SamplingPlan) -> None:
        """Every check has passed: the old run goes."""
        del plan
        self.has_begun = True
        if self.aside is not None:
            shutil.rmtree(self.aside)

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Nothing."""

    def epoch(self, record: dict[str, Any]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def restore(self) -> None:
        """Leave files as they were before the run, if it never began."""
        if self.has_begun:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self.aside is not None:
            self.aside.rename(self.path)


@contextlib.contextmanager
def new_run(
    path: Path, config: dict[str, Any], *, overwrite: bool
) -> Iterator[tuple[RunFolder, Untouched]]:
    """A new run folder, which is as it was before if training never begins.

    Args:
        path: of the run.
        config: what decides it.
        overwrite: replace a run that is there.

    Raises:
        FileExistsError: if something is there that may not be replaced.
    """
    aside = None
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        is_run = (path / "config.json").is_file()
        if not is_run:
            raise FileExistsError(
                f"{path} exists and is not a run: choose another folder with --out."
            )
        if not overwrite:
            raise FileExistsError(
                f"{path} is a run already: go on with `ornstein train --resume {path}`"
                ", replace it with --overwrite, or choose another folder with --out."
            )
        aside = path.with_name(f".{path.name}.replaced")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
    guard = Untouched(path, aside)
    try:
        yield RunFolder.create(path, config), guard
    finally:
        guard.restore()


def free_folder(data: str) -> Path:
    """The first of runs/NAME-1, runs/NAME-2, … that does not exist."""
    name = Path(data).stem if Path(data).suffix else data.replace("/", "-")
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path


def read_recipe(run: RunFolder) -> Recipe:
    """The recipe of a run.

    Raises:
        ValueError: if its config.json is damaged or of another version.
    """
    config = _read_config(run)
    if "sampling" in config:
        raise ValueError(
            f"{run.path} is a run of `ornstein sample`: go on with "
            f"`ornstein sample --resume {run.path}`."
        )
    return Recipe.from_json(config["recipe"])


def read_sample_recipe(run: RunFolder) -> SampleRecipe:
    """The options of a run of `ornstein sample`.

    Raises:
        ValueError: if its config.json is damaged, of another version or command.
    """
    config = _read_config(run)
    if "sampling" not in config:
        raise ValueError(
            f"{run.path} is a run of `ornstein train`: go on with "
            f"`ornstein train --resume {run.path}`."
        )
    return SampleRecipe.from_json(config["sampling"])


def _read_config(run: RunFolder) -> dict[str, Any]:
    config = run.config
    if "recipe" not in config:
        raise ValueError(
            f"{run.path / 'config.json'} holds no recipe: give a folder that "
            "`ornstein train` wrote."
        )
    return config


def say_data(data: Data, terminal: Terminal) -> None:
    """What the data are, and what was done to them."""
    shape, rows = " x ".join(map(str, data.example_shape)), "rows"
    held = f", {len(data.validation)} validation" if data.validation else ""
    if data.task == "series":
        times, features = data.example_shape
        rows, shape = "series", f"{times} times, {features} features"
    terminal.say(
        f"{data.name}: {len(data.train)} training {rows} of {shape}{held}, "
        f"{len(data.test)} test {rows}, {data.task}"
    )
    for note in data.notes:
        terminal.say(f"Note: {note}")


def say_draws(fit: Fitted, num_draws: int, terminal: Terminal) -> None:
    """That some functions count more than others in a number of draws, if they do."""
    num_strata = fit.model.num_strata
    is_sampled = isinstance(fit, PosteriorSamples)
    if num_draws % num_strata == 0 or (is_sampled and num_draws < num_strata):
        return  # a few of many samples are a fair share of them
    what = "stored samples" if is_sampled else "members"
    terminal.say(
        f"Note: {num_draws} draws count some of the {num_strata} {what} more often "
        f"than others: a multiple of {num_strata} would not."
    )


def save_final(run: RunFolder, fit: Fitted) -> Path:
    """Write the trained model with its batch statistics, and say where."""
    path = final_path(run)
    save_model(path, (fit.model, fit.likelihood, fit.state))
    return path


def final_path(run: RunFolder) -> Path:
    """Where a finished run has its trained model."""
    return run.checkpoints / _MODEL


def load_run(path: Path) -> tuple[RunFolder, Prepared, Fitted]:
    """A finished run: its folder, data, and trained model.

    Raises:
        CheckpointError: if it is not finished, or its model cannot be read.
    """
    run = RunFolder.open(path)
    if "sampling" in _read_config(run):
        prepared = prepare(read_sample_recipe(run).recipe)
        return run, prepared, open_sampling(prepared, run.checkpoints / SAMPLES)
    # Its weights are all in the file below: none that it started from are needed.
    prepared = prepare(read_recipe(run).changed(pretrained=None))
    final = final_path(run)
    if not final.is_file():
        raise CheckpointError(
            f"{path} is not finished: go on with `ornstein train --resume {path}`."
        )
    like = (prepared.model, prepared.likelihood, initial_state(prepared.model))
    return run, prepared, Judged(*load_model(final, like))
