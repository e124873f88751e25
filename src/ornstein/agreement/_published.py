"""The predictive distribution of HMC on CIFAR-10 that Izmailov et al. published.

References:
    Izmailov, Vikram, Hoffman & Wilson (2021), "What Are Bayesian Neural Network
    Posteriors Really Like?". HMC saw lossless images; copies of CIFAR-10 in JPEG are
    not quite its rows.
"""

import os
from pathlib import Path

import numpy as np

from .._files import UnreadableError, read_npz
from .._types import Float, Int
from ..data import DataError, DataNotFoundError

_FILE = "hmc/cifar10.npz"
_NUM_CLASSES = 10
_LEAST_ACCURACY = 0.8
"""The reference is right on nine rows of ten; on rows of other labels, on one."""


def cifar10_rows(
    labels: Int[np.ndarray, " test_rows"],
) -> tuple[Int[np.ndarray, " rows"], Float[np.ndarray, "rows classes"]]:
    """Which test rows the published probabilities are of, and the probabilities.

    Args:
        labels: of all test rows, in the order of the data.

    Raises:
        DataNotFoundError: if the file is not there.
        DataError: for another file, or probabilities of other rows.
    """
    folder = os.environ.get("ORNSTEIN_DATA")
    path = Path(folder or ".") / _FILE
    if not path.is_file():
        raise DataNotFoundError(
            f"The reference {path} is not there: put an .npz file with `rows` (numbers "
            "of CIFAR-10's test rows) and `probs` (rows, 10) into the folder that "
            "ORNSTEIN_DATA names."
        )
    try:
        arrays = read_npz(path, ("rows", "probs")).arrays
        rows, probs = arrays["rows"], arrays["probs"]
    except (UnreadableError, KeyError) as error:
        raise DataError(
            f"{path} is no reference: it needs arrays `rows` and `probs` ({error})."
        ) from error
    _check(path, rows, probs, len(labels))
    probs = probs.astype(np.float64)
    accuracy = np.mean(probs.argmax(axis=1) == labels[rows])
    if accuracy < _LEAST_ACCURACY:
        raise DataError(
            f"{path} is of other rows, or of rows in another order: its top classes "
            f"are right for {accuracy:.0%} of these labels, and HMC's for 91 %; give "
            "the test rows in the order of the published data."
        )
    return rows, probs


def _check(path: Path, rows: np.ndarray, probs: np.ndarray, num_test: int) -> None:
    is_number = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
    if not is_number or rows.size == 0 or rows.min() < 0 or rows.max() >= num_test:
        raise DataError(
            f"`rows` of {path} must be numbers of test rows, from 0 to {num_test - 1}: "
            f"got {rows.dtype}{list(rows.shape)}."
        )
    if len(np.unique(rows)) < len(rows):
        raise DataError(f"`rows` of {path} has a row twice: give each once.")
    shape = (len(rows), _NUM_CLASSES)
    if probs.shape != shape or not np.allclose(probs.sum(axis=1), 1, atol=1e-3):
        raise DataError(
            f"`probs` of {path} must be {shape[0]} by {shape[1]} probabilities, whose "
            f"rows sum to 1: got {probs.dtype}{list(probs.shape)}."
        )
