"""Test images under the corruptions of CIFAR-10-C: the published ones, or our own."""

import dataclasses
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from ..._files import UnreadableError, check_npy
from .._base import Data
from .._error import DataError
from ..images import ByteScale, Images
from ._cifar_c import PublishedCorruptions, find_published
from ._registry import CORRUPTIONS, check_corruption, corrupt

_VERSION = 1  # of what is generated: raise it whenever a corruption gives other images


@runtime_checkable
class CorruptedImages(Protocol):
    """The first test images of a data set under every corruption."""

    @property
    def generated(self) -> bool:
        """Whether they are ours rather than the published ones."""
        ...

    @property
    def note(self) -> str:
        """What to print beside figures from these images."""
        ...

    @property
    def folder(self) -> Path:
        """Where they lie, or will."""
        ...

    def images(self, corruption: str, severity: int) -> Images:
        """One of `CORRUPTIONS` at one of `SEVERITIES`."""
        ...


@dataclasses.dataclass(frozen=True)
class GeneratedCorruptions:
    """Made from clean images with the constants of CIFAR-10-C, and kept in files.

    Attributes:
        clean: what to corrupt.
        folder: of the files, for these images alone; a damaged one is made again.
        seed: of the corruptions.
    """

    clean: Images
    folder: Path
    seed: int
    generated = True

    @property
    def note(self) -> str:
        """What to print beside figures from these images."""
        return (
            "Corruptions were generated with CIFAR-10-C's constants, frost without its "
            "photographs: they are not the published files."
        )

    def images(self, corruption: str, severity: int) -> Images:
        """Read or, the first time, made and written."""
        path = self.folder / f"{corruption}-{severity}-seed{self.seed}.npy"
        try:
            check_npy(path)
            found = np.load(path, allow_pickle=False)
        except (FileNotFoundError, UnreadableError):
            found = None
        if (
            found is not None
            and found.shape == self.clean.shape
            and found.dtype == np.uint8
        ):
            return found
        made = corrupt(self.clean, corruption, severity, seed=self.seed)
        _write(path, made)
        return made


def corrupted_images(
    data: Data,
    *,
    num_rows: int | None = None,
    corruptions: Sequence[str] = tuple(CORRUPTIONS),
    data_dir: str | Path | None = None,
    seed: int = 0,
) -> CorruptedImages:
    """The first test images under corruptions: CIFAR-10-C's files, or generated ones.

    Files are taken for `cifar10` where `data_dir` has a folder `cifar10_c` or
    `CIFAR-10-C`. Otherwise images are generated when they are first asked for, and kept
    below `XDG_CACHE_HOME` (`~/.cache`) in `ornstein/corruptions`.

    Args:
        data: of images.
        num_rows: how many of the first test images; all by default.
        corruptions: that will be asked for.
        data_dir: as of `load`.
        seed: of generated ones.

    Raises:
        DataError: for data without images, more rows than there are, an unknown
            corruption, or files of CIFAR-10-C that are missing or damaged.
    """
    for corruption in corruptions:
        check_corruption(corruption)
    scale = ByteScale.of(data)
    num_rows = len(data.test) if num_rows is None else num_rows
    if not 1 <= num_rows <= len(data.test):
        raise DataError(
            f"{num_rows} rows are not among the {len(data.test)} test rows of "
            f"{data.name}: give a number from 1 to that."
        )
    folder = data_dir or os.environ.get("ORNSTEIN_DATA") or None
    published = find_published(None if folder is None else Path(folder))
    if data.name == "cifar10" and published is not None:
        found = PublishedCorruptions(published, num_rows)
        found.check(corruptions, data.test.y[:num_rows])
        return found
    clean = scale.to_bytes(data.test.x[:num_rows])
    return GeneratedCorruptions(clean, _cache_folder(data.name, clean), seed)


def _cache_folder(name: str, clean: Images) -> Path:
    """By the images themselves, since a name may come to stand for others."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise DataError(
            "There is no home folder to keep corrupted images in: set XDG_CACHE_HOME "
            "to a folder."
        ) from None
    digest = hashlib.sha256(clean.tobytes() + repr(clean.shape).encode()).hexdigest()
    short = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem)
    images = f"{short}-{len(clean)}-{digest[:16]}"
    return root / "ornstein" / "corruptions" / f"v{_VERSION}" / images


def _write(path: Path, images: Images) -> None:
    """Whole or not at all, whenever the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.save(file, images)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
