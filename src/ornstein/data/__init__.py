"""Data sets by name, the user's own, and what is done to inputs."""

from ._assemble import (
    assemble as assemble,
    check_scaling as check_scaling,
    split_and_assemble as split_and_assemble,
    standardised as standardised,
)
from ._base import Data as Data, raw_rows as raw_rows
from ._clock import Clock as Clock
from ._column import PANDAS_INDEX as PANDAS_INDEX
from ._columns import Column as Column, TableEncoding as TableEncoding
from ._error import DataError as DataError, DataNotFoundError as DataNotFoundError
from ._formulas import escaped as escaped, unescaped as unescaped
from ._inputs import (
    Inputs as Inputs,
    array_inputs as array_inputs,
    frame_inputs as frame_inputs,
    read_inputs as read_inputs,
)
from ._labelled import (
    LabelledInputs as LabelledInputs,
    array_labelled as array_labelled,
    frame_labelled as frame_labelled,
    read_labelled as read_labelled,
)
from ._load import (
    check_load_options as check_load_options,
    list_data as list_data,
    load as load,
)
from ._schema import load_schema as load_schema, save_schema as save_schema
from ._series import (
    Series as Series,
    Span as Span,
    later_times as later_times,
    observed_gaps as observed_gaps,
)
from ._source import Source as Source, expanded as expanded
from ._split import Split as Split
from ._standardise import (
    Standardisation as Standardisation,
    in_raw_units as in_raw_units,
    in_standard_units as in_standard_units,
)
from .corruptions import (
    CORRUPTIONS as CORRUPTIONS,
    SEVERITIES as SEVERITIES,
    CorruptedImages as CorruptedImages,
    Corruption as Corruption,
    corrupt as corrupt,
    corrupted_images as corrupted_images,
    gaussian_noise_like as gaussian_noise_like,
    mix_with_noise as mix_with_noise,
    rotate_images as rotate_images,
    salt_and_pepper as salt_and_pepper,
)
from .images import (
    AbstractAugmentation as AbstractAugmentation,
    ByteScale as ByteScale,
    Compose as Compose,
    ImageFit as ImageFit,
    RandomCrop as RandomCrop,
    RandomFlip as RandomFlip,
    RandomShift as RandomShift,
    default_augmentation as default_augmentation,
    images_below as images_below,
    open_image as open_image,
    read_encoded as read_encoded,
)
from .series import (
    SERIES_TOYS as SERIES_TOYS,
    LongTable as LongTable,
    ObservationNoise as ObservationNoise,
    at_tempos as at_tempos,
    load_series_csv as load_series_csv,
    of_lengths as of_lengths,
    read_long_csv as read_long_csv,
    read_names as read_names,
    windows as windows,
)
from .shards import kind_of_folder as kind_of_folder
from .stream import (
    AbstractShards as AbstractShards,
    Part as Part,
    Streamed as Streamed,
)
from .tables import (
    LabelledFrame as LabelledFrame,
    TableOptions as TableOptions,
    labelled_frame as labelled_frame,
    labelled_rows as labelled_rows,
    read_frame as read_frame,
    read_table as read_table,
)
