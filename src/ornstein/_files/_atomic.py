"""Files that are whole or absent, whenever the process is killed."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Of file systems that know no such thing, as some shared ones do for folders."""
_LONGEST = 230
"""Bytes of a name to which more can be added: 255 is what systems have."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there in one step.

    Args:
        path: of the file, which may exist and is then replaced.
        content: all of it.

    Raises:
        OSError: naming `path`, never the file beside it.
    """
    temporary = _beside(path)
    with naming(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A name for now: of one as long as may be, its beginning and its digest."""
    name = path.name
    if len(os.fsencode(name)) > _LONGEST:
        name = f"{name[:40]}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"
    return path.with_name(f".{name}.{os.getpid()}.tmp")


def to_disk(*paths: Path) -> None:
    """Have files, or the names in folders, outlive a loss of power.

    Args:
        paths: of them.
    """
    if os.name == "nt":  # opens no folders, and flushes none that are read
        return
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise
        finally:
            os.close(number)


def link_atomically(path: Path, other: Path) -> None:
    """Give a file a second name in its folder, in one step and without a copy.

    To keep what `write_atomically` is about to replace. Copies where a file system has
    no links.

    Args:
        path: of the file.
        other: the second name, which may exist and is then replaced.
    """
    temporary = _beside(other)
    try:
        os.link(path, temporary)
    except OSError:
        write_atomically(other, path.read_bytes())
        return
    try:
        os.replace(temporary, other)
    finally:
        temporary.unlink(missing_ok=True)  # left where both were one file already


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let the system's errors name a file: those of a full disk name none.

    Args:
        path: what is being written, as its owner knows it.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a sentence of our own
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
