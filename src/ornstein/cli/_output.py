"""Files that commands write: never over what they read, or over a run's own."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..data import expanded
from ..recipe import Recipe

_OWN_FILES = {
    "audit.json",
    "calls.json",
    "config.json",
    "data.json",
    "evaluation.json",
    "metrics.jsonl",
    "pruning.json",
    "report.html",
    "result.json",
    "test_rows.npz",
    "tuning.json",
}
_OWN_FOLDERS = {"audit", "checkpoints", "evaluations", "events", "figures"}
_CLOSED_FOLDERS = {"checkpoints", "events"}  # where a run looks for files by itself


def check_outputs(
    outputs: Mapping[str, Path],
    *,
    inputs: Iterable[Path],
    run: Path | None,
    overwrite: bool,
) -> None:
    """Refuse files to write before any work is done for them.

    Links are followed, and hard links known for what they are.

    Args:
        outputs: by option, such as `--output`.
        inputs: files and folders that the command reads.
        run: the run folder that it reads, if it reads one.
        overwrite: whether other files may be replaced.

    Raises:
        FileExistsError: for a file that is an input, a run's own, another output, or
            there without `overwrite`.
        FileNotFoundError: for a folder that is not there.
        ValueError: for what is no file.
    """
    written: dict[str, Path] = {}
    for option, path in outputs.items():
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {path.parent} to write to: make it first."
            )
        if path.is_dir():
            raise ValueError(f"{option} {path} is a folder: give a file.")
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(
                f"{option} {path} is no regular file that could be written: choose "
                "another name."
            )
        _check_own(option, path, run)
        for source in inputs:
            if _is_or_has(source, path):
                raise FileExistsError(
                    f"{option} {path} would replace the input {source}: choose another "
                    "file."
                )
        for other, there in written.items():
            if there.resolve() == path.resolve() or _is_same(there, path):
                raise FileExistsError(
                    f"{option} {path} and {other} {there} are one file: choose two."
                )
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{option} {path} exists: replace it with --overwrite, or choose "
                "another file."
            )
        written[option] = path


def check_replaced(folder: Path, inputs: Iterable[Path]) -> None:
    """Refuse a run folder to replace that has what the new run reads.

    Args:
        folder: given as --out.
        inputs: files and folders that the run reads.

    Raises:
        FileExistsError: says which.
    """
    for source in inputs:
        if folder.exists() and source.resolve().is_relative_to(folder.resolve()):
            raise FileExistsError(
                f"--out {folder} has the input {source}, which replacing the folder "
                "would delete: choose another folder."
            )


def check_outside(folder: Path, data: str) -> None:
    """Refuse a run folder inside a folder of images, of which it would be a class.

    Args:
        folder: given as --out.
        data: given as --data.

    Raises:
        FileExistsError: says so.
    """
    source = expanded(data)
    if source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
        raise FileExistsError(
            f"--out {folder} lies in the input {source}, where it would be taken for "
            "data: choose a folder outside."
        )


def inputs_of(recipe: Recipe) -> list[Path]:
    """The files and folders that a recipe reads, of those that are there."""
    data_dir = recipe.data.data_dir or os.environ.get("ORNSTEIN_DATA")
    names = (recipe.data.data, recipe.data.test, data_dir, recipe.network.pretrained)
    paths = [expanded(name) for name in names if name]
    return [path for path in paths if path.exists()]


def _check_own(option: str, path: Path, run: Path | None) -> None:
    """Refuse the files that a run keeps, by place and by identity."""
    place = path.resolve()
    runs = [folder for folder in place.parents if (folder / "config.json").is_file()]
    for folder in runs:
        inside = place.relative_to(folder).parts
        is_kept = path.exists() and inside[0] in _OWN_FILES | _OWN_FOLDERS
        if is_kept or inside[0] in _CLOSED_FOLDERS:
            raise _own(option, path, folder)
    if run is None or not path.exists():
        return
    kept = [run / name for name in _OWN_FILES]
    kept += [file for name in _OWN_FOLDERS for file in (run / name).rglob("*")]
    if any(_is_same(file, path) for file in kept):
        raise _own(option, path, run)


def _own(option: str, path: Path, run: Path) -> FileExistsError:
    return FileExistsError(
        f"{option} {path} is where the run {run} keeps its own files: choose another "
        "file."
    )


def _is_or_has(source: Path, path: Path) -> bool:
    """Whether a file to write is an input, or a file in one that is a folder."""
    if source.is_dir():
        return path.exists() and path.resolve().is_relative_to(source.resolve())
    return _is_same(source, path)


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
