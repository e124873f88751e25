"""The published CIFAR-10-C, where the user has its files."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, Shaped

from ..._files import UnreadableError, check_npy
from .._error import DataError
from ..images import Images
from ._base import SEVERITIES

FOLDERS = ("cifar10_c", "CIFAR-10-C")
"""Names under `data_dir` that are looked for."""

ROWS = 10_000
"""Images of each severity, in the order of CIFAR-10's test images."""

SOURCE = "zenodo.org/records/2535967"


@dataclasses.dataclass(frozen=True)
class PublishedCorruptions:
    """CIFAR-10-C from its `.npy` files, of which no more is read than is asked for.

    Hendrycks & Dietterich (2019). The five severities of a corruption are one after the
    other in its file.

    Attributes:
        folder: with the files.
        num_rows: how many of the first images of each severity.
    """

    folder: Path
    num_rows: int
    generated = False

    @property
    def note(self) -> str:
        """What to print beside figures from these images."""
        return "Corrupted images are CIFAR-10-C's own, from its published files."

    def check(self, corruptions: Sequence[str], labels: Int[np.ndarray, " rows"]):
        """Refuse files that are missing, damaged, or of other images.

        Args:
            corruptions: that will be asked for.
            labels: of the test rows, the first `num_rows` of them.

        Raises:
            DataError: says which and why.
        """
        names = [*corruptions, "labels"]
        missing = [name for name in names if not self._path(name).is_file()]
        if missing:
            raise DataError(
                f"{self.folder} has no {'.npy, '.join(missing)}.npy: copy all files of "
                f"CIFAR-10-C ({SOURCE}) there, or take the folder away to have "
                "corruptions generated."
            )
        total = ROWS * len(SEVERITIES)
        theirs = self._open("labels", (total,)).reshape(-1, ROWS)
        if len(labels) > ROWS or np.any(theirs[:, : len(labels)] != labels):
            raise DataError(
                f"{self._path('labels')} has other classes than the test rows: give "
                "the test rows of CIFAR-10 in the order they were published in."
            )
        for name in corruptions:
            self._open(name, (total, 32, 32, 3))

    def images(self, corruption: str, severity: int) -> Images:
        """The first rows under a corruption."""
        start = ROWS * (severity - 1)
        all_rows = self._open(corruption, (ROWS * len(SEVERITIES), 32, 32, 3))
        return np.array(all_rows[start : start + self.num_rows])

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def _open(self, name: str, shape: tuple[int, ...]) -> Shaped[np.ndarray, "..."]:
        path = self._path(name)
        try:
            check_npy(path)
        except UnreadableError as error:
            raise DataError(
                f"{path} ({path.stat().st_size:,} bytes) cannot be read as a NumPy "
                f"array: {error}; copy it again from {SOURCE}."
            ) from error
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        dtypes = (np.uint8,) if len(shape) > 1 else (np.uint8, np.int64)
        if found.shape != shape or found.dtype not in dtypes:
            raise DataError(
                f"{path} has shape {found.shape} and type {found.dtype}, where "
                f"CIFAR-10-C has {shape} and uint8: copy it again from {SOURCE}."
            )
        return found


def find_published(data_dir: Path | None) -> Path | None:
    """The folder of CIFAR-10-C below `data_dir`, if there is one."""
    if data_dir is None:
        return None
    folders = [data_dir / name for name in FOLDERS]
    return next((folder for folder in folders if folder.is_dir()), None)
