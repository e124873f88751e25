"""JSON of bounded size and depth."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ._unreadable import UnreadableError, read_bytes

# Of small lists, JSON takes twenty times its size in memory.
_MAX_BYTES = 2**24
_MAX_DEPTH = 100


def read_json(path: Path, *, limit: int = _MAX_BYTES) -> Any:
    """The content of a JSON file.

    Args:
        path: the file.
        limit: of its size in bytes.

    Raises:
        UnreadableError: for what is no regular file, too large, too deep, or not JSON.
        OSError: if it cannot be opened.
    """
    return parse_json(read_bytes(path, limit=limit))


def parse_json(data: bytes) -> Any:
    """What JSON says.

    Raises:
        UnreadableError: for brackets that nest more than 100 deep, or what is no JSON.
    """
    # Python's parser calls itself for each bracket. Those in strings count here, too:
    # nothing that is ours has a hundred more of one kind than of the other there.
    raw = np.frombuffer(data, np.uint8)
    opened = np.isin(raw, list(b"[{")).astype(np.int32)
    depth = np.cumsum(opened - np.isin(raw, list(b"]}")))
    if depth.size and depth.max() > _MAX_DEPTH:
        raise UnreadableError(f"its brackets nest more than {_MAX_DEPTH} deep")
    try:
        return json.loads(data.decode("utf-8"))
    except ValueError as error:  # of JSON, UTF-8, and numbers of thousands of digits
        raise UnreadableError(f"it is no JSON ({error})") from error
