"""What stands before decimals in a table: one mark, whichever column shows it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._cells import Cells, Reading, is_date_like
from ._kinds import Kind, decimal_of, has_no_decimals, kind_of

if TYPE_CHECKING:
    import pandas as pd


class DecimalMark(NamedTuple):
    """What stands before decimals in a table.

    Attributes:
        mark: `None` where none of its text says so.
        thousands: columns of numbers like 1,234, which would have decimals by
            themselves, and have thousands because of others' points.
    """

    mark: str | None
    thousands: tuple[str, ...] = ()


def decimal_mark(columns: Iterable["pd.Series"]) -> DecimalMark:
    """See what stands before decimals in a table.

    A column with decimals after commas decides, such as 0,5; then one with decimals
    after points; and then numbers like 1,234, in a table whose cells no commas part.

    Args:
        columns: of the table.
    """
    import pandas as pd

    texts = [
        column
        for column in columns
        if not pd.api.types.is_numeric_dtype(column) and not is_date_like(column)
    ]
    perhaps = [column for column in texts if decimal_of(Cells(column)) == ","]
    if any(_has_decimal_commas(_where_points(column)) for column in perhaps):
        return DecimalMark(",")
    if perhaps and any(map(_has_decimal_points, texts)):
        by_others = [a for a in perhaps if not _has_decimal_points(a)]
        return DecimalMark(".", tuple(str(a.name) for a in by_others))
    return DecimalMark("," if any(map(_has_decimal_commas, perhaps)) else None)


def _has_decimal_commas(column: "pd.Series") -> bool:
    cells = Cells(column)
    if decimal_of(cells) != ",":
        return False
    found = kind_of(cells)
    return isinstance(found, Kind) and found.reading.decimal == ","


def _where_points(column: "pd.Series") -> "pd.Series":
    """The column in a table in which points stand before decimals."""
    told = column.copy(deep=False)
    told.attrs = {**column.attrs, "decimal": "."}
    return told


def _has_decimal_points(column: "pd.Series") -> bool:
    """Whether all are numbers, and a point in them is no thousands'."""
    cells = Cells(column)
    has_point = cells.texts.str.contains(".", regex=False) & cells.given
    if has_no_decimals(Cells(column[has_point])):
        return False
    return not np.isnan(cells.numbers(Reading("."))[cells.given]).any()
