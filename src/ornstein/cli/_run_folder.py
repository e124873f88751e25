"""Runs as the command line makes and reads them."""

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .._files import UnreadableError, check_regular
from ..data import Data
from ..functions import are_whole_rounds
from ..network import initial_state
from ..prediction import Fitted, FittedModel
from ..recipe import (
    Prepared,
    Recipe,
    SampleRecipe,
    open_sampling,
    prepare,
    sampled_prior,
)
from ..sampling import SamplingPlan
from ..train import (
    CheckpointError,
    Plan,
    RunFolder,
    checkpoints,
    creating,
    is_unused,
    load_hyperparameters,
    load_model,
    put_back,
    save_model,
)
from ._flags import flagged
from ._output import check_replaced
from ._signals import Interruption, handled
from ._terminal import Terminal

SAMPLES = "samples"
_MODEL = "final.npz"
_RECIPE = "sha256 of the recipe"


class Untouched:
    """Puts an overwritten run back, unless training begins: a callback.

    Args:
        run: the new one.
    """

    def __init__(self, run: RunFolder):
        self.run = run
        self.has_begun = False

    def start(self, plan: Plan | SamplingPlan) -> None:
        """Every check has passed: from now on the new run can be resumed."""
        del plan
        self.has_begun = True

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Nothing."""

    def epoch(self, record: dict[str, Any]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def restore(self) -> None:
        """Leave files as they were before the run, if it never began."""
        if not self.has_begun:
            self.run.restore()


def check_new(path: Path, inputs: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse a folder for a new run before any work is done for it.

    A run that was to be replaced by one that never began is put back first.

    Args:
        path: of the run.
        inputs: files and folders that the run reads.
        overwrite: replace a run that is there.

    Raises:
        FileExistsError: if something is there that may not be replaced.
    """
    check_replaced(path, inputs)
    note = " (put back: the one that was to replace it never began)"
    note = note if put_back(path) else ""
    if path.exists() and not (path.is_dir() and is_unused(path)):
        is_run = (path / "config.json").is_file()
        if not is_run:
            raise FileExistsError(
                f"{path} exists and is not a run: choose another folder with --out."
            )
        if not overwrite:
            raise FileExistsError(
                f"{path} is a run already{note}: go on with "
                f"{RunFolder(path).resuming}, replace it with --overwrite, or choose "
                "another folder with --out."
            )


@contextlib.contextmanager
def new_run(
    path: Path, config: dict[str, Any], *, overwrite: bool
) -> Iterator[tuple[RunFolder, Untouched]]:
    """A new run folder, which is as it was before if training never begins.

    No other process may work in it meanwhile. A run that it replaces stays beside it
    until the new one is complete: see `RunFolder.create`.

    Args:
        path: of the run.
        config: what decides it.
        overwrite: replace a run that is there.

    Raises:
        FileExistsError: if something is there that may not be replaced.
        BlockingIOError: if another process is at work there.
    """
    check_new(path, (), overwrite=overwrite)
    with creating(path, config, overwrite=overwrite) as run:
        guard = Untouched(run)
        try:
            yield run, guard
        finally:
            guard.restore()


@contextlib.contextmanager
def resumable(
    run: RunFolder, guard: Untouched | None, terminal: Terminal, *, command: str
) -> Iterator[Interruption]:
    """What ends a run early ends it whole, and says how it goes on.

    Args:
        run: the run.
        guard: of a new one.
        terminal: for people.
        command: that goes on with it.

    Yields:
        the callback with which signals wait for the end of a step.
    """
    interruption = Interruption()
    goes_on = f"go on with `ornstein {command} --resume {run.path}`"
    has_begun = lambda: guard is None or guard.has_begun
    try:
        with handled(interruption):
            yield interruption
    except KeyboardInterrupt:
        if has_begun():
            terminal.say(f"Interrupted: {goes_on}.")
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not has_begun():
            raise
        raise OSError(
            f"{error.filename}: {error.strerror}: make room, then {goes_on}."
        ) from error


def say_where(run: RunFolder, terminal: Terminal) -> None:
    """Where a new run writes, and where the one is that it replaces."""
    terminal.say(f"Writing to {run.path}")
    for old in run.replaced[-1:]:
        terminal.say(f"The run that was there stays in {old} until this is complete")


