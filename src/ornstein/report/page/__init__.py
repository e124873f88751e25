"""HTML by construction: text is escaped, tables and figures are read aloud whole."""

from ._document import document as document
from ._elements import Html as Html, joined as joined, tag as tag
from ._figure import figure as figure, figures as figures
from ._ids import Ids as Ids
from ._numbers import (
    Number as Number,
    count as count,
    number as number,
    percent as percent,
    with_error as with_error,
)
from ._table import key_values as key_values, table as table
