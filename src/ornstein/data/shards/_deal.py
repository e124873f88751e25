"""Which rows of files are not trained on."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from .._error import DataError

MOST_HELD = 10_000
"""Rows of a test, or a validation, that are drawn from files and kept in memory."""


class Dealt(NamedTuple):
    """Row numbers over all files, in their order.

    Attributes:
        test: held out for the test.
        validation: held out for choosing.
        sample: training rows that are also kept in memory.
    """

    test: Int[np.ndarray, " test"]
    validation: Int[np.ndarray, " validation"]
    sample: Int[np.ndarray, " sample"]

    def kept(self, first: int, num_rows: int) -> Bool[np.ndarray, " rows"]:
        """Which rows of a block are trained on.

        Args:
            first: the number of its first row.
            num_rows: in it.
        """
        found = np.ones(num_rows, bool)
        for held in (self.test, self.validation):
            found[inside(held, first, num_rows)] = False
        return found


def deal(
    num_rows: int,
    *,
    test_fraction: float,
    validation_fraction: float,
    seed: int,
    most: int = MOST_HELD,
) -> Dealt:
    """Draw rows without replacement: the same of the same number of rows.

    Args:
        num_rows: in all files.
        test_fraction: of the rows; 0 where another file has the test.
        validation_fraction: of the others.
        seed: decides which.
        most: rows of the test, of the validation and of the sample.

    Raises:
        DataError: for fractions that leave nothing.
    """
    for fraction in (test_fraction, validation_fraction):
        if not 0 <= fraction < 1:
            raise DataError(
                f"The fraction of rows to hold out must lie between 0 and 1, got "
                f"{fraction}: 0.1 is usual for validation and 0.2 for a test."
            )
    num_test = min(int(np.ceil(test_fraction * num_rows)), most)
    left = num_rows - num_test
    num_held = min(int(np.ceil(validation_fraction * left)), most)
    left -= num_held
    if left < 1:
        raise DataError(
            f"There is no holding out {num_test + num_held} of {num_rows} rows and "
            "keeping one: give more rows or smaller fractions."
        )
    sizes = [num_test, num_held, min(left, most)]
    drawn = np.random.default_rng(seed).choice(num_rows, sum(sizes), replace=False)
    parts = np.split(drawn, np.cumsum(sizes)[:-1])
    return Dealt(*(np.sort(part) for part in parts))


def inside(
    rows: Int[np.ndarray, " some"], first: int, num_rows: int
) -> Int[np.ndarray, " own"]:
    """Those of some sorted row numbers that are in a block, counted from its first.

    Args:
        rows: over all files.
        first: the number of the block's first row.
        num_rows: in it.
    """
    low, high = np.searchsorted(rows, (first, first + num_rows))
    return rows[low:high] - first


def digest_of(
    block_rows: Int[np.ndarray, " blocks"], left_out: Int[np.ndarray, " others"]
) -> str:
    """Of how many rows blocks have and which are held out, not of what rows say."""
    found = hashlib.sha256(np.ascontiguousarray(block_rows).tobytes())
    found.update(np.ascontiguousarray(left_out).tobytes())
    return found.hexdigest()


def digest_of_names(names: Sequence[str]) -> str:
    """Of which files are trained on, each a row, not of what they say.

    Args:
        names: of the files, in their order.
    """
    return hashlib.sha256("\0".join(names).encode()).hexdigest()
