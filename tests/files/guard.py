"""A call that may take thirty seconds and a gigabyte, and what it may raise."""

import contextlib
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ornstein
from ornstein._sentence import OptionError
from ornstein.data import DataError, DataNotFoundError
from ornstein.train import CheckpointError

SECONDS = 30.0
BYTES = 2**30
_HOME = str(Path(ornstein.__path__[0]))
_OURS = (DataError, DataNotFoundError, CheckpointError, OptionError, ValueError)
_OURS += (FileNotFoundError, FileExistsError)


class TooSlowError(BaseException):
    """Not an `Exception`, which a reader might take for damage."""


def guarded(call: Callable[[], Any]) -> BaseException | None:
    """What a call raises, in bounded time and memory."""
    try:
        with _limits(), warnings.catch_warnings():
            # NumPy says so of a header with a stray L, and reads it.
            warnings.filterwarnings("ignore", "Reading `.npy` or `.npz`")
            call()
    except (Exception, TooSlowError) as error:
        return error
    return None


def complaint(error: BaseException | None) -> str:
    """Why an error is none of ours; empty if it is, or if there is none."""
    if error is None:
        return ""
    text = str(error)
    said = f"{type(error).__name__}: {text}"
    if type(error) not in _OURS:
        return f"foreign type {said}"
    raised = traceback.extract_tb(error.__traceback__)[-1].filename
    if not raised.startswith(_HOME):
        return f"raised by {raised}, {said}"
    if not text.endswith((".", "….")) or len(text) < 30:
        return f"no sentence, {said}"
    return ""


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    """Both as the operating system has them; they end with the block."""

    def too_slow(number: int, frame: Any) -> None:
        raise TooSlowError(f"more than {SECONDS} s")

    with open("/proc/self/statm", encoding="utf-8") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)
