"""What hears about a run while it goes on: files, TensorBoard, a progress bar."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ._atomic import write_atomically
from ._history import json_record


class Plan(NamedTuple):
    """What a run is going to do.

    Attributes:
        num_epochs: in all.
        num_steps: in all.
        first_step: steps already taken, in a run that is resumed.
        num_data: examples in the data set.
        batch_size: examples in a batch.
        num_parameters: numbers that are trained.
        records: of the epochs already finished, in a run that is resumed.
    """

    num_epochs: int
    num_steps: int
    first_step: int
    num_data: int
    batch_size: int
    num_parameters: int
    records: list[dict[str, Any]]


@runtime_checkable
class Callback(Protocol):
    """Something that hears about a run. Call order: start, (advance, epoch)*, stop."""

    def start(self, plan: Plan) -> None:
        """Training is about to begin."""
        ...

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Some steps were taken, `step` in all; the epoch's record so far."""
        ...

    def epoch(self, record: dict[str, Any]) -> None:
        """An epoch is complete."""
        ...

    def stop(self) -> None:
        """Training ended, was interrupted, or failed."""
        ...


class MetricsFile:
    """One line of JSON for each epoch, in order and once each, also after a resume.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path):
        self.path = path

    def start(self, plan: Plan) -> None:
        """Write the finished epochs; whatever came after the checkpoint goes."""
        lines = "".join(_line(record) for record in plan.records)
        write_atomically(self.path, lines.encode())

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Nothing: only whole epochs are written."""

    def epoch(self, record: dict[str, Any]) -> None:
        """Append the epoch."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(record))

    def stop(self) -> None:
        """Nothing: the file is closed between lines."""


class EventsFile:
    """TensorBoard's events: one scalar for each record of an epoch.

    Args:
        folder: of the events.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._writer: Any = None

    def start(self, plan: Plan) -> None:
        """Open the file; events after the checkpoint are hidden."""
        purge_step = plan.first_step + 1 if plan.first_step else None
        from tensorboardX import SummaryWriter  # imports torch, where there is one

        self._writer = SummaryWriter(str(self.folder), purge_step=purge_step)

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Nothing: only whole epochs are written."""

    def epoch(self, record: dict[str, Any]) -> None:
        """Write the epoch's records at its last step."""
        assert self._writer is not None
        for name, value in record.items():
            if name not in ("epoch", "step") and math.isfinite(value):
                self._writer.add_scalar(name, value, record["step"])

    def stop(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def _line(record: dict[str, Any]) -> str:
    return json.dumps(json_record(record), allow_nan=False) + "\n"
