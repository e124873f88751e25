"""The program `ornstein`."""

import contextlib
import io
import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
from rich.logging import RichHandler

from .._memory import is_exhausted, not_enough
from .._mesh import shared_mesh
from .._processes import is_first, is_lost, lost, say_last
from .._sentence import Sentence
from ..sampling import StuckChainError
from ..sweep import FailedRunsError
from ..train import CheckpointError, NonFiniteError
from ._completion import Completion
from ._devices import mesh_of
from ._flags import flagged, said
from ._parse import parse
from ._several import joined
from ._signals import Interruption, Terminated, handled
from ._sweep import Sweep
from ._terminal import Terminal
from ._usage import UsageError
from .commands import (
    Compare,
    Evaluate,
    Export,
    Info,
    Predict,
    Prune,
    Report,
    Reproduce,
    Sample,
    Train,
)

COMMANDS = {
    "train": Train,
    "sample": Sample,
    "sweep": Sweep,
    "compare": Compare,
    "evaluate": Evaluate,
    "predict": Predict,
    "export": Export,
    "prune": Prune,
    "report": Report,
    "reproduce": Reproduce,
    "info": Info,
    "completion": Completion,
}
"""Each a dataclass of its options with `run(terminal, command)` and `json`."""

Completion.commands.update(COMMANDS)
Sweep.commands.update(COMMANDS)

_BAD_INPUT = (ValueError, TypeError, NotImplementedError, OSError, CheckpointError)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: without the program's name; `sys.argv`'s by default.

    Returns:
        The exit code: 0; 1 for a run that failed, or one of a sweep; 2 for bad input,
        a full disk, or a result as JSON whose reader is gone; 130 after Ctrl-C, 143
        after SIGTERM.
        With `ORNSTEIN_TRACEBACK` set, bad input raises instead.
    """
    args = sys.argv[1:] if args is None else list(args)
    if isinstance(sys.stdout, io.TextIOWrapper):  # an ASCII terminal has no ±
        sys.stdout.reconfigure(errors="replace")
    is_quiet = not is_first()
    terminal = Terminal(is_quiet=is_quiet)
    handler = RichHandler(
        console=terminal.errors, show_path=False, show_time=False, show_level=False
    )
    handler.addFilter(_spell)
    logger = logging.getLogger("ornstein")
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # orbax gives the root logger a handler of its own
    absl = logging.getLogger("absl")
    was_disabled, absl.disabled = absl.disabled, True  # orbax logs what it raises
    try:
        with handled(Interruption()):
            _check_text(args)
            _cache_programs()
            command = parse(args, COMMANDS)
            terminal = Terminal(is_json=command.json, is_quiet=is_quiet)
            command = joined(command)
            with shared_mesh(mesh_of(command)):
                typed = shlex.join(["ornstein", *args])
                terminal.result(command.run(terminal, typed))
    except Terminated:
        return 143
    except KeyboardInterrupt:
        return 130
    except _BAD_INPUT as error:
        if is_lost(error):
            return _complain(lost(error), 1)
        if os.environ.get("ORNSTEIN_TRACEBACK"):
            raise
        return _complain(error, 2)
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if is_lost(error):
            return _complain(lost(error), 1)
        if not is_exhausted(error):
            raise
        return _complain(_too_large(error), 2)
    except (NonFiniteError, StuckChainError, FailedRunsError) as error:
        return _complain(error, 1)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
        absl.disabled = was_disabled
    return 0


def _spell(record: logging.LogRecord) -> bool:
    """What is logged names options as --flags."""
    if isinstance(record.msg, str):
        record.msg = flagged(record.msg)
    return True


def _complain(error: BaseException, code: int) -> int:
    """One line that says what is wrong and what to do."""
    # An `OSError` of the system's own names its number; its file and reason suffice.
    text = said(error)
    if isinstance(error, OSError) and error.strerror is not None:
        file = "" if error.filename is None else f"{error.filename}: "
        text = f"{file}{error.strerror}"
    text = re.sub(r"\s+", " ", text).strip() or type(error).__name__
    say_last(text)
    with contextlib.suppress(OSError):  # of a full disk, to which it is written too
        print(f"ornstein: {text}", file=sys.stderr, flush=True)
    _drop_unwritten()
    return code


def _too_large(error: BaseException) -> BaseException:
    """The error itself where it says what needs less, as training's does."""
    if error.args and isinstance(error.args[0], Sentence):
        return error
    remedy = Sentence("give less data at a time, fewer draws, or a smaller model")
    return not_enough("this", error, remedy)


def _check_text(args: Sequence[str]) -> None:
    """Refuse names that cannot be printed, or kept with a run."""
    for arg in args:
        if not arg.isascii() and any("\ud800" <= c <= "\udfff" for c in arg):
            raise UsageError(
                f"{arg!a} is not UTF-8, in which a run's files are written: rename "
                "what it stands for."
            )


def _drop_unwritten() -> None:
    """Let Python's own end meet no full disk, for which it has its own exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def _cache_programs() -> None:
    """Keep compiled programs, so that a second run starts in seconds."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        try:
            root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        except RuntimeError:  # no home folder: each run compiles its own
            return
        folder = str(root / "ornstein" / "jax")
        jax.config.update("jax_compilation_cache_dir", folder)
        # Building a model compiles a hundred small programs, which add up to seconds.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
