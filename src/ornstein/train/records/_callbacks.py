"""What hears about a run while it goes on: files, TensorBoard, a progress bar."""

import json
import math
import os
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..._files import naming, write_atomically
from ._history import json_record

_FLUSH_SECONDS = 10.0
"""From one moment at which a reader sees all events to the next, at least."""


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
        has_bound: whether `elbo` of its records bounds the evidence from below. If not,
            `kl` is the energy of a prior, such as that of `MAP`, or 0.
    """

    num_epochs: int
    num_steps: int
    first_step: int
    num_data: int
    batch_size: int
    num_parameters: int
    records: list[dict[str, Any]]
    has_bound: bool = True


@runtime_checkable
class Callback(Protocol):
    """Something that hears about a run. Call order: start, (advance, epoch)*, stop.

    A `KeyboardInterrupt` that it raises ends the run after a checkpoint.
    """

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
        with naming(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(_line(record))

    def stop(self) -> None:
        """Nothing: the file is closed between lines."""


class EventsFile:
    """TensorBoard's events: one scalar for each record of an epoch.

    Written by the thread that trains: `SummaryWriter`'s own thread dies of the first
    error, such as a full disk, and whoever then waits for it waits for ever.

    Args:
        folder: of the events.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._proto: Any = None
        self._writer: Any = None

    def start(self, plan: Plan) -> None:
        """Open the file; events after the checkpoint are hidden."""
        from tensorboardX.proto import event_pb2  # imports torch, where there is one
        from tensorboardX.record_writer import RecordWriter

        self._proto = event_pb2
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        name += f".{os.getpid()}.{plan.first_step}"
        with naming(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._writer = RecordWriter(str(self.folder / name))
        self._flushed = time.monotonic()
        version = {"file_version": "brain.Event:2"}
        self._write(**version)
        if plan.first_step:
            step, log = plan.first_step + 1, self._proto.SessionLog
            self._write(step=step, **version)
            self._write(step=step, session_log=log(status=log.START))

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Nothing: only whole epochs are written."""

    def epoch(self, record: dict[str, Any]) -> None:
        """Write the epoch's records at its last step."""
        from tensorboardX.summary import scalar

        for name, value in record.items():
            if name not in ("epoch", "step") and math.isfinite(value):
                self._write(step=record["step"], summary=scalar(name, value))
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            with naming(self.folder):
                self._writer.flush()
            self._flushed = time.monotonic()

    def stop(self) -> None:
        """Close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with naming(self.folder):
                writer.close()

    def _write(self, **content: Any) -> None:
        assert self._writer is not None
        event = self._proto.Event(wall_time=time.time(), **content)
        with naming(self.folder):
            self._writer.write(event.SerializeToString())


def _line(record: dict[str, Any]) -> str:
    return json.dumps(json_record(record), allow_nan=False) + "\n"
