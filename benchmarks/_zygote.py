"""Commands in processes of their own that start in a second or two, to be killed.

A process that has imported what our own modules import, but started no backend of
JAX's (whose threads no fork survives), forks for each command.
"""

import functools
import importlib
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

_HEAVY = (
    "jax",
    "orbax.checkpoint",
    "optax",
    "equinox",
    "diffrax",
    "tensorboardX",
    "tensorboardX.summary",
    "tensorboardX.record_writer",
    "pandas",
    "scipy.stats",
    "sklearn.preprocessing",
    "matplotlib.pyplot",
    "tyro",
    "rich.progress",
    "numpyro.distributions",
    "arviz",
)
_POLL_SECONDS = 0.005
_MOST_SECONDS = 900.0


def preload() -> None:
    """Import what is slow to import, once; compiled programs are kept, as usual."""
    # Unless the command sets the cache itself, small programs are not kept in it.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    for name in _HEAVY:
        importlib.import_module(name)


def start(arguments: list[str], log: Path, *, save_every: float) -> int:
    """Start a command of ornstein's; its process's number.

    Args:
        arguments: of the command line.
        log: where its output goes.
        save_every: seconds from one checkpoint to the next, and half those of a call.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a backend, not begun yet
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv[0] = "ornstein"
        code = _command(arguments, save_every)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command(arguments: list[str], save_every: float) -> int:
    from ornstein.cli import main
    from ornstein.recipe import _run_sampling, _training
    from ornstein.sampling import _run
    from ornstein.train import _session

    _session._CALL_SECONDS = _run._CALL_SECONDS = save_every / 2
    often = functools.partial(_training.Run, checkpoint_every=save_every)
    setattr(_training, "Run", often)  # noqa: B010
    saving = functools.partial(_run_sampling.sample, save_every=save_every)
    setattr(_run_sampling, "sample", saving)  # noqa: B010
    return main(arguments)


def ended(pid: int, *, within: float = _MOST_SECONDS) -> int | None:
    """A process's exit code; `None` of one that had to be killed.

    Args:
        pid: of the process.
        within: seconds, after which it gets SIGKILL.
    """
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL_SECONDS)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == -signal.SIGKILL else code
