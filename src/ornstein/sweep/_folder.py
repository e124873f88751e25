"""The folder of a sweep: what it is of, its runs, their logs, and the table."""

import contextlib
import dataclasses
import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .._files import UnreadableError, lock_folder, read_json, write_atomically
from .._sentence import OptionError
from .._version import __version__
from ._grid import Cell, Grid
from ._job import ended_well

_PLAN = "sweep.json"


@dataclasses.dataclass(frozen=True)
class SweepFolder:
    """A folder with `sweep.json`, `runs/`, `logs/`, `table.csv` and `table.json`.

    Attributes:
        path: of the folder.
        words: the command of one run, without the options of the grid.
        grid: what varies.
        working: the folder that relative paths of the command are from.
    """

    path: Path
    words: tuple[str, ...]
    grid: Grid
    working: Path

    @staticmethod
    def is_at(path: Path) -> bool:
        """Whether a folder is a sweep's."""
        return (path / _PLAN).is_file()

    @classmethod
    def open(cls, path: str | Path) -> "SweepFolder":
        """A sweep that exists.

        Args:
            path: of the folder.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if its `sweep.json` is damaged.
        """
        path = Path(path)
        file = path / _PLAN
        if not file.is_file():
            raise FileNotFoundError(
                f"{path} is not a sweep: it has no {_PLAN}. Give the folder that "
                "`ornstein sweep` wrote."
            )
        try:
            found = read_json(file)
            values = {name: tuple(v) for name, v in found["grid"].items()}
            words = tuple(found["command"])
            working = Path(found.get("working", Path.cwd()))
            texts = [
                *words,
                *values,
                *(v for listed in values.values() for v in listed),
            ]
            if not words or not values or not all(type(t) is str for t in texts):
                raise TypeError("a text is missing, or no text")
        except (UnreadableError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{file} is damaged: put it back, or begin the sweep again in another "
                "folder."
            ) from error
        return cls(path, words, Grid(values), working)

    @property
    def cells(self) -> list[Cell]:
        """What its runs are, in order."""
        return list(self.grid)

    @property
    def has_begun(self) -> bool:
        """Whether any of its runs has a folder, or had one and a good end."""
        runs = self.path / "runs"
        if runs.is_dir() and any(runs.iterdir()):
            return True
        return any(ended_well(self.end(cell)) for cell in self.cells)

    def run(self, cell: Cell) -> Path:
        """The folder of a run."""
        return self.path / "runs" / cell.name

    def log(self, cell: Cell) -> Path:
        """The file to which a run writes what it says."""
        return self.path / "logs" / f"{cell.name}.txt"

    def end(self, cell: Cell) -> Path:
        """The file that says how the last call of a run ended."""
        return self.path / "logs" / f"{cell.name}.json"


@contextlib.contextmanager
def at_work(
    path: Path, words: Sequence[str], grid: Grid | None, command: str
) -> Iterator[SweepFolder]:
    """A sweep, new or gone on with, in which no other sweep is at work.

    One that is there goes on if the command is the same, and the grid has all that it
    had: further values of the same options are added. One of which no run has begun
    may be of anything: what stands there is replaced.

    Args:
        path: of the folder.
        words: the command of one run; empty to go on with a sweep as it is.
        grid: what varies; `None` to go on with a sweep as it is.
        command: as it was typed.

    Raises:
        FileExistsError: for a folder of something else.
        ValueError: for a sweep of something else.
        BlockingIOError: if another process is at work there.
    """
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file: choose a folder.")
    is_there = (path / _PLAN).exists()
    has_files = path.exists() and any(
        not f.name.startswith(".") for f in path.iterdir()
    )
    if has_files and not is_there:
        raise FileExistsError(
            f"{path} has files, and is not a sweep: choose another folder."
        )
    if not is_there and (not words or grid is None):
        raise FileNotFoundError(
            f"{path} is not a sweep to go on with: give what varies and, after `--`, "
            "the command of one run."
        )
    path.mkdir(parents=True, exist_ok=True)
    with lock_folder(path):
        if (path / _PLAN).exists():
            there = SweepFolder.open(path)
            sweep = _gone_on_with(there, words, grid)
            if sweep.words != there.words:
                _forget(there)
        else:
            assert grid is not None
            sweep = SweepFolder(path, tuple(words), grid, Path.cwd())
        values = sweep.grid.values
        content: dict[str, Any] = {
            "command": list(sweep.words),
            "grid": {name: list(listed) for name, listed in values.items()},
            "working": str(sweep.working),
            "version": __version__,
            "call": command,
        }
        write_atomically(path / _PLAN, json.dumps(content, indent=2).encode())
        for name in ("runs", "logs"):
            (path / name).mkdir(exist_ok=True)
        yield sweep


def _gone_on_with(
    there: SweepFolder, words: Sequence[str], grid: Grid | None
) -> SweepFolder:
    """What a call makes of a sweep that is there."""
    if grid is not None and not there.has_begun:
        return SweepFolder(there.path, tuple(words), grid, Path.cwd())
    _check_same(there, words)
    return dataclasses.replace(there, grid=_extended(there, grid))


def _forget(there: SweepFolder) -> None:
    """Remove what runs said that came to nothing."""
    for cell in there.cells:
        there.log(cell).unlink(missing_ok=True)
        there.end(cell).unlink(missing_ok=True)


def _check_same(there: SweepFolder, words: Sequence[str]) -> None:
    if words and tuple(words) != there.words:
        raise ValueError(
            f"{there.path} is a sweep of `{shlex.join(there.words)}`, not of "
            f"`{shlex.join(words)}`: choose another folder."
        )


def _extended(there: SweepFolder, grid: Grid | None) -> Grid:
    if grid is None:
        return there.grid
    extended = there.grid.extended(grid)
    if extended is None:
        own = " and ".join(
            f"{name}={','.join(values)}" for name, values in there.grid.values.items()
        )
        raise OptionError(
            "{} is a sweep over {}, and {over} lacks some of it: give all of it and "
            "further values, or another folder.",
            there.path,
            own,
        )
    return extended
