"""Damage to a file: at random, in its numbers, and below its checksums."""

import json
import random
import re
import struct
from pathlib import Path
from typing import Any

from files.readers import (
    Reader,
    rechecked_png,
    redigested,
    repacked_mat,
    repacked_npz,
)

_LARGE = (0, 1, 2, 127, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
_LARGE += (2**40, 2**62, 2**63 - 1, 2**64 - 1)
_NUMBERS = ("0", "-1", "1", "7", "65536", "2147483648", "9223372036854775807")
_NUMBERS += ("1000000000000000000", "1e300", "1e400", "-1e-320", "nan", "1" * 5000, "")
_JUNK: tuple[Any, ...] = (None, True, -1, 0, 2**62, 10**30, 1e300, "", "x", [], {})
_JUNK += ([[]], {"a": 1}, [1, "a"], float("nan"), [[[]] * 3] * 3, "a" * 300)


def mutated(data: bytes, reader: Reader, path: Path, rng: random.Random) -> bytes:
    """A damaged copy of a valid file.

    Args:
        data: the valid file.
        reader: whose file it is.
        path: where it lies.
        rng: decides the damage.
    """
    layer = reader.layer if rng.randrange(3) else ""
    if layer == "npz":
        return repacked_npz(data, lambda name, part: _member(name, part, rng))
    if layer == "png":
        return rechecked_png(_bytes(data, rng))
    if layer == "mat":
        return repacked_mat(data, lambda inner: _bytes(inner, rng))
    if layer == "json":
        return _json(data, rng)
    if layer == "meta":
        return redigested(path.parent, _json(data, rng))
    return _bytes(data, rng)


def _member(name: str, part: bytes, rng: random.Random) -> bytes:
    if rng.randrange(2):
        return part
    if b"{" in part[128:] and rng.randrange(4):  # a header of ours, behind NumPy's
        text = _json(part[128:], rng)
        head = part[:128].replace(
            f"({len(part) - 128},)".encode(), f"({len(text)},)".encode()
        )
        return head[:127].ljust(127) + b"\n" + text
    return _bytes(part, rng)


def _json(data: bytes, rng: random.Random) -> bytes:
    try:
        content = json.loads(data)
    except ValueError:
        return _bytes(data, rng)
    for _ in range(rng.randrange(1, 3)):
        content = _replaced(content, rng)
    if not rng.randrange(20):
        return b"[" * 100_000 + b"]" * 100_000
    return json.dumps(content).encode()


def _replaced(node: Any, rng: random.Random) -> Any:
    """Somewhere in a tree, junk for a value, or a key gone."""
    if isinstance(node, dict) and node and rng.randrange(5):
        name = rng.choice(sorted(node))
        if not rng.randrange(4):
            return {key: value for key, value in node.items() if key != name}
        return node | {name: _replaced(node[name], rng)}
    if isinstance(node, list) and node and rng.randrange(5):
        at = rng.randrange(len(node))
        return [*node[:at], _replaced(node[at], rng), *node[at + 1 :]]
    return rng.choice(_JUNK)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randrange(1, 4)):
        data = rng.choice(_KINDS)(data, rng)
    return data


def _at(data: bytes, rng: random.Random) -> int:
    """Half of the time near an end, where headers are."""
    size = len(data)
    if rng.randrange(2):
        return rng.randrange(size + 1)
    near = rng.randrange(min(size, 200) + 1)
    return near if rng.randrange(2) else size - near


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: _at(data, rng)]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    junk = rng.choice([b"\0" * 8, b"\xff" * 9, b"(" * 300, b",", b"\n", b'"', b"=1\t"])
    return data[:at] + junk + data[at:]


def _splice(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted((_at(data, rng), _at(data, rng)))
    at = _at(data, rng)
    piece = data[start : min(end, start + 1000)]
    return data[:at] + piece + data[at + len(piece) * rng.randrange(2) :]


def _drop(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted((_at(data, rng), _at(data, rng)))
    return data[:start] + data[min(end, start + 50) :]


def _number(data: bytes, rng: random.Random) -> bytes:
    """A number that is written in digits becomes another."""
    found = list(re.finditer(rb"\d+(\.\d+)?", data[:20_000]))
    if not found:
        return _integer(data, rng)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(_NUMBERS).encode() + data[match.end() :]


def _integer(data: bytes, rng: random.Random) -> bytes:
    """Two, four or eight bytes become a number that is large or small."""
    form = rng.choice(["<H", "<I", "<Q", ">H", ">I", ">Q"])
    size = struct.calcsize(form)
    packed = struct.pack(form, rng.choice(_LARGE) % 2 ** (8 * size))
    at = _at(data, rng)
    return data[:at] + packed + data[at + size :]


_KINDS = (_flip, _flip, _cut, _insert, _splice, _drop, _number, _number, _integer)
