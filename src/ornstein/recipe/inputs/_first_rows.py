"""Data with some rows alone: the first, but of test rows by class some of each."""

import dataclasses

import numpy as np

from ..._sentence import Option, OptionError
from ..._types import Int
from ...data import Data, Split


def first_rows(data: Data, num_train: int | None, num_test: int | None) -> Data:
    """The same data with fewer rows, standardised by the training rows that are left.

    Args:
        data: any; its validation rows stay.
        num_train: of the training rows, from the first; `None` for all.
        num_test: of the test rows, from the first; `None` for all. Of rows that are
            sorted by class, as those of a folder are, every so many is taken instead:
            as many of each class as it has.

    Raises:
        ValueError: for more rows than there are, none, or a class without any.
    """
    train = data.train
    if num_train is not None:
        assert isinstance(train, Split)
        _check_there(train, num_train, "train_rows", f"training rows {data.name}")
        train = train.rows(np.arange(num_train))
    test = data.test
    if num_test is not None:
        _check_there(test, num_test, "test_rows", f"test rows {data.name}")
        rows = _test_rows(data, num_test)
        names = [data.test_names[row] for row in rows] if data.test_names else []
        test = test.rows(rows)
        data = dataclasses.replace(data, test_names=tuple(names))
        if rows[-1] != num_test - 1:
            note = (
                f"The test is {num_test} of {len(data.test)} rows, evenly spread, as "
                "they are sorted by class."
            )
            data = dataclasses.replace(data, notes=[*data.notes, note])
    if num_train is None or not isinstance(train, Split):
        return dataclasses.replace(data, test=test)
    if data.num_classes is not None:
        _check_classes(data, train)
    return data.standardised_again(train, validation=data.validation, test=test)


def _check_there(split: Split, num_rows: int, option: str, what: str) -> None:
    if not 1 <= num_rows <= len(split):
        raise OptionError(
            "{} {} is not among the {} {} has: give a number from 1 to that, or leave "
            "it out.",
            Option(option),
            num_rows,
            len(split),
            what,
        )


def _test_rows(data: Data, num_rows: int) -> Int[np.ndarray, " rows"]:
    """The first, or, of rows that are sorted by class, some of each."""
    first = np.arange(num_rows)
    if data.num_classes is None or np.any(np.diff(data.test.y) < 0):
        return first
    if data.test.y[0] == data.test.y[-1]:
        return first
    # Not drawn: the same at every call, whatever the seed.
    return (2 * first + 1) * len(data.test) // (2 * num_rows)


def _check_classes(data: Data, train: Split) -> None:
    present = np.unique(train.y)
    absent = np.setdiff1d(np.unique(data.train.in_memory().y), present)
    if absent.size:
        raise OptionError(
            "The first {} training rows of {} have no {!r}, perhaps because rows are "
            "sorted by class: give more {train_rows}, or shuffle the file.",
            len(train),
            data.name,
            data.class_names[absent[0]],
        )
