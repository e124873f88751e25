"""Files that are whole or absent, whenever the process is killed."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there in one step.

    Args:
        path: of the file, which may exist and is then replaced.
        content: all of it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
