"""What a user's target column means: classes or numbers."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from ..._sentence import Sentence
from .._assemble import check_finite
from .._error import DataError

TASKS = ("classification", "regression")
_MAX_CLASSES = 20  # of whole numbers, unless the user says what they are
MOST_CLASSES = 1_000
"""Different targets that are counted where rows stay on disk: more are no classes."""


class Target(NamedTuple):
    """A target that is ready for `assemble`.

    Attributes:
        y: class numbers (rows,) or numbers (rows, outputs).
        class_names: for classes; `None` for numbers.
        notes: what was decided without the user.
    """

    y: np.ndarray
    class_names: list[str] | None
    notes: list[str]


def read_target(
    values: Shaped[np.ndarray, "..."], what: str, task: str | None
) -> Target:
    """Decide between classes and numbers, and number the classes.

    Text and booleans are classes, floats are numbers; a column of whole numbers is
    taken for classes if it has few different ones, which a note then says.

    Args:
        values: the target, (rows,) or (rows, outputs); objects are whole numbers of
            Python's, which NumPy's do not hold.
        what: its name in messages.
        task: `"classification"` or `"regression"`, or `None` to decide here.

    Raises:
        DataError: for a target that is not what `task` says, or unusable.
    """
    if task not in (None, *TASKS):
        raise DataError(f"`task` must be one of {', '.join(TASKS)}, got {task!r}.")
    if values.ndim not in (1, 2) or values.size == 0:
        raise DataError(
            f"{what} has shape {values.shape}; give (rows,) or (rows, outputs), with "
            "at least one row."
        )
    is_number = values.dtype.kind in "iufO"
    check_finite(values, what)
    notes = []
    single = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if task is None:
        task = "regression" if values.dtype.kind == "f" else "classification"
        if values.dtype.kind in "iuO":
            count = len(np.unique(values))
            few = single.ndim == 1 and count <= _MAX_CLASSES
            task = "classification" if few else "regression"
            other = "regression" if few else "classification"
            said = count if count <= MOST_CLASSES else f"more than {MOST_CLASSES:,}"
            notes.append(
                Sentence(
                    "{} has {} different whole numbers and was taken for {}; {task} {} "
                    "takes it for {}.",
                    *(what, said, task, other, other),
                )
            )
    if task == "regression":
        if not is_number:
            raise DataError(
                f"{what} is not a number (for instance {values.flat[0].item()!r}): "
                "give another column, or task='classification'."
            )
        y = values.astype(np.float64)
        return Target(y[:, None] if y.ndim == 1 else y, None, notes)
    if single.ndim != 1:
        raise DataError(
            f"{what} has {single.shape[1]} columns; classification takes one, with "
            "the class of each row."
        )
    if single.dtype.kind == "f" and np.any(single != np.round(single)):
        raise DataError(
            f"{what} has {single[single != np.round(single)][0]}, which is no class: "
            "give whole numbers or names, or task='regression'."
        )
    classes, y = np.unique(single, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"{what} has one class, {classes[0]!s}: give examples of at least two."
        )
    return Target(y, [class_name(c) for c in classes], notes)


def class_name(value: np.generic | int) -> str:
    """Of a class, which a file may have as a number, a truth or text."""
    is_whole = isinstance(value, np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)
