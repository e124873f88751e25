"""Arrays of real numbers in MATLAB's files of version 5.

Not by `scipy.io.loadmat`, which indexes a table in C by a number of the file: damage
there ends the process. What follows is the part of MathWorks' *MAT-File Format*,
chapter 1, that such arrays need.
"""

import math
import struct
import zlib
from collections.abc import Container, Iterator
from pathlib import Path

import numpy as np

from ._unreadable import UnreadableError, read_bytes

_MAX_BYTES = 2**26  # of the file, and of a variable
_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"}
_STORED |= {7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: np.float64, 7: np.float32}
_IS_COMPLEX = 0x800


def read_mat(path: Path, wanted: Container[str]) -> dict[str, np.ndarray]:
    """Variables of a MATLAB file, of those that are there and are real numbers.

    Args:
        path: the file.
        wanted: names of variables.

    Raises:
        UnreadableError: for what is no such file, is damaged, or has more than 64 MiB.
    """
    data = read_bytes(path, limit=_MAX_BYTES)
    orders = {b"IM": "<", b"MI": ">"}
    if len(data) < _HEADER or data[126:128] not in orders:
        raise UnreadableError("it is cut short or something else")
    order = orders[data[126:128]]
    if struct.unpack(f"{order}H", data[124:126]) != (0x0100,):
        raise UnreadableError("it is of another version than 5, which save -v6 writes")
    found = {}
    for kind, body in _elements(data[_HEADER:], order):
        if kind == _COMPRESSED:
            inner = next(_elements(_unpacked(body), order), (0, b""))
            kind, body = inner
        if kind != _MATRIX:
            raise UnreadableError("it is cut short or something else")
        name, array = _matrix(body, order)
        if array is not None and name in wanted:
            found[name] = array
    return found


def _unpacked(body: bytes) -> bytes:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(body, _MAX_BYTES)
    except zlib.error as error:
        raise UnreadableError("it is cut short or something else") from error
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise UnreadableError("a variable is cut short, or has more than 64 MiB")
    return data


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """The type and content of each element, one after the other."""
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise UnreadableError("it is cut short or something else")
        kind, size = struct.unpack_from(f"{order}II", data, at)
        start = at + 8
        if kind >> 16:  # small: both in one number, and four bytes behind it
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        if start + size > len(data) or (start == at + 4 and size > 4):
            raise UnreadableError(
                f"it is cut short, for an element says it has {size:,} bytes where "
                f"{len(data) - start:,} are"
            )
        yield kind, data[start : start + size]
        at = at + 8 if start == at + 4 else start + size
        if kind != _COMPRESSED:
            at += -at % 8


def _matrix(body: bytes, order: str) -> tuple[str, np.ndarray | None]:
    """A variable's name, and its numbers if they are real ones."""
    parts = _elements(body, order)
    flags, dims, name = (next(parts, (0, b""))[1] for _ in range(3))
    if len(flags) != 8 or len(dims) % 4:
        raise UnreadableError("a variable has no class or shape")
    flag = struct.unpack(f"{order}I", flags[:4])[0]
    shape = struct.unpack(f"{order}{len(dims) // 4}i", dims)
    said = name.decode("latin-1")
    if flag & 0xFF not in _CLASSES or flag & _IS_COMPLEX:
        return said, None
    kind, numbers = next(parts, (0, b""))
    dtype = np.dtype(order + _STORED.get(kind, "V1"))
    size = -1 if min(shape, default=0) < 0 else math.prod(shape) * dtype.itemsize
    if kind not in _STORED or size != len(numbers):
        raise UnreadableError(f"{said!r} has {len(numbers):,} bytes for {shape}")
    array = np.frombuffer(numbers, dtype).astype(_CLASSES[flag & 0xFF])
    return said, array.reshape(shape, order="F")
