"""One of several processes that share a run: `ornstein ... --distributed`.

What is called is a watcher, which imports no JAX: it starts the command as a child, and
says in a sentence how that ended. JAX's coordinator ends a process whose run has lost
another by aborting it, with a stack trace of C++: nothing inside can say more. What C++
writes goes to a file of the watcher's, so that standard output and standard error have
what ornstein says.

Beside the package, because `jax.distributed.initialize` must come before the command
line is imported: blackjax computes something when it is.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

FOLDER = "ORNSTEIN_PROCESS_FOLDER"
"""The variable that names the watcher's folder, which goes when the process does."""
DEFAULT_TIMEOUT = 300.0
"""Seconds for which processes wait for each other: a scheduler's may come late."""
_HEARTBEAT = 30
"""Seconds without a sign of life after which another process is taken for dead."""
_FAREWELL = 20.0
"""Seconds for which a process that has ended waits for the others to have, too."""
_LAST_WAIT = 120.0
"""Seconds that a process without its watcher has to save what it has."""
_NATIVE, _PHASE = "native.log", "phase"
_STATUS = re.compile(r"absl::Status: (\w+): ?(.*)")


class Place(NamedTuple):
    """Where a process stands among those of its run.

    Attributes:
        coordinator: HOST:PORT of process 0; `None` leaves it to the cluster.
        processes: how many there are, likewise.
        process: its own number, likewise.
        timeout: seconds for which they wait for each other.
    """

    coordinator: str | None
    processes: int | None
    process: int | None
    timeout: float

    @property
    def there(self) -> str:
        """The coordinator, in words."""
        return self.coordinator or "the coordinator that the cluster names"


def place_of(args: Sequence[str]) -> Place:
    """What the arguments of a command say of its process.

    Raises:
        ValueError: for what cannot be.
    """
    coordinator = _value(args, "coordinator")
    processes, process = (_count(args, name) for name in ("processes", "process"))
    given = (coordinator, processes, process)
    if None in given and given != (None, None, None):
        names = ("--coordinator HOST:PORT", "--processes N", "--process I")
        missing = [n for n, value in zip(names, given, strict=True) if value is None]
        raise ValueError(
            f"{' and '.join(missing)} is missing: give all of {', '.join(names)}, or "
            "none where a cluster such as SLURM knows them."
        )
    text = _value(args, "coordinator-timeout")
    try:
        timeout = DEFAULT_TIMEOUT if text is None else float(text)
        is_time = 0 < timeout < 10**6
    except ValueError:
        is_time, timeout = False, 0.0
    if not is_time:
        raise ValueError(f"--coordinator-timeout must be positive seconds, got {text}.")
    if coordinator is None or processes is None or process is None:
        return Place(None, None, None, timeout)
    if processes < 1:
        raise ValueError(f"--processes must be at least 1, got {processes}.")
    if process >= processes:
        raise ValueError(
            f"--process {process} is not among {processes} processes: number them from "
            f"0 to {processes - 1}."
        )
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(
            f"--coordinator must be the HOST:PORT of process 0, such as "
            f"first-machine:1234, got {coordinator}."
        )
    return Place(coordinator, processes, process, timeout)


def watch(args: Sequence[str]) -> int:
    """Carry out a command as one process of several, and say how it ended.

    Args:
        args: of the command line.

    Returns:
        the exit code.
    """
    try:
        place = place_of(args)
    except ValueError as error:
        return _say(str(error), 2)
    with tempfile.TemporaryDirectory(prefix="ornstein-process-") as folder:
        program = [sys.executable, "-P", "-m", "ornstein_processes", *args]
        # A session of its own: a terminal's Ctrl-C goes to this process alone, which
        # passes it on once. Told twice, a run would not save.
        child = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            env={"TF_CPP_MIN_LOG_LEVEL": "1", **os.environ, FOLDER: folder},
            start_new_session=True,
        )
        pass_on = lambda number, _: child.send_signal(number)
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, pass_on) for number in numbers}
        try:
            code = child.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if code >= 0:
            return code
        phase, _, detail = _read(Path(folder, _PHASE)).partition(" ")
        native = _read(Path(folder, _NATIVE))
    return _say(*_how_it_died(-code, place, phase, detail, native))


def _how_it_died(
    number: int, place: Place, phase: str, detail: str, native: str
) -> tuple[str, int]:
    """A sentence for a process that a signal ended, and the exit code."""
    again = "start all processes again"
    if detail:
        again = f"go on with `ornstein {detail}` in all processes, as they were started"
    found = _STATUS.search(native)
    if number != signal.SIGABRT or found is None:
        name = signal.Signals(number).name
        why = " (by somebody, or for want of memory)" if name == "SIGKILL" else ""
        lines = [line for line in native.splitlines() if not line.startswith("[Gloo]")]
        last = "" if why else "".join(f" {line};" for line in lines[-3:])
        return f"this process was ended by {name}{why}:{last} {again}.", 128 + number
    status, reason = found.groups()
    if phase != "connecting":
        return (
            f"another process of this run has ended, or {place.there} cannot be "
            f"reached any more: see what the others say, then {again}.",
            1,
        )
    if status == "ALREADY_EXISTS":
        return (
            f"another process came to {place.there} as --process {place.process}, too: "
            "give each a number of its own.",
            2,
        )
    if status == "INVALID_ARGUMENT":
        return (
            f"{place.there} knows no process {place.process} ({reason}): give all the "
            "same --processes, and each a --process below it.",
            2,
        )
    return (
        f"not all of {place.processes or 'the'} processes came to {place.there} within "
        f"{place.timeout:g} seconds: start each of them with the same --coordinator "
        "and --processes, or have them wait longer with --coordinator-timeout.",
        2,
    )


