"""Values in time: the user's own sequences, recorded ones, and toys."""

from ._augment_series import ObservationNoise as ObservationNoise
from ._lengths import of_lengths as of_lengths
from ._long_csv import LongTable as LongTable, read_long_csv as read_long_csv
from ._long_values import read_names as read_names
from ._mocap import mocap as mocap
from ._series_csv import load_series_csv as load_series_csv
from ._tempo import at_tempos as at_tempos
from ._toy_series import SERIES_TOYS as SERIES_TOYS
from ._windows import windows as windows
