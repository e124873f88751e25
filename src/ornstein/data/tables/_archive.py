"""The user's own arrays: `.npz` with x and y."""

from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from ..._files import UnreadableError, read_npz
from .._assemble import split_and_assemble
from .._base import Data
from .._error import DataError, DataNotFoundError
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
    if not path.exists():
        raise DataNotFoundError(f"There is no file {path}: check the path.")
    try:
        there, arrays = read_npz(path, {name})
    except UnreadableError as error:
        raise DataError(
            f"{path} ({path.stat().st_size:,} bytes) cannot be read as .npz: {error}; "
            "write it again with numpy.savez(path, x=..., y=...)."
        ) from error
    if name not in arrays:
        raise DataError(
            f"{path} has no array {name!r}, only {', '.join(there)}: write it with "
            "numpy.savez(path, x=..., y=...)."
        )
    values = arrays[name]
    if values.dtype.kind not in "biufU":
        raise DataError(
            f"{path}: {name} has type {values.dtype}; give numbers or text."
        )
    return values
