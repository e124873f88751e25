"""Which files of a folder hold its rows."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..._sentence import Sentence
from .._error import DataError, DataNotFoundError
from ..images import SUFFIXES, class_folders

KINDS = (".parquet", ".npz")
_OTHERS = (".csv", ".tsv", ".jsonl", ".arrow", ".h5", ".hdf5", ".npy")
_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)-of-(?P<count>\d+)$")
_MOST_SAID = 3


def shard_files(path: Path) -> list[Path]:
    """The files of rows in a folder, at any depth, sorted; or the file itself.

    Args:
        path: of the folder or the file.

    Raises:
        DataNotFoundError: if nothing is there, or numbered shards are missing.
        DataError: for a folder without any, with several kinds, or with two sets.
    """
    if not path.exists():
        raise DataNotFoundError(f"There is no file or folder {path}: check the path.")
    if not path.is_dir():
        if path.suffix.lower() in KINDS:
            return [path]
        raise DataError(
            Sentence(
                "{} cannot be read with {stream}: give a .parquet or .npz file, a "
                "folder of one of these kinds, or one of images by class.",
                path,
            )
        )
    seen = sorted(p for p in path.rglob("*") if p.is_file() and _is_seen(p, path))
    kinds = sorted({p.suffix.lower() for p in seen} & {*KINDS, *_OTHERS})
    if len(kinds) > 1:
        raise DataError(
            f"{path} has files of several kinds ({', '.join(kinds)}): leave one kind "
            "in it, of .parquet or .npz."
        )
    if not kinds or kinds[0] not in KINDS:
        what = f"{kinds[0]} files" if kinds else f"{len(seen)} files, none of them rows"
        raise DataError(
            Sentence(
                "{} has {}: {stream} reads folders of .parquet files, of .npz files "
                "with x and y, or of images with a sub-folder for each class.",
                path,
                what,
            )
        )
    found = [p for p in seen if p.suffix.lower() == kinds[0]]
    _check_numbers(found, path)
    return found


def kind_of_folder(path: Path) -> str | None:
    """`.parquet`, `.npz` or `.csv` of a folder that has such files, and no image.

    Args:
        path: which may be no folder.

    Returns:
        The kind, which may be one that is not read (`.csv`); `None` of images, of files
        that are no rows, and of what is no folder.
    """
    if not path.is_dir():
        return None
    files = (p for p in path.rglob("*") if p.is_file() and _is_seen(p, path))
    first = None
    for suffix in (p.suffix.lower() for p in files):
        if suffix in SUFFIXES:
            return None
        if first not in KINDS and suffix in (KINDS if first else (*KINDS, *_OTHERS)):
            first = suffix
    return first


def is_image_folder(path: Path) -> bool:
    """Whether a folder is of images: it has some, or sub-folders, and no rows.

    Args:
        path: which may be no folder.

    Raises:
        DataError: for one that has images and rows.
    """
    if not path.is_dir():
        return False
    kinds: dict[str, str] = {}
    for parent, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        seen = (name for name in files if not name.startswith((".", "_")))
        for name in seen:
            kinds.setdefault(os.path.splitext(name)[1].lower(), f"{parent}/{name}")
    rows = next((kinds[kind] for kind in KINDS if kind in kinds), None)
    image = next((kinds[kind] for kind in SUFFIXES if kind in kinds), None)
    if rows is not None and image is not None:
        raise DataError(
            f"{path} has images, such as {image}, and rows, such as {rows}: take away "
            "what is not to be learned from."
        )
    if rows is not None:
        return False
    is_other = any(kind in kinds for kind in _OTHERS)
    return image is not None or (not is_other and class_folders(path) != [])


def _is_seen(file: Path, folder: Path) -> bool:
    """Not what other programs leave beside shards, such as `_SUCCESS` or `.crc`."""
    return not any(p.startswith((".", "_")) for p in file.relative_to(folder).parts)


def _check_numbers(files: Sequence[Path], folder: Path) -> None:
    """Refuse shards `name-00003-of-00010` of which some are missing, or of two sets."""
    numbers: dict[tuple[Path, str, str], set[int]] = {}
    for file in files:
        found = _NUMBERED.fullmatch(file.stem)
        if found is not None:
            named = (file.parent, found["stem"], found["count"])
            numbers.setdefault(named, set()).add(int(found["number"]))
    sets: dict[tuple[Path, str], str] = {}
    for parent, stem, count in numbers:
        other = sets.setdefault((parent, stem), count)
        if other != count:
            raise DataError(
                f"{parent} has two sets of shards, {stem}…-of-{other} and "
                f"{stem}…-of-{count}, whose rows may be the same: move one elsewhere, "
                "or rename it if its rows are others."
            )
    for (parent, stem, count), there in numbers.items():
        first = 0 if 0 in there else 1
        absent = sorted(set(range(first, first + int(count))) - there)
        if not absent:
            continue
        suffix, width = files[0].suffix, len(count)
        names = [f"{stem}{n:0{width}d}-of-{count}{suffix}" for n in absent]
        more = f" and {len(names) - _MOST_SAID} more" if len(names) > _MOST_SAID else ""
        raise DataNotFoundError(
            f"{parent} has {len(there)} of {int(count)} shards; "
            f"{', '.join(names[:_MOST_SAID])}{more} "
            f"{'is' if len(names) == 1 else 'are'} missing: copy them there, or "
            f"rename the others if {folder} is to be learned from without them."
        )
