"""The user's own arrays: `.npz` with x and y."""

import zipfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from ._assemble import split_and_assemble
from ._base import Data
from ._error import DataError, DataNotFoundError
from ._targets import read_target


def archive(path: Path, *, task: str | None, test_fraction: float, seed: int) -> Data:
    """Learn y from x.

    Args:
        path: written by `numpy.savez(path, x=..., y=...)`.
        task: `"classification"` or `"regression"`, or `None` to see from y.
        test_fraction: of the rows, for the test.
        seed: decides which rows.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    x = read_array(path, "x")
    y = read_target(read_array(path, "y"), f"{path}: y", task)
    return split_and_assemble(
        str(path),
        x,
        y.y,
        test_fraction=test_fraction,
        seed=seed,
        class_names=y.class_names,
        notes=y.notes,
    )


def read_array(path: Path, name: str) -> Shaped[np.ndarray, "..."]:
    """One array of an `.npz` file; pickled ones are never loaded.

    Args:
        path: the file.
        name: of the array.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it has no such array, or is cut short or something else.
    """
    if not path.is_file():
        raise DataNotFoundError(f"There is no file {path}: check the path.")
    try:
        # Opened here, since NumPy leaves it open where it is no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            there = list(arrays)
            values = arrays[name] if name in there else None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} ({path.stat().st_size:,} bytes) cannot be read as .npz: it is cut "
            "short, something else, or has pickled objects; write it again with "
            "numpy.savez(path, x=..., y=...)."
        ) from error
    if values is None:
        raise DataError(
            f"{path} has no array {name!r}, only {', '.join(there)}: write it with "
            "numpy.savez(path, x=..., y=...)."
        )
    if values.dtype.kind not in "biufU":
        raise DataError(
            f"{path}: {name} has type {values.dtype}; give numbers or text."
        )
    return values
