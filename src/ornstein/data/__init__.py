"""Data sets by name, the user's own, and what is done to inputs."""

from ._assemble import assemble as assemble, split_and_assemble as split_and_assemble
from ._augment import (
    AbstractAugmentation as AbstractAugmentation,
    Compose as Compose,
    RandomCrop as RandomCrop,
    RandomFlip as RandomFlip,
    RandomShift as RandomShift,
    default_augmentation as default_augmentation,
)
from ._augment_series import ObservationNoise as ObservationNoise
from ._base import (
    Data as Data,
    Split as Split,
    Standardisation as Standardisation,
)
from ._bytes import ByteScale as ByteScale
from ._clock import Clock as Clock
from ._corrupt import (
    gaussian_noise_like as gaussian_noise_like,
    mix_with_noise as mix_with_noise,
    rotate_images as rotate_images,
    salt_and_pepper as salt_and_pepper,
)
from ._corrupted import (
    CorruptedImages as CorruptedImages,
    corrupted_images as corrupted_images,
)
from ._corruptions import (
    CORRUPTIONS as CORRUPTIONS,
    SEVERITIES as SEVERITIES,
    Corruption as Corruption,
    corrupt as corrupt,
)
from ._error import DataError as DataError, DataNotFoundError as DataNotFoundError
from ._inputs import read_inputs as read_inputs
from ._lengths import of_lengths as of_lengths
from ._load import list_data as list_data, load as load
from ._long_csv import LongTable as LongTable, read_long_csv as read_long_csv
from ._series import Series as Series
from ._series_csv import load_series_csv as load_series_csv
from ._tempo import at_tempos as at_tempos
from ._windows import windows as windows
