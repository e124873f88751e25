"""Runs as the command line makes and reads them."""

import contextlib
import errno
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .._files import lock_folder
from .._processes import note_run
from ..data import Data
from ..functions import are_whole_rounds
from ..prediction import Fitted
from ..recipe import chains_at, read_recipe
from ..recipe.options import LikelihoodOptions
from ..sampling import SamplingPlan
from ..train import CheckpointError, Plan, RunFolder, creating, is_unused, put_back
from ._flags import flagged
from ._output import check_replaced
from ._signals import Interruption, handled
from ._terminal import Terminal
from ._usage import UsageError


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
    path: Path | None, config: dict[str, Any], *, data: str, overwrite: bool
) -> Iterator[tuple[RunFolder, Untouched]]:
    """A new run folder, which is as it was before if training never begins.

    No other process may work in it meanwhile. A run that it replaces stays beside it
    until the new one is complete: see `RunFolder.create`.

    Args:
        path: of the run; the first that is free by now where it is `None`.
        config: what decides it.
        data: of which a free one has the name.
        overwrite: replace a run that is there.

    Raises:
        FileExistsError: if something is there that may not be replaced.
        BlockingIOError: if another process is at work there.
    """
    with contextlib.ExitStack() as stack:
        run = None
        while run is None:
            place = free_folder(data) if path is None else path
            may_replace = overwrite and path is not None
            try:
                check_new(place, (), overwrite=may_replace)
                making = creating(place, config, overwrite=may_replace)
                run = stack.enter_context(making)
            except (FileExistsError, BlockingIOError):
                if path is not None or not place.exists():
                    raise  # else another process has just taken it
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
    goes_on = f"go on with {run.resuming}"
    note_run(f"{command} --resume {shlex.quote(str(run.path))}")
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


@contextlib.contextmanager
def reading(*folders: Path) -> Iterator[None]:
    """Runs that are not replaced meanwhile; one that nobody may write to is not.

    Args:
        folders: of the runs.
    """
    with contextlib.ExitStack() as stack:
        for folder in folders:
            try:
                stack.enter_context(lock_folder(folder, is_shared=True))
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
        yield


def say_where(run: RunFolder, terminal: Terminal) -> None:
    """Where a new run writes, and where the one is that it replaces."""
    terminal.say(f"Writing to {run.path}")
    for old in run.replaced[-1:]:
        terminal.say(f"The run that was there stays in {old} until this is complete")


def say_finished(run: RunFolder, terminal: Terminal) -> None:
    """That a run to go on with is finished, if it is."""
    if (run.path / "result.json").is_file():
        terminal.say(
            f"{run.path} is finished: nothing is added to it, and it is judged again."
        )


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


def chains_of_members(path: Path) -> tuple[dict[str, Any], LikelihoodOptions | None]:
    """Options of chains that start where a run ended, and its likelihood's.

    Args:
        path: of the run.

    Returns:
        Options of the network by name, for an ensemble the number of chains among
        them; none of what chains cannot start from, which is left to its reader to say.
    """
    try:
        recipe = read_recipe(RunFolder(path))
    except (OSError, ValueError, KeyError, TypeError, CheckpointError):
        return {}, None
    return chains_at(recipe), recipe.likelihood


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


def check_draws(num_draws: int | None) -> None:
    """Refuse none, where some are asked for."""
    if num_draws is not None and num_draws < 1:
        raise UsageError(f"--draws must be at least 1, got {num_draws}.")


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
