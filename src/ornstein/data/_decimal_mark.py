"""What stands before decimals in a table: one mark, whichever column shows it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._cells import Cells, Kind, decimal_of, is_date_like, kind_of

if TYPE_CHECKING:
    import pandas as pd


def decimal_mark(columns: Iterable["pd.Series"]) -> str:
    """What stands before decimals in a table, where any of its text says so.

    Args:
        columns: of the table.
    """
    import pandas as pd

    for column in columns:
        cells = Cells(column)
        if pd.api.types.is_numeric_dtype(column) or is_date_like(column):
            continue
        if decimal_of(cells) == ",":
            found = kind_of(cells)
            if isinstance(found, Kind) and found.reading.decimal == ",":
                return ","
    return "."
