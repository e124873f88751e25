"""What is refused of any file, whatever its format."""

import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
# Both have to be passed: constant columns and white pages compress well and are small.
_MAX_EXPANDED = 2**29
_MAX_RATIO = 500


class UnreadableError(ValueError):
    """Why a file cannot be read: a clause, which its reader makes a sentence of."""


def check_regular(path: Path) -> None:
    """Refuse what would hang or never end when it is read.

    Args:
        path: a file, or a link to one. That nothing is there is left to who opens it.

    Raises:
        UnreadableError: for a folder, named pipe, device or socket.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        raise UnreadableError(f"it is {_kind(mode)}, not a regular file")


def check_folder(path: Path) -> None:
    """Refuse what is no folder, or no link to one.

    Args:
        path: of a folder. That nothing is there is left to who looks into it.

    Raises:
        UnreadableError: for a file, named pipe, device or socket, or a link to nothing.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise UnreadableError("it is a link to nothing, not a folder") from error
        return
    if not stat.S_ISDIR(mode):
        raise UnreadableError(f"it is {_kind(mode)}, not a folder")


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "of a kind of its own")


def check_expansion(num_bytes: int, stored: int) -> None:
    """Refuse a bomb: hundreds of megabytes out of next to nothing.

    Args:
        num_bytes: what the content says it takes in memory.
        stored: what it takes in the file.

    Raises:
        UnreadableError: for more than 512 MiB that are more than 500 times `stored`.
    """
    if num_bytes > _MAX_EXPANDED and num_bytes > _MAX_RATIO * stored:
        raise UnreadableError(
            f"its {stored:,} bytes say they become {num_bytes:,}, which no data do"
        )


def check_fits_memory(path: Path) -> None:
    """Refuse a regular file that is larger than this machine's memory.

    Raises:
        UnreadableError: saying its size and the machine's memory.
    """
    check_regular(path)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = path.stat().st_size
    if size > memory:
        raise UnreadableError(
            f"it has {size:,} bytes, and this machine's memory {memory:,}"
        )


def read_bytes(path: Path, *, limit: int) -> bytes:
    """All of a regular file.

    Args:
        path: the file.
        limit: of its size in bytes.

    Raises:
        UnreadableError: for what is no regular file, or is larger.
        OSError: if it cannot be opened.
    """
    check_regular(path)
    with path.open("rb") as file:
        data = file.read(limit + 1) if path.stat().st_size <= limit else None
    if data is None or len(data) > limit:
        raise UnreadableError(
            f"it has {path.stat().st_size:,} bytes, and at most {limit:,} are read"
        )
    return data
