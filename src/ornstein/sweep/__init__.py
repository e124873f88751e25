"""Many runs of one command: a grid of options, and the table of what they came to."""

from ._engine import AbstractEngine as AbstractEngine, Processes as Processes
from ._folder import SweepFolder as SweepFolder, at_work as at_work
from ._grid import Cell as Cell, Grid as Grid
from ._job import (
    FailedRunsError as FailedRunsError,
    Job as Job,
    Outcome as Outcome,
    environ_of as environ_of,
)
from ._ray import Ray as Ray
from ._table import SweepTable as SweepTable, read_table as read_table