def main() -> NoReturn:
    """The child: join the others, and carry out the command line with them."""
    args = sys.argv[1:]
    folder = Path(os.environ[FOLDER])
    _keep_native_output(folder / _NATIVE)
    _phase(folder, "connecting")
    threading.Thread(target=_end_with_watcher, daemon=True).start()
    try:
        place = place_of(args)
        if place.coordinator is not None:
            _check_coordinator(place)
        _join(place)
    except (ValueError, OSError) as error:
        _leave(_say(str(error), 2))
    from ornstein._processes import farewell, hear_of_the_end

    _phase(folder, "connected")
    threading.Thread(target=_mind, args=(hear_of_the_end,), daemon=True).start()
    from ornstein.cli import main as run

    code = 1
    try:
        code = run(args)
    except KeyboardInterrupt:  # outside of what `run` handles
        code = 130
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    farewell(code, seconds=_FAREWELL)
    _leave(code)


def _check_coordinator(place: Place) -> None:
    """Say what is wrong with an address, which JAX would end the process for."""
    assert place.coordinator is not None
    host, _, port = place.coordinator.rpartition(":")
    if place.process == 0:
        family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
        try:
            socket.create_server(
                ("", int(port)),
                family=family,
                dualstack_ipv6=family == socket.AF_INET6,
            ).close()
        except OSError as error:
            raise OSError(
                f"process 0 cannot be the coordinator at {place.coordinator} "
                f"({error.strerror}): choose another port, the same for all processes."
            ) from error
        return
    begun, reason = time.monotonic(), "nothing answers"
    while True:
        left = place.timeout - (time.monotonic() - begun)
        if left <= 0:
            raise OSError(
                f"no coordinator at {place.coordinator} within {place.timeout:g} "
                f"seconds ({reason}): start process 0 there, see that the address is "
                "its own and the port is open, or wait longer with "
                "--coordinator-timeout."
            )
        try:
            socket.create_connection((host, int(port)), timeout=left).close()
            return
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
        time.sleep(min(0.3, max(left, 0.0)))


def _join(place: Place) -> None:
    """JAX's own beginning, which finds clusters by itself."""
    import jax

    try:
        jax.distributed.initialize(
            place.coordinator,
            place.processes,
            place.process,
            initialization_timeout=max(1, round(place.timeout)),
            heartbeat_timeout_seconds=_HEARTBEAT,
        )
    except ValueError as error:
        raise ValueError(
            f"--distributed finds no cluster that says what the processes are ({error})"
            ": give --coordinator HOST:PORT --processes N --process I."
        ) from error


def _mind(hear_of_the_end: Any) -> None:
    """End, with a sentence, when another process has ended with one."""
    text = hear_of_the_end()
    _leave(_say(text, 1))


def _end_with_watcher() -> None:
    """As at a scheduler's word, when whoever was called is gone."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_LAST_WAIT)
    os._exit(143)  # it waits for something that does not come


def _keep_native_output(path: Path) -> None:
    """What C++ prints goes to a file, and what Python prints where it went."""
    sys.stdout.flush()
    sys.stderr.flush()
    sys.stdout, sys.stderr = (
        os.fdopen(os.dup(number), "w", buffering=1, encoding="utf-8", errors=how)
        for number, how in ((1, "strict"), (2, "backslashreplace"))
    )
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)


def _phase(folder: Path, text: str) -> None:
    (folder / _PHASE).write_text(text, encoding="utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _say(text: str, code: int) -> int:
    text = re.sub(r"\s+", " ", text).strip()
    with contextlib.suppress(OSError):
        print(f"ornstein: {text}", file=sys.stderr, flush=True)
    return code


def _leave(code: int) -> NoReturn:
    """End at once: at Python's own end JAX waits for the others, minutes long."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _value(args: Sequence[str], name: str) -> str | None:
    """The last value of an option, in either spelling; `None` without."""
    found = None
    for i, arg in enumerate(args):
        flag, has_value, value = arg.partition("=")
        if flag.replace("_", "-") == f"--{name}":
            found = value if has_value else "".join(args[i + 1 : i + 2])
    return found


def _count(args: Sequence[str], name: str) -> int | None:
    text = _value(args, name)
    if text is not None and not text.isdecimal():
        raise ValueError(f"--{name} must be a number from 0, got {text!r}.")
    return None if text is None else int(text)


if __name__ == "__main__":
    main()
