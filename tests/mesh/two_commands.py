"""Commands in two processes that share a run: started, killed, and waited for."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_LONGEST = 400.0


class Ended(NamedTuple):
    """How a process ended: its exit code, and what it said."""

    code: int
    out: str
    errors: str


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def start(
    args: Sequence[str], process: int, port: int, *, processes: int = 2
) -> subprocess.Popen:
    """One process of a command line, as a shell starts it."""
    place = ["--distributed", "--coordinator", f"localhost:{port}"]
    place += ["--processes", str(processes), "--process", str(process)]
    return subprocess.Popen(
        [sys.executable, "-m", "ornstein_program", *args, *place],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )


def end(*processes: subprocess.Popen) -> list[Ended]:
    """Wait for all; none is left behind."""
    try:
        found = [process.communicate(timeout=_LONGEST) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [Ended(p.returncode, *t) for p, t in zip(processes, found, strict=True)]


def together(first: Sequence[str], second: Sequence[str] | None = None) -> list[Ended]:
    """Both processes of a command, or of two that should have been one."""
    port = free_port()
    both = (first, first if second is None else second)
    return end(*(start(args, i, port) for i, args in enumerate(both)))


def kill_child(process: subprocess.Popen) -> None:
    """SIGKILL to what works for a watcher."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    os.kill(int(children.split()[0]), signal.SIGKILL)


def wait_for(path: Path, pattern: str) -> None:
    """Until a file is there."""
    begun = time.monotonic()
    while not list(path.glob(pattern)):
        if time.monotonic() - begun > _LONGEST:
            raise TimeoutError(f"no {pattern} in {path}")
        time.sleep(0.05)
