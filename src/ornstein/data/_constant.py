"""Columns of one value in the training rows, which teach a model nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ._column import Column, count_of

_MOST_NAMED = 3


def on_constant(columns: Sequence[Column], where: str) -> list[str]:
    """A note on columns of which nothing can be learned, if there are any.

    Args:
        columns: as training rows showed them.
        where: the table's name.
    """
    # Whether a cell is empty may tell of the target.
    names = [c.name for c in columns if c.is_constant and not c.has_gaps]
    if not names:
        return []
    if len(names) == 1:
        (column,) = [c for c in columns if c.name == names[0]]
        value = column.fill if column.kind != "category" else column.categories[0]
        return [
            f"{where}: column {names[0]!r} is {column.said(value)} in all training "
            "rows: it says nothing of the target; leave it out, or add rows in which "
            "it differs."
        ]
    return [
        f"{where}: columns {_some(map(repr, names))} are each of one value in all "
        "training rows: they say nothing of the target; leave them out, or add rows "
        "in which they differ."
    ]


def on_other_values(
    columns: Sequence[Column], cells: Mapping[str, Any], where: str
) -> list[str]:
    """A note on rows that differ where the training rows did not, if there are any.

    Other categories have notes of their own.

    Args:
        columns: as training rows showed them.
        cells: of each, as numbers; NaN where they are empty.
        where: the table's name.
    """
    found = []
    for column in columns:
        if column.is_constant and column.kind != "category":
            values = np.asarray(cells[column.name], np.float64)
            if (is_other := _is_other(values, column.fill)).any():
                found.append((column, values[is_other]))
    if not found:
        return []
    column, values = found[0]
    others = _some([column.said(value) for value in np.unique(values)])
    more = ""
    if len(found) > 1:
        more = f" (and so on for {count_of(len(found) - 1, 'more column')})"
    given = " with a value" if column.has_gaps else ""
    return [
        f"{where}: column {column.name!r} has {others} in "
        f"{count_of(len(values), 'row')}, and all training rows{given} have "
        f"{column.said(column.fill)}{more}: what that changes was not learned."
    ]


def _is_other(
    values: Float[np.ndarray, " rows"], constant: float
) -> Bool[np.ndarray, " rows"]:
    found = (values != constant) & ~np.isnan(values)
    if constant % 1 == 0:
        return found
    with np.errstate(over="ignore"):  # 0.1 is another number in single precision
        return found & (values.astype(np.float32) != np.float32(constant))


def _some(texts: Any) -> str:
    listed = list(texts)
    more = len(listed) - _MOST_NAMED
    named = ", ".join(listed[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named
