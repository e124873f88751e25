"""Compiled programs of this process, which are forgotten before there are too many.

Each holds pieces of memory that Linux counts: of 65,530 a process dies without a word
(`vm.max_map_count`). Seen: scikit-learn's checks of one estimator, in a worker that had
run a thousand tests before.
"""

import ctypes
import os
import sys
from pathlib import Path

import jax

_MOST_RESIDENT = 4 * 2**30
"""Bytes of a worker: two of them, and what they start, have 24 GiB."""
_MOST_PIECES = 20_000


def forget_programs_if_many() -> None:
    """Most come back from the cache on disk; the smallest are compiled again."""
    if _resident() > _MOST_RESIDENT or _pieces() > _MOST_PIECES:
        jax.clear_caches()
        _give_back_memory()


def _give_back_memory() -> None:
    """Of what is freed, glibc keeps two thirds: then every module's end forgets all."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _resident() -> int:
    """Bytes of memory that this process has; 0 where nobody says."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return 0
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _pieces() -> int:
    """How many pieces of memory this process has; 0 where nobody says."""
    maps = Path("/proc/self/maps")
    return maps.read_bytes().count(b"\n") if maps.is_file() else 0
