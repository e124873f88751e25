"""New inputs for a fitted model, in the units of its training data."""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from .._files import UnreadableError, check_regular
from ._assemble import check_inputs, standardised
from ._base import Data
from ._error import DataError, DataNotFoundError
from ._standardise import Standardisation
from .images import SUFFIXES, images_below, read_images
from .tables import numeric_columns, read_array, read_table


def read_inputs(path: str | Path, data: Data) -> Float[np.ndarray, "rows ..."]:
    """Read inputs alone, and standardise them as `data` was.

    Args:
        path: a `.csv` or `.parquet` file with the columns that `data` has (in any
            order, targets may be there or not); an `.npz` file with x; an image, or a
            folder of images (taken in the order of their paths).
        data: what the model was trained on.

    Returns:
        Inputs like `data.train.x`.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    path = Path(path).expanduser()
    suffix = path.suffix.lower()
    if path.exists() and not path.is_dir():
        _check_regular(path)
    if suffix in (".csv", ".parquet"):
        table = read_table(path)
        raw = numeric_columns(table, data.feature_names or table.column_names, path)
    elif suffix == ".npz":
        raw = read_array(path, "x")
    elif suffix in SUFFIXES and path.exists() and not path.is_dir():
        raw = read_images([path], _channels(path, data))
    elif path.is_dir():
        raw = read_images(images_below(path), _channels(path, data))
    elif not path.exists():
        raise DataNotFoundError(f"There is no {path}: check the path.")
    else:
        raise DataError(
            f"{path} is of no kind that can be read: give .csv, .parquet, .npz, or "
            "images."
        )
    check_inputs(raw, str(path), data.feature_names)
    if raw.shape[1:] != data.example_shape:
        raise DataError(
            f"{path} has examples of shape {raw.shape[1:]} and the model learned from "
            f"shape {data.example_shape}: give inputs like those of {data.name}."
        )
    scaling = data.x_scaling or Standardisation(np.zeros(()), np.ones(()))
    return standardised(scaling, raw, f"{path}: x", data.feature_names)


def _check_regular(path: Path) -> None:
    try:
        check_regular(path)
    except UnreadableError as error:
        raise DataError(
            f"{path} cannot be read: {error}; write what it gives to a file first."
        ) from error


def _channels(path: Path, data: Data) -> int:
    if len(data.example_shape) != 3:
        raise DataError(
            f"{path} is images and the model learned from rows of "
            f"{data.example_shape[-1]} numbers: give a .csv, .parquet or .npz file."
        )
    return data.example_shape[-1]
