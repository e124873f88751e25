"""One run of a sweep: a process of its own, and how it ended."""

import contextlib
import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._files import UnreadableError, lock_folder, read_json, write_atomically

PATIENCE = 600.0
"""Seconds for which a run waits for a process that is still at work in its folder."""

PAUSE = 0.1
"""Seconds from one look at the processes to the next."""


class FailedRunsError(Exception):
    """Some runs of a sweep failed; the others are what they are."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run's process ended.

    Attributes:
        name: of the run.
        code: of its exit; negative for a signal.
        said: its last line, where it failed.
        seconds: that it took, of this call alone.
    """

    name: str
    code: int
    said: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class Job:
    """A run, and what to call for it.

    Attributes:
        name: of the run.
        folder: of the run.
        log: the file to which all calls of it write.
        end: the file that says how the last call ended.
        start: arguments to Python that begin the run.
        resume: arguments to Python that go on with it.
        environ: variables that the process has beside those of its machine.
        working: the folder to which relative paths refer.
    """

    name: str
    folder: Path
    log: Path
    end: Path
    start: Sequence[str]
    resume: Sequence[str]
    environ: Mapping[str, str]
    working: Path

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        return is_done(self.folder, self.end)


class Attempt:
    """A call of a run: `poll` begins it and says how it ended.

    It waits until no other process is at work in the run's folder: of a sweep that was
    killed, runs take a moment to save what they have.

    The process has the reading end of a pipe as its standard input. When this process
    is gone, however it died, the pipe closes, by which the other knows.

    Args:
        job: the run.
        num_cores: for how many cores the run is to have threads; all by default.
        cores: to which it is kept, where the system can.
    """

    def __init__(
        self,
        job: Job,
        *,
        num_cores: int | None = None,
        cores: Sequence[int] = (),
    ):
        self.job = job
        self._num_cores = num_cores
        self._cores = cores
        self._process: subprocess.Popen[bytes] | None = None
        self._began = time.monotonic()

    def poll(self) -> Outcome | None:
        """How it ended; `None` before."""
        if self._process is None:
            waited = time.monotonic() - self._began
            if is_free(self.job.folder) or waited > PATIENCE:
                self._begin()
            return None
        code = self._process.poll()
        if code is None:
            return None
        self._close()
        seconds = round(time.monotonic() - self._began, 1)
        said = "" if code == 0 else _last_line(self.job.log, code)
        outcome = Outcome(self.job.name, code, said, seconds)
        text = json.dumps(dataclasses.asdict(outcome), indent=2)
        write_atomically(self.job.end, text.encode())
        return outcome

    def interrupt(self) -> None:
        """Let it save what it has, and end."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()

    def wait(self) -> None:
        """Until it has ended."""
        if self._process is not None:
            self._process.wait()
            self._close()

    def _begin(self) -> None:
        job = self.job
        has_begun = (job.folder / "config.json").is_file()
        args = [sys.executable, *(job.resume if has_begun else job.start)]
        self._began = time.monotonic()
        with job.log.open("ab") as log, _kept_to(self._cores):
            log.write(f"$ {shlex.join(args)}\n".encode())
            log.flush()
            # A session of its own: a terminal's Ctrl-C goes to the sweep alone, which
            # asks its runs to end once. Asked twice, they would not save.
            self._process = subprocess.Popen(
                args,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=job.working,
                env={**os.environ, **job.environ, **self._threads()},
                start_new_session=True,
            )

    def _threads(self) -> dict[str, str]:
        """Variables by which XLA and the rest have threads for some cores alone."""
        if self._num_cores is None:
            return {}
        number = str(self._num_cores)
        return {"NPROC": number, "OMP_NUM_THREADS": number}

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()


def is_done(folder: Path, end: Path) -> bool:
    """Whether a run has a result, and did not fail after it was written.

    Args:
        folder: of the run.
        end: the file that says how its last call ended, if it was not stopped.
    """
    if not (folder / "result.json").is_file():
        return False
    return ended_well(end, otherwise=True)


def ended_well(end: Path, *, otherwise: bool = False) -> bool:
    """Whether a run's last call ended without a failure.

    Args:
        end: the file that says so.
        otherwise: where that file does not say.
    """
    try:
        return read_json(end)["code"] == 0
    except (FileNotFoundError, UnreadableError, KeyError, TypeError):
        return otherwise


def carry_out(job: Job, num_cores: int | None = None) -> Outcome:
    """A run from its beginning, or from where it was, to its end.

    An exception that is raised meanwhile, such as `KeyboardInterrupt`, interrupts it.

    Args:
        job: the run.
        num_cores: for how many cores the run is to have threads; all by default.
    """
    attempt = Attempt(job, num_cores=num_cores)
    try:
        while (outcome := attempt.poll()) is None:
            time.sleep(PAUSE)
        return outcome
    finally:
        stop([attempt])


def stop(attempts: Iterable[Attempt]) -> None:
    """Let runs save what they have, and wait until they ended; then nothing is lost.

    What is raised meanwhile, such as a second Ctrl-C, kills them.
    """
    attempts = list(attempts)
    for attempt in attempts:
        attempt.interrupt()
    try:
        for attempt in attempts:
            attempt.wait()
    except BaseException:
        for attempt in attempts:
            attempt.kill()
        raise


def is_free(folder: Path) -> bool:
    """Whether no process is at work in a run's folder, which need not be there."""
    if not folder.is_dir():
        return True
    try:
        with lock_folder(folder):
            return True
    except BlockingIOError:
        return False
    except OSError:  # as the run itself will say
        return True


@contextlib.contextmanager
def _kept_to(cores: Sequence[int]) -> Iterator[None]:
    """Processes that are started meanwhile are kept to these cores; all for none."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _last_line(log: Path, code: int) -> str:
    """What a run said last, or what ended it."""
    if code < 0:
        name = signal.Signals(-code).name
        hint = " (there may not have been enough memory)" if name == "SIGKILL" else ""
        return f"it was ended by {name}{hint}"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 10_000))
        lines = file.read().decode(errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return said[-1].removeprefix("ornstein: ")


def environ_of(names: Iterable[str]) -> dict[str, Any]:
    """Variables of this process whose names begin so: other machines lack them.

    Args:
        names: or their beginnings.
    """
    starts = tuple(names)
    return {name: v for name, v in os.environ.items() if name.startswith(starts)}
