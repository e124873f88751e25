"""The data of a recipe, and new sequences like them."""

from ._first_rows import first_rows as first_rows
from ._load import (
    check_data_options as check_data_options,
    load_data as load_data,
)
from ._series_inputs import (
    SeriesInputs as SeriesInputs,
    learned_span as learned_span,
    read_series as read_series,
)
