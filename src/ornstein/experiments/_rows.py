"""The data of a recipe, all of them or the first rows alone."""

import dataclasses

import numpy as np

from ..data import Data, Split, load
from ._options import DataOptions


def load_data(options: DataOptions, *, seed: int) -> Data:
    """Load what a recipe learns from.

    Validation rows are held out of the training rows that are left.

    Args:
        options: the recipe's.
        seed: decides the validation rows.

    Raises:
        ValueError: for sequences.
    """
    data = load(
        options.data,
        data_dir=options.data_dir,
        split=options.split,
        seed=seed,
        target=options.target or None,
        task=options.task,
    )
    if data.task == "series":
        raise ValueError(
            f"{data.name} holds sequences, which commands do not learn yet: in Python, "
            "`orn.fit(orn.LatentSDE.make(...), data.train, orn.OverTime(...))`."
        )
    data = first_rows(data, options.train_rows, options.test_rows)
    if options.validation_fraction == 0:
        return data
    return data.with_validation(options.validation_fraction, seed=seed)


def first_rows(data: Data, num_train: int | None, num_test: int | None) -> Data:
    """The same data with fewer rows, standardised by the training rows that are left.

    Args:
        data: without validation rows.
        num_train: of the training rows, from the first; `None` for all.
        num_test: likewise of the test rows.

    Raises:
        ValueError: for more rows than there are, none, or a class without any.
    """
    train = _first(data.train, num_train, "--train-rows", f"training rows {data.name}")
    test = _first(data.test, num_test, "--test-rows", f"test rows {data.name}")
    if num_train is None:
        return dataclasses.replace(data, test=test)
    if data.num_classes is not None:
        _check_classes(data, train)
    x_scaling, y_scaling = data.x_scaling, data.y_scaling
    if x_scaling is not None and x_scaling.axes is not None:
        second = type(x_scaling).fit(train.x, x_scaling.axes)
        x_scaling = x_scaling.then(second)
        train, test = (Split(second.apply(s.x), s.y) for s in (train, test))
    if y_scaling is not None and y_scaling.axes is not None:
        second = type(y_scaling).fit(train.y, y_scaling.axes)
        y_scaling = y_scaling.then(second)
        train, test = (Split(s.x, second.apply(s.y)) for s in (train, test))
    return dataclasses.replace(
        data, train=train, test=test, x_scaling=x_scaling, y_scaling=y_scaling
    )


def _first(split: Split, num_rows: int | None, option: str, what: str) -> Split:
    if num_rows is None:
        return split
    if not 1 <= num_rows <= len(split):
        raise ValueError(
            f"{option} {num_rows} is not among the {len(split)} {what} has: give a "
            "number from 1 to that, or leave it out."
        )
    return split.rows(np.arange(num_rows))


def _check_classes(data: Data, train: Split) -> None:
    present = np.unique(train.y)
    absent = np.setdiff1d(np.unique(data.train.y), present)
    if absent.size:
        raise ValueError(
            f"The first {len(train)} training rows of {data.name} have no "
            f"{data.class_names[absent[0]]!r}, perhaps because rows are sorted by "
            "class: give more --train-rows, or shuffle the file."
        )
