"""One process at a time in a folder: a lock with its owner's name.

The lock is the system's (`flock` on a file in the folder), so it is gone when its
process is, however it died; the file itself means nothing. Over NFS it holds where the
server has a lock manager, and between machines only then. Where a file system has no
locks (or the system no `flock`), the log says so and nothing is locked.
"""

import contextlib
import logging
import os
import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ._atomic import naming

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

logger = logging.getLogger("ornstein")

LOCK = ".ornstein.lock"
_MARK = b"process "
"""With which every lock file that has an owner begins."""

_held: dict[tuple[int, ...], int] = {}
"""How often each lock is held, by (device, inode, process, thread)."""


@contextlib.contextmanager
def lock_folder(folder: Path, *, is_shared: bool = False) -> Iterator[None]:
    """Keep other processes, and other threads, out of a folder.

    Within one thread it may be taken again, as `fit` does inside the command line. The
    file follows the folder when that is renamed.

    Args:
        folder: which exists.
        is_shared: let others in that share it, too: to read what must not be replaced
            meanwhile.

    Raises:
        BlockingIOError: if it is in use, naming by whom: of several that share it, the
            last to begin.
        FileExistsError: if a file that is no lock has its name.
    """
    path = folder / LOCK
    file, is_ours = _open(path, is_shared=is_shared)
    key = _key(file)
    _held[key] = _held.get(key, 0) + 1
    try:
        yield
    finally:
        _held[key] -= 1
        if not _held[key]:
            del _held[key]
            if is_ours:
                _remove(path, file)
        os.close(file)


def _open(path: Path, *, is_shared: bool) -> tuple[int, bool]:
    """The open file, and whether the lock was taken rather than held already."""
    while True:
        # No link is followed: what it points to would be written to.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with naming(path.parent):
            file = os.open(path, flags, 0o644)
        if _key(file) in _held:
            return file, False
        try:
            _lock(file, path, is_shared=is_shared)
            if not _MARK.startswith(os.pread(file, len(_MARK), 0)):
                raise FileExistsError(
                    f"{path} is in the way, and is no lock of ornstein's: move it away."
                )
        except BaseException:
            os.close(file)
            raise
        if _is_file(path, file):
            # A full disk leaves the owner without a name, and the lock a lock.
            with contextlib.suppress(OSError):
                os.ftruncate(file, 0)
                os.write(file, _owner().encode())
            return file, True
        os.close(file)  # removed by its last owner in the meantime: another one


def _lock(file: int, path: Path, *, is_shared: bool) -> None:
    try:
        if fcntl is None:
            raise OSError("this system has no flock")
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(file, 1000, 0).decode(errors="replace")
        raise BlockingIOError(
            f"{path.parent} is in use by {owner or 'another process'}: wait until it "
            "ends, or choose another folder."
        ) from error
    except OSError as error:
        logger.warning(
            "%s cannot be locked (%s): see that no other process writes there",
            path.parent,
            error,
        )


def _remove(path: Path, file: int) -> None:
    """Leave no file behind, unless others share the lock or the folder has moved."""
    with contextlib.suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_file(path, file):
            path.unlink()


def _is_file(path: Path, file: int) -> bool:
    """Whether the open file is still the one at its path."""
    try:
        there, ours = path.lstat(), os.fstat(file)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _key(file: int) -> tuple[int, ...]:
    stat = os.fstat(file)
    return stat.st_dev, stat.st_ino, os.getpid(), threading.get_ident()


def _owner() -> str:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:500]
    return f"process {os.getpid()} on {socket.gethostname()} ({command})"
