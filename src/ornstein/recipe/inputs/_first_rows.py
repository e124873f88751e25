"""Data with the first rows alone."""

import dataclasses

import numpy as np

from ..._sentence import Option, OptionError
from ...data import Data, Split


def first_rows(data: Data, num_train: int | None, num_test: int | None) -> Data:
    """The same data with fewer rows, standardised by the training rows that are left.

    Args:
        data: any; its validation rows stay.
        num_train: of the training rows, from the first; `None` for all.
        num_test: of the test rows, from the first; `None` for all.

    Raises:
        ValueError: for more rows than there are, none, or a class without any.
    """
    train = data.train
    if num_train is not None:
        assert isinstance(train, Split)
        train = _first(train, num_train, "train_rows", f"training rows {data.name}")
    test = _first(data.test, num_test, "test_rows", f"test rows {data.name}")
    data = dataclasses.replace(data, test_names=data.test_names[:num_test])
    if num_train is None or not isinstance(train, Split):
        return dataclasses.replace(data, test=test)
    if data.num_classes is not None:
        _check_classes(data, train)
    return data.standardised_again(train, validation=data.validation, test=test)


def _first(split: Split, num_rows: int | None, option: str, what: str) -> Split:
    if num_rows is None:
        return split
    if not 1 <= num_rows <= len(split):
        raise OptionError(
            "{} {} is not among the {} {} has: give a number from 1 to that, or leave "
            "it out.",
            Option(option),
            num_rows,
            len(split),
            what,
        )
    return split.rows(np.arange(num_rows))


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
