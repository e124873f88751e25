"""The cells of a table: what they are, and how their text is read."""

from ._cells import (
    EMPTY as EMPTY,
    Cells as Cells,
    Reading as Reading,
    is_empty_text as is_empty_text,
)
from ._decimal_mark import decimal_mark as decimal_mark
from ._few_cells import (
    FEW as FEW,
    few_values as few_values,
    few_written as few_written,
)
from ._kinds import (
    Kind as Kind,
    Problem as Problem,
    as_code as as_code,
    bad_cells as bad_cells,
    decimal_of as decimal_of,
    has_no_decimals as has_no_decimals,
    kind_of as kind_of,
    reason_of_name as reason_of_name,
)
