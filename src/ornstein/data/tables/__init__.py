"""Tables of numbers: the user's own, UCI's, and toys."""

from ._archive import archive as archive, read_array as read_array
from ._formulas import escaped as escaped, unescaped as unescaped
from ._table import (
    numeric_columns as numeric_columns,
    read_table as read_table,
    table as table,
)
from ._toy import TOYS as TOYS, toy as toy
from ._uci import uci as uci
