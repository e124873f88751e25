"""A run is a folder."""

import contextlib
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx

from ..._files import LOCK, UnreadableError, lock_folder, read_json, write_atomically


class RunFolder(eqx.Module):
    """A folder with all that a run reads and writes.

    `config.json`, `metrics.jsonl`, `checkpoints/`, `events/`, `figures/`, and once it
    is done `result.json`.

    Make one with `RunFolder.create`, or look at one with `RunFolder.open`.

    Attributes:
        path: of the folder.
    """

    path: Path

    @classmethod
    def create(
        cls, path: str | Path, config: dict[str, Any], *, overwrite: bool = False
    ) -> "RunFolder":
        """Make the folder and write the configuration.

        Args:
            path: of the folder; its parents are made too.
            config: everything that decides the run, as JSON.
            overwrite: replace a run that is there already. It is kept beside the new
                one, in the last of `replaced`, until the new one is `complete`.

        Raises:
            FileExistsError: if something is there already.
            BlockingIOError: if another process is at work there.
        """
        with creating(Path(path), config, overwrite=overwrite) as run:
            return run

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """A run that exists.

        Raises:
            FileNotFoundError: if there is no run there.
        """
        path = Path(path)
        put_back(path)
        if not (path / "config.json").is_file():
            raise FileNotFoundError(
                f"{path} is not a run: it has no config.json. Give the folder that "
                f"`ornstein train` or `sample` wrote{_kept(path)}."
            )
        return cls(path)

    @property
    def config(self) -> dict[str, Any]:
        """What decided the run.

        Raises:
            ValueError: if the file is damaged.
        """
        return _read_object(self.path / "config.json", "train the run again")

    @property
    def metrics(self) -> Path:
        """The file with one line of JSON for each epoch."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def events(self) -> Path:
        """The folder of TensorBoard's events."""
        return self.path / "events"

    @property
    def figures(self) -> Path:
        """The folder of figures."""
        return self.path / "figures"

    @property
    def resuming(self) -> str:
        """The command that goes on with the run, as sentences quote it."""
        try:
            command = "sample" if "sampling" in self.config else "train"
        except ValueError:  # damaged, as that command will say
            command = "train"
        return f"`ornstein {command} --resume {shlex.quote(str(self.path))}`"

    @property
    def replaced(self) -> list[Path]:
        """The runs that this one replaces and that are kept until it is complete.

        Oldest first: of a run that was replaced before it was complete there are
        several.
        """
        return _asides(self.path)

    def restore(self) -> None:
        """Give the folder back to the run that was there last, if there was one."""
        shutil.rmtree(self.path.resolve(), ignore_errors=True)
        put_back(self.path)

    def complete(self) -> None:
        """Say that the run has all that it is for: those that it replaces go."""
        for aside in reversed(self.replaced):
            shutil.rmtree(aside)

    def write_result(self, result: dict[str, Any]) -> Path:
        """Write `result.json`, whole or not at all, and say where; see `complete`."""
        path = self.path / "result.json"
        write_atomically(path, json.dumps(result, indent=2).encode())
        self.complete()
        return path

    def read_result(self) -> dict[str, Any]:
        """What `write_result` wrote.

        Raises:
            FileNotFoundError: if the run has no result yet.
            ValueError: if the file is damaged.
        """
        path = self.path / "result.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{self.path} has no result.json yet: finish the run with "
                f"{self.resuming} (or, if its training has ended, judge it with "
                "`ornstein evaluate`)."
            )
        return _read_object(path, "judge the run again with `ornstein evaluate`")


@contextlib.contextmanager
def creating(
    path: Path, config: dict[str, Any], *, overwrite: bool
) -> Iterator[RunFolder]:
    """As `RunFolder.create`, and no other process may work in it meanwhile.

    A folder that cannot be made whole is left as it was.
    """
    text = json.dumps(config, indent=2)  # before anything is moved
    put_back(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file: choose another folder.")
    path.mkdir(parents=True, exist_ok=True)
    _refuse_used(path, overwrite=overwrite)  # before a lock is left in it
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock_folder(path))
        _refuse_used(path, overwrite=overwrite)
        run, place = RunFolder(path), path.resolve()  # a link stays where it is
        is_moved = not is_unused(place)
        if is_moved:
            place.rename(_aside(path, len(_asides(path)) + 1))
            try:
                place.mkdir()
            except BaseException:  # what is there is not ours to remove
                put_back(path)
                raise
        try:
            if is_moved:
                stack.enter_context(lock_folder(path))
            write_atomically(path / "config.json", text.encode())
            for folder in ("checkpoints", "events", "figures"):
                (path / folder).mkdir()
        except BlockingIOError:  # what is there is of a process that was faster
            raise
        except BaseException:
            run.restore()
            raise
        yield run


def _read_object(path: Path, remedy: str) -> dict[str, Any]:
    try:
        content = read_json(path)
    except UnreadableError as error:
        raise ValueError(
            f"{path} is truncated or damaged ({error}): {remedy}."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object: {remedy}.")
    return content


def _refuse_used(path: Path, *, overwrite: bool) -> None:
    is_run, is_new = (path / "config.json").exists(), is_unused(path)
    is_free = is_new and not _asides(path)
    if not (is_free or (overwrite and (is_run or is_new))):
        raise FileExistsError(
            f"{path} exists{' and is a run' if is_run else ''}: resume it, "
            f"choose another folder, or (for a run) overwrite it{_kept(path)}."
        )
    if not is_new and Path.cwd().is_relative_to(path.resolve()):
        raise FileExistsError(
            f"{path} is, or has, the current folder, which cannot be replaced: change "
            "to another one first."
        )


def is_unused(path: Path) -> bool:
    """Whether a folder has nothing, but for what a killed process had just begun."""
    return all(
        file.name == LOCK or file.name.startswith(".config.json.")
        for file in path.iterdir()
    )


def _kept(path: Path) -> str:
    """Where the run is that was to be replaced, for a sentence."""
    return "".join(f"; {old} is the run that was there" for old in _asides(path)[-1:])


def _aside(path: Path, number: int) -> Path:
    place = path.resolve()  # that of `.`, or of a link, has a name
    return place.with_name(f".{place.name}.replaced-{number}")


def _asides(path: Path) -> list[Path]:
    """What was at a path before, oldest first."""
    found, number = [], 1
    while (aside := _aside(path, number)).exists():
        found.append(aside)
        number += 1
    return found


def put_back(path: Path) -> bool:
    """The last run, where a process ended between moving it and making the next.

    Returns:
        whether there was one.
    """
    asides = _asides(path)
    is_lost = bool(asides) and not path.exists()
    if is_lost:
        asides[-1].rename(path.resolve())
    return is_lost
