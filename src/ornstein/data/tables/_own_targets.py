"""The column, or columns, of a user's table that are to be predicted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped

from ..._sentence import Sentence
from .._columns import Column, with_separator
from .._error import DataError, nearest
from ..cells import (
    Cells,
    Kind,
    Problem,
    Reading,
    as_code,
    bad_cells,
    decimal_of,
    kind_of,
)
from ._targets import Target, class_name, read_target

if TYPE_CHECKING:
    import pandas as pd

_WHOLE = r"[+-]?\d+"


def with_targets(
    frame: "pd.DataFrame", targets: Sequence[str], where: str
) -> tuple["pd.DataFrame", list[str]]:
    """The rows that have a target, and a note on the others.

    Args:
        frame: the table.
        targets: its columns to predict.
        where: its name, for messages.

    Raises:
        DataError: if no row has one.
    """
    has_one = np.all([Cells(frame[name]).given for name in targets], axis=0)
    if has_one.all():
        return frame, []
    absent, names = int((~has_one).sum()), " or ".join(targets)
    if absent == len(frame):
        raise DataError(f"{where}: every cell of {names} is empty: give values.")
    what = "1 row has" if absent == 1 else f"{absent:,} rows have"
    verb = "is" if absent == 1 else "are"
    note = f"{where}: {what} no {names}, and {verb} left out."
    left = frame[has_one].reset_index(drop=True)
    left.attrs = dict(frame.attrs)
    return left, [note]


def own_targets(
    frame: "pd.DataFrame", targets: Sequence[str], task: str | None, where: str
) -> tuple[Target, tuple[Column, ...]]:
    """Classes or numbers, as `read_target` decides, and how their text was read.

    Args:
        frame: whose rows all have a target.
        targets: its columns to predict.
        task: `"classification"` or `"regression"`, or `None` to decide here.
        where: its name, for messages.

    Raises:
        DataError: for a target that is not what `task` says, or unusable.
    """
    what = f"{where}: target {', '.join(targets)}"
    if len(targets) == 1:
        column, notes = _seen(frame, targets[0], task, where)
        values = _as_they_are(frame, column)
        found = read_target(values, what, task)
        return found._replace(notes=[*notes, *found.notes]), (column,)
    columns = tuple(_seen(frame, name, "regression", where)[0] for name in targets)
    return read_target(_numbers(frame, columns, where), what, task), columns


def own_labels(
    frame: "pd.DataFrame",
    columns: Sequence[Column],
    class_names: Sequence[str] | None,
    where: str,
) -> Shaped[np.ndarray, "rows ..."]:
    """Targets of other rows: the numbers of known classes, or numbers.

    Args:
        frame: whose rows all have a target.
        columns: to predict, as training had them.
        class_names: in the order of their numbers; `None` for numbers.
        where: its name, for messages.

    Raises:
        DataError: for a class that is not among them, or what is no number.
    """
    if class_names is None:
        return _numbers(frame, columns, where)
    (column,) = columns
    names = [class_name(value) for value in _as_they_are(frame, column)]
    numbers = {name: number for number, name in enumerate(class_names)}
    unknown = [row for row, name in enumerate(names) if name not in numbers]
    if unknown:
        row, cell = unknown[0], str(frame[column.name].iloc[unknown[0]])
        hint = nearest(cell, class_names, is_given=True)
        raise DataError(
            f"{where}: target {column.name} has {cell!r} in row {row}, counting from "
            f"0, which training had not{hint}: its classes are "
            f"{', '.join(class_names)}."
        )
    return np.array([numbers[name] for name in names])


def _seen(
    frame: "pd.DataFrame", name: str, task: str | None, where: str
) -> tuple[Column, list[str]]:
    """What a target's column is and how its text is read; and notes."""
    cells = Cells(with_separator(frame, name))
    found = kind_of(cells)
    reading = Reading(decimal_of(cells))
    not_numbers = bad_cells(cells, "number", reading)
    if isinstance(found, Kind) and found.code is not None and task == "regression":
        found = not_numbers or Kind("number", reading)
    if isinstance(found, Problem):
        if task == "classification":
            return Column(name, "category"), []
        raise DataError(
            Sentence(
                "{}: target {}: correct the cells{}.",
                where,
                found.said,
                Sentence(", or give {task} classification if they are classes")
                if task is None
                else "",
            )
        )
    if found.kind == "date":
        return Column(name, "category"), []
    are_numbers = not_numbers is None
    if found.kind == "category" and are_numbers and task == "regression":
        found = Kind("number", reading)
    is_category = found.kind == "category"
    if is_category and found.reason_to_leave_out is not None and task is None:
        raise DataError(
            Sentence(
                "{}: target {!r} cannot be classes: {}; correct the cells, or give "
                "{task} classification{}.",
                where,
                name,
                found.reason_to_leave_out,
                ", or regression" if are_numbers else "",
            )
        )
    notes = []
    if is_category and are_numbers and task is None:
        text = (
            "{}: target {} was taken for classification, for {}; {task} regression "
            "takes it for regression."
        )
        why = "pandas has categories" if found.code is None else as_code(found.code)
        notes.append(Sentence(text, where, name, why))
    kind: Any = found.kind
    return Column(name, kind, **found.reading._asdict()), notes


def _as_they_are(frame: "pd.DataFrame", column: Column) -> Shaped[np.ndarray, " rows"]:
    """Numbers or truths if training had those, and else text."""
    import pandas as pd

    cells = Cells(frame[column.name])
    if column.kind == "category":
        return cells.categories().to_numpy().astype(str)
    values = cells.numbers(column.reading)
    if column.kind == "boolean":
        is_known = np.isin(values, (0.0, 1.0))
        if is_known.all():
            return values.astype(bool)
        known = [class_name(np.bool_(value)) for value in values == 1]
        return np.where(is_known, known, cells.texts.to_numpy().astype(str))
    if np.isnan(values).any():  # other rows', of which it will be said
        return cells.categories().to_numpy().astype(str)
    if pd.api.types.is_integer_dtype(cells.column):
        is_unsigned = pd.api.types.is_unsigned_integer_dtype(cells.column)
        return cells.column.to_numpy(np.uint64 if is_unsigned else np.int64)
    is_text = not pd.api.types.is_numeric_dtype(cells.column)
    if is_text and cells.texts.str.fullmatch(_WHOLE).all():
        return _exact(list(map(int, cells.texts)))
    return values


def _exact(values: list[int]) -> Shaped[np.ndarray, " rows"]:
    """As NumPy's whole numbers: doubles would be others beyond 2^53.

    As Python's, where neither type of 64 bits holds all of them.
    """
    lowest, highest = min(values), max(values)
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max:
            return np.array(values, kind)
    return np.array(values, object)


def _numbers(
    frame: "pd.DataFrame", columns: Sequence[Column], where: str
) -> Shaped[np.ndarray, "rows targets"]:
    readings = {column.name: column.reading for column in columns}
    cells = {name: Cells(frame[name]) for name in readings}
    found = [bad_cells(cells[n], "number", reading) for n, reading in readings.items()]
    bad = [problem.said for problem in found if problem is not None]
    if bad:
        raise DataError(f"{where}: {'; '.join(bad)}: the targets must be numbers.")
    read = [cells[name].numbers(reading) for name, reading in readings.items()]
    return np.stack(read, axis=1)
