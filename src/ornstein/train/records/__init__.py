"""What is written down while a run goes on: histories, files, a progress bar."""

from ._calibration import (
    NUM_BINS as NUM_BINS,
    accuracy_and_ece as accuracy_and_ece,
    calibration_sums as calibration_sums,
)
from ._callbacks import (
    Callback as Callback,
    EventsFile as EventsFile,
    MetricsFile as MetricsFile,
    Plan as Plan,
)
from ._history import History as History
from ._progress import ProgressBar as ProgressBar
from ._step_record import LossRecord as LossRecord, StepRecord as StepRecord
