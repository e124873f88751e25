"""NumPy's own files: a header's claim is held against what is there."""

import contextlib
import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ._unreadable import UnreadableError, check_expansion, check_regular

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # that NumPy writes
_ENCRYPTED = 0x1
_MAX_BYTES = 2**62
# What zipfile and NumPy's parser of headers raise when they meet damage.
_DAMAGE = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


class Npz(NamedTuple):
    """What is in an `.npz` file.

    Attributes:
        names: of all arrays.
        arrays: those that were asked for and are there.
    """

    names: tuple[str, ...]
    arrays: dict[str, np.ndarray]


def read_npz(path: Path, wanted: Container[str] | None = None) -> Npz:
    """Arrays of an `.npz` file; pickled ones are never loaded.

    Args:
        path: the file.
        wanted: names of arrays; all by default.

    Raises:
        UnreadableError: for what is no regular file, damage, pickled objects, or
            arrays that say they are larger than what is there.
    """
    check_regular(path)
    with path.open("rb") as file, _as_unreadable():
        size = os.fstat(file.fileno()).st_size
        with zipfile.ZipFile(file) as members:
            infos = {i.filename.removesuffix(".npy"): i for i in members.infolist()}
            chosen = {
                name: info
                for name, info in infos.items()
                if wanted is None or name in wanted
            }
            # Members may overlap: together they cannot have more than the file.
            if sum(info.compress_size for info in chosen.values()) > size:
                raise UnreadableError("its parts say that they are larger than it")
            check_expansion(sum(info.file_size for info in chosen.values()), size)
            arrays = {n: _member(members, info) for n, info in chosen.items()}
    return Npz(tuple(infos), arrays)


def npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each array of an `.npz` file, from its header alone.

    Args:
        path: the file.

    Raises:
        UnreadableError: as `read_npz`.
    """
    check_regular(path)
    found = {}
    with path.open("rb") as file, _as_unreadable(), zipfile.ZipFile(file) as members:
        for info in members.infolist():
            with members.open(info) as member:
                shape = _check_header(member, info.file_size)
            found[info.filename.removesuffix(".npy")] = shape
    return found


def check_npy(path: Path) -> None:
    """Check an `.npy` file before `numpy.load` opens it.

    Raises:
        UnreadableError: for what is no regular file, a damaged header, pickled objects,
            or an array that says it is larger than the file.
        FileNotFoundError: if nothing is there.
    """
    check_regular(path)
    with path.open("rb") as file, _as_unreadable():
        _check_header(file, os.fstat(file.fileno()).st_size)


def _member(members: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _COMPRESSIONS:
        raise UnreadableError("it is packed in a way that NumPy does not write")
    with members.open(info) as file:
        _check_header(file, info.file_size)
    with members.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _check_header(file: IO[bytes] | io.BufferedIOBase, size: int) -> tuple[int, ...]:
    """Refuse what a header cannot mean; the shape that it says."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise UnreadableError(f"an array is of the unknown version {version}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise UnreadableError("it has pickled objects")
    if any(isinstance(length, bool) or length < 0 for length in shape):
        raise UnreadableError(f"an array says its shape is {shape}")
    # Axes beside an empty one, and numbers of no bytes, could be as many as they like.
    if math.prod(length or 1 for length in shape) * (dtype.itemsize or 1) > _MAX_BYTES:
        raise UnreadableError(f"an array says its shape is {shape}")
    claimed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if claimed > there:
        raise UnreadableError(
            f"it is cut short, for an array says it has {claimed:,} bytes where "
            f"{max(there, 0):,} are"
        )
    return shape


@contextlib.contextmanager
def _as_unreadable() -> Iterator[None]:
    try:
        yield
    except UnreadableError:
        raise
    except MemoryError as error:
        raise UnreadableError("there is not enough memory for it") from error
    except _DAMAGE as error:
        raise UnreadableError("it is cut short or something else") from error