def say_written(run: RunFolder, written: Iterable[Path], terminal: Terminal) -> None:
    """What a run wrote, each by its place in the run folder."""
    places = [path.relative_to(run.path).as_posix() for path in written]
    terminal.say(f"Wrote {run.path}: {', '.join(places)}")


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


def is_sampled(run: RunFolder) -> bool:
    """Whether a run is one of chains."""
    return "sampling" in _read_config(run)


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
            "`ornstein train` or `sample` wrote."
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
    say_notes(data.notes, terminal)


def say_notes(notes: Iterable[str], terminal: Terminal) -> None:
    """What readers of scores and predictions must know of data and fit."""
    for note in notes:
        terminal.say(f"Note: {flagged(note)}")


def say_draws(fit: Fitted, num_draws: int, terminal: Terminal) -> None:
    """That some functions count more than others in a number of draws, if they do."""
    num_strata = fit.model.num_strata
    is_sampled = fit.model.posterior_parts().has_stored_samples
    is_fair = are_whole_rounds(num_draws, num_strata)
    if is_fair or (is_sampled and num_draws < num_strata):
        return  # a few of many samples are a fair share of them
    what = "stored samples" if is_sampled else "members"
    terminal.say(
        f"Note: {num_draws} draws count some of the {num_strata} {what} more often "
        f"than others: a multiple of {num_strata} would not."
    )


def say_joint_nll(result: dict[str, Any], terminal: Terminal) -> None:
    """What the two negative log likelihoods of series are, where there are two."""
    if "joint_nll" in result:
        terminal.say(
            "nll is of a value: each value's density, averaged over draws. joint_nll "
            "is of a whole series, and only the best draw counts: compare by nll."
        )


def save_final(run: RunFolder, fit: Fitted) -> Path:
    """Write the trained model with its batch statistics, and say where."""
    path = final_path(run)
    made_by = {_RECIPE: _digest(run)}
    tree = (fit.model, fit.likelihood, fit.state)
    save_model(path, tree, hyperparameters=made_by)
    return path


def _digest(run: RunFolder) -> str:
    """Of the recipe, which tells one run's model from another's."""
    text = json.dumps(_read_config(run)["recipe"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def final_path(run: RunFolder) -> Path:
    """Where a finished run has its trained model."""
    return run.checkpoints / _MODEL


def check_kept(run: RunFolder) -> None:
    """Refuse what is in the place of the checkpoints, or of the trained model.

    Raises:
        CheckpointError: naming what it is.
    """
    checkpoints(run.checkpoints)
    final = final_path(run)
    try:
        check_regular(final)
    except UnreadableError as error:
        raise CheckpointError(
            f"{final} should be the trained model's file ({error}): move it away, and "
            f"{run.resuming} writes the model again from the last checkpoint."
        ) from error


def load_run(path: Path) -> tuple[RunFolder, Prepared, Fitted]:
    """A finished run: its folder, data, and trained model.

    Raises:
        CheckpointError: if it is not finished, or its model cannot be read.
    """
    run = RunFolder.open(path)
    config = _read_config(run)
    check_kept(run)
    if "sampling" in config:
        recipe = read_sample_recipe(run)
        prepared = prepare(recipe.recipe)
        samples = open_sampling(recipe, prepared, run.checkpoints / SAMPLES)
        return run, prepared, samples.with_prior(sampled_prior(recipe, prepared))
    # Its weights are all in the file below: none that it started from are needed.
    prepared = prepare(read_recipe(run).changed(pretrained=None))
    final = final_path(run)
    if not final.is_file():
        kept = "".join(f"; {old} is the run that it replaces" for old in run.replaced)
        raise CheckpointError(
            f"{path} is not finished: go on with `ornstein train --resume {path}`"
            f"{kept}."
        )
    # Files of before have no digest.
    if load_hyperparameters(final).get(_RECIPE, _digest(run)) != _digest(run):
        raise CheckpointError(
            f"{final} is the model of another run, or config.json is another's: put "
            "the run's own back, or train again."
        )
    like = (prepared.model, prepared.likelihood, initial_state(prepared.model))
    return run, prepared, FittedModel(*load_model(final, like))
