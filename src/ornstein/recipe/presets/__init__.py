"""Settings that work for a kind of data: where `ornstein train` starts from."""

from ._kinds import (
    IN_MEMORY as IN_MEMORY,
    is_table as is_table,
    kind_of_data as kind_of_data,
)
from ._presets import (
    HANDED_OVER as HANDED_OVER,
    PRESETS as PRESETS,
    TABLE_NOISE as TABLE_NOISE,
    PresetName as PresetName,
    default_model as default_model,
    preset_recipe as preset_recipe,
)
from ._series_presets import kind_of_sequences as kind_of_sequences
