"""The data of a recipe: all of them, some rows, sequences half hidden."""

from ._rows import first_rows as first_rows, load_data as load_data
from ._sequences import (
    ask_for_the_rest as ask_for_the_rest,
    is_table as is_table,
    with_later_starts as with_later_starts,
    with_lengths as with_lengths,
    with_tempos as with_tempos,
)
from ._series_inputs import SeriesInputs as SeriesInputs, read_series as read_series
