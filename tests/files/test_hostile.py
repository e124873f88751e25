"""The table of hostile files: each is one sentence, soon, and in little memory."""

import io
import json
import os
import shutil
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
from files.guard import complaint, guarded
from files.readers import READERS, redigested, repacked_npz

from ornstein._files import _unreadable
from ornstein.data.tables._frame import _MAX_COLUMNS

DEEP = b"[" * 100_000 + b"]" * 100_000


def content(data: bytes | str) -> Callable[[Path], None]:
    raw = data.encode() if isinstance(data, str) else data
    return lambda path: ignored(path.write_bytes(raw))


def ignored(value: Any) -> None:
    del value


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def in_place_of_its_folder(make: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Not the file is replaced, but the folder that has it."""

    def make_folder(path: Path) -> None:
        shutil.rmtree(path.parent)
        path.parent.touch()
        make(path.parent)

    return make_folder


def bound_socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name is short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def hollow(size: int) -> Callable[[Path], None]:
    """A file with nothing in it but its size."""
    return lambda path: os.truncate(path, size)


def npy_header(shape: Any, dtype: str = "<f8", version: int = 1) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n"
    head = b"\x93NUMPY" + bytes([version, 0])
    return head + struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()


def npz(**members: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in members.items():
                archive.writestr(f"{name}.npy", part)

    return make


def bomb(path: Path) -> None:
    """Members that say they become 4 GB each."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.zeros((1000, 2)), y=np.arange(1000))
    raw = bytearray(buffer.getvalue())
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = raw.find(mark)
        while start >= 0:
            struct.pack_into("<I", raw, start + at, 0xFFFFFFF0)
            start = raw.find(mark, start + 4)
    path.write_bytes(bytes(raw))


def encrypted(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    start = raw.find(b"PK\x01\x02")
    while start >= 0:
        raw[start + 8] |= 1
        start = raw.find(b"PK\x01\x02", start + 4)
    path.write_bytes(bytes(raw))


def pickled(path: Path) -> None:
    np.savez(path, x=np.array([{}, {}], object), y=np.arange(2))


def rows(*cells: str, header: str = "x,count,name,y") -> Callable[[Path], None]:
    return content("\n".join([header, *cells, ""]))


NUMBERS = [f"{i},{i % 3},{'ab'[i % 2]},{i}.5" for i in range(12)]
TIMES = [f"a,{i},{i}.5" for i in range(4)] + [f"b,{i},{i}.5" for i in range(4)]


def png(width: int, height: int) -> Callable[[Path], None]:
    def chunk(name: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + crc

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(10_000_000))
    parts = ((b"IHDR", size), (b"IDAT", pixels), (b"IEND", b""))
    return content(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(n, b) for n, b in parts))


def constant_column(path: Path) -> None:
    """A run of one number: 4 MB in a few kilobytes."""
    ones = np.ones(250_000)
    pq.write_table(pa.table({"x": ones, "y": ones}), path, compression="zstd")


def hub(**columns: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path)


def mat(**arrays: Any) -> Callable[[Path], None]:
    return lambda path: scipy.io.savemat(path, arrays)


def claimed_mat(path: Path) -> None:
    """2 GB of numbers, says the tag of an element in 2 MB."""
    raw = bytearray(path.read_bytes())
    struct.pack_into("<I", raw, 132, 2**31 - 8)
    at = raw.find(b"Xtr") + 8
    struct.pack_into("<I", raw, at, 2**31 - 64)
    path.write_bytes(bytes(raw))


def header(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """A file of ours with its JSON header changed."""

    def member(part_name: str, part: bytes) -> bytes:
        if part_name != f"{name}.npy":
            return part
        text = json.dumps(change(json.loads(part[128:]))).encode()
        return npy_header(f"({len(text)},)", "|u1") + text

    return lambda path: ignored(
        path.write_bytes(repacked_npz(path.read_bytes(), member))
    )


def changed(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """JSON with something else in it."""

    def make(path: Path) -> None:
        text = json.dumps(change(json.loads(path.read_text(encoding="utf-8"))))
        if path.name == "meta.json":
            text = redigested(path.parent, text.encode()).decode()
        path.write_text(text, encoding="utf-8")

    return make


def without(name: str) -> Callable[[Any], Any]:
    return lambda found: {key: found[key] for key in found if key != name}


def huge_leaf(found: Any) -> Any:
    (leaf_name, _, dtype), *others = found["leaves"]
    return found | {"leaves": [[leaf_name, [10**12, 10**6], dtype], *others]}


HUGE = "(1000000000000,)"
CLAIM = "cut short, for an array says it has 8,000,000,000,000 bytes where 0 are"
HEADER = npy_header("(" * 5000 + ")" * 5000)
# name: (reader, how the file is made, the sentence)
HOSTILE: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "npz claims 8 TB": ("npz", npz(x=npy_header(HUGE), y=npy_header(HUGE)), CLAIM),
    "npz claims 4 GB a member": (
        "packed npz",
        bomb,
        "they become 4,294,967,280, which",
    ),
    "npz with parentheses": ("npz", npz(x=HEADER, y=HEADER), "cut short or something"),
    "npz of no bytes": (
        "npz",
        npz(x=npy_header(f"({2**62}, 4)", "|S0"), y=npy_header("(1,)")),
        r"says its shape is \(4611686018427387904, 4\)",
    ),
    "npz of a negative shape": (
        "npz",
        npz(x=npy_header("(-1, 2)"), y=npy_header("(1,)")),
        r"says its shape is \(-1, 2\)",
    ),
    "npz of another version": (
        "npz",
        npz(x=b"\x93NUMPY\x09\x00" + bytes(80), y=b""),
        r"unknown version \(9, 0\)",
    ),
    "npz with a lock": ("npz", encrypted, "packed in a way that NumPy does not write"),
    "npz with pickles": ("npz", pickled, "has pickled objects; write it again"),
    "npz that is hollow": ("npz", hollow(2**40), "cut short or something else"),
    "npz is a folder": ("npz", folder, "it is a folder, not a regular file"),
    "csv of 1 TB": ("csv", hollow(2**43), "8,796,093,022,208 bytes, and this machine"),
    "csv of NULs": ("csv", content(b"\0" * 5000), "has NUL bytes in its first line"),
    "csv in UTF-16": (
        "csv",
        lambda path: ignored(path.write_text("x,name\n1,a\n2,b\n", "utf-16")),
        "has UTF-16 in its first line, .* save it again as CSV in UTF-8",
    ),
    "csv of too many columns": (
        "csv",
        content(",".join(f"c{i}" for i in range(_MAX_COLUMNS + 1)) + "\n1\n"),
        "has 100,001 columns .* at most 100,000 are read: give arrays instead",
    ),
    "csv with 1e300": (
        "csv",
        rows(*NUMBERS[:5], "1e300,2,a,3", *NUMBERS[5:]),
        r"has 1e\+300 in row \d+ \(column x\), counting from 0: the squares of such",
    ),
    "csv with 1e-300 apart": (
        "csv",
        rows(*(f"{i}e-300,{i % 3},{'ab'[i % 2]},1" for i in range(12))),
        r"e-(300|299) in row \d+ \(column x\), .*beyond double precision",
    ),
    "inputs beyond single": (
        "csv inputs",
        content("x,count,y\n1,2,3\n1,1e39,2\n"),
        r"has 1e\+39 in row 1 \(column 1\), .*beyond single precision",
    ),
    "series with 1e300": (
        "long csv",
        rows(*TIMES[:5], "b,1,1e300", *TIMES[6:], header="s,t,v"),
        r"long.csv: series \d at its time number 1 \(column v\) has 1e\+300, .*beyond",
    ),
    "series at time 1e300": (
        "long csv",
        rows(*TIMES[:7], "b,1e300,1", header="s,t,v"),
        r"series 'b': the time 1e\+300 of row 7, .*beyond single precision",
    ),
    "series in the year 9999": (
        "long csv of dates",
        rows(*(f"a,{y}-01-01,1" for y in (2001, 2002, 9999)), header="s,t,v"),
        "dates outside the years 1678 to 2262",
    ),
    "parquet of text": (
        "parquet",
        content("PAR1 and no more"),
        "cannot be read as par",
    ),
    "hub without images": (
        "hub",
        hub(image=["a", "b"], label=[0, 1]),
        "no image in every cell of 'image'",
    ),
    "hub with gaps": (
        "hub",
        hub(image=[{"bytes": b"x"}, {"bytes": b"x"}], label=[0, None]),
        "1 empty cells in 'label'",
    ),
    "hub with no bytes": (
        "hub",
        hub(image=[{"bytes": None, "path": "a"}], label=[0]),
        "no image in every cell",
    ),
    "image of 3.6 gigapixels": ("PNG", png(60_000, 60_000), "cannot be read as an ima"),
    "image of 69 megapixels": (
        "PNG",
        png(8_300, 8_300),
        "8,300 × 8,300 pixels, and at most 67,108,864 are read",
    ),
    "input of 69 megapixels": ("image input", png(1, 2**26 + 1), "at most 67,108,864"),
    "image of 1 GB": ("PNG", hollow(2**30), "1,073,741,824 bytes, and at most 268,"),
    "image that is a program": (
        "PNG",
        content("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"),
        r"cannot be read as an image \(it is none of",
    ),
    "image is a folder": ("PNG", folder, "it is a folder, not a regular file"),
    "uci in Latin-1": (
        "uci data",
        content("1 2\n3 é\n".encode("latin-1")),
        "is not a table of numbers",
    ),
    "uci of comments": ("uci data", content("# 1\n# 2\n"), "data.txt is empty"),
    "uci row nan": ("uci index_train_0", content("0\nnan\n"), "whole numbers of 0 … 4"),
    "uci row 1e300": ("uci index_train_0", content("0\n1e300\n"), "whole numbers of 0"),
    "mat claims 2 GB": ("mat", claimed_mat, "an element says it has 2,147,483,640 by"),
    "mat of cells": (
        "mat",
        mat(**{n: np.array([{}], object) for n in ("Xtr", "Xval", "Xtest")}),
        "should hold 16, 3 and 4 sequences",
    ),
    "mat of another shape": (
        "mat",
        mat(Xtr=np.ones((2, 2))),
        "should hold 16, 3 and 4",
    ),
    "mat of version 7.3": (
        "mat",
        content(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400)),
        "it is of another version than 5",
    ),
    "mat of 1 GB": ("mat", hollow(2**30), "1,073,741,824 bytes, and at most 67,"),
    "npy claims 8 TB": (
        "cifar-10-c",
        content(npy_header(HUGE, "|u1")),
        "cut short",
    ),
    "photographs claim 8 TB": ("photographs", content(npy_header(HUGE)), CLAIM),
    "safetensors claims a header": (
        "safetensors",
        content(struct.pack("<Q", 2**60) + b"{"),
        "cannot be read as safetensors",
    ),
    "safetensors is a pickle": ("safetensors", content(b"\x80\x04]."), "is a pickle"),
    "model claims a leaf": (
        "model",
        header("ornstein", huge_leaf),
        "its header and its arrays disagree",
    ),
    "model without leaves": (
        "model",
        header("ornstein", without("leaves")),
        "its header lacks a part",
    ),
    "model without hyperparameters": (
        "model",
        header("ornstein", without("hyperparameters")),
        "its header lacks a part",
    ),
    "model with a deep header": (
        "model",
        npz(ornstein=npy_header(f"({len(DEEP)},)", "|u1") + DEEP),
        "brackets nest more than 100 deep",
    ),
    "model without header": ("model", npz(x=npy_header("(0,)")), "it has no header"),
    "sparse claims a leaf": (
        "sparse",
        header(
            "ornstein_sparse",
            lambda h: h | {"weights": [["w", [10**9, 10**9], "float32"]]},
        ),
        "holds another network",
    ),
    "checkpoint claims a leaf": (
        "checkpoint meta",
        changed(huge_leaf),
        "is truncated or damaged",
    ),
    "checkpoint without leaves": (
        "checkpoint meta",
        changed(without("leaves")),
        "is truncated or damaged",
    ),
    "checkpoint of nobody": (
        "checkpoint meta",
        changed(lambda found: found | {"meta": {}}),
        "begun with seed=None, not 1",
    ),
    "checkpoint too deep": ("checkpoint meta", content(DEEP), "truncated or damaged"),
    "config too deep": ("config", content(DEEP), "nest more than 100 deep.*train the"),
    "config is a list": ("config", content("[1]"), "holds no JSON object: train the"),
    "config with a list for a part": (
        "config",
        changed(lambda c: c | {"recipe": c["recipe"] | {"training": [1]}}),
        "must be an object of options",
    ),
    "config of 5000 digits": (
        "config",
        content('{"recipe": ' + "1" * 5000 + "}"),
        "it is no JSON",
    ),
    "config of 100 MB": ("config", hollow(10**8), "at most 16,777,216 are read"),
    "result too deep": ("result", content(DEEP), "deep.*judge the run again"),
    "calls too deep": ("calls", content(DEEP), "damaged: put it back, or delete it"),
    "calls of nobody": ("calls", content('{"calls": []}'), "damaged: put it back, or"),
    "calls without seconds": (
        "calls",
        changed(lambda found: {"calls": [found["calls"][0] | {"seconds": "many"}]}),
        "damaged: put it back, or delete it",
    ),
    "model of a run is a folder": (
        "trained run",
        folder,
        r"should be the trained model's file \(it is a folder, not a regular file\): "
        "move it away, and `ornstein train --resume .*run` writes the model again",
    ),
    "model of a run is a pipe": (
        "trained run",
        fifo,
        r"final\.npz should be the trained model's file \(it is a named pipe",
    ),
    **{
        f"checkpoints are {kind}": (
            "trained run",
            in_place_of_its_folder(make),
            rf"checkpoints should be a folder of checkpoints \(it is {kind}, not a "
            r"folder\): move it away, and put the run's own folder back or start",
        )
        for kind, make in (
            ("a file", lambda path: None),
            ("a named pipe", fifo),
            ("a device", device),
            ("a link to nothing", dangling),
        )
    },
    "samples are a pipe": (
        "samples header",
        in_place_of_its_folder(fifo),
        r"samples should be a folder of samples \(it is a named pipe, not a folder\): "
        "move it away",
    ),
    "samples without lengths": (
        "samples header",
        changed(without("num_chains")),
        "holds no samples, or they are damaged",
    ),
    "samples that start in a list": (
        "samples header",
        changed(lambda found: found | {"starts": [[]]}),
        "holds no samples, or they are damaged",
    ),
    "samples with text for lengths": (
        "samples header",
        changed(lambda found: found | {"num_samples": "many"}),
        "holds no samples, or they are damaged",
    ),
    "samples too deep": ("samples header", content(DEEP), "holds no samples, or they"),
    "samples claim 8 TB": ("samples array", content(npy_header(HUGE)), CLAIM),
    "samples without progress": (
        "samples state",
        header("ornstein", lambda found: found | {"hyperparameters": {}}),
        "damaged, and with it the place to which the chains",
    ),
    "recipe too deep": ("recipe", content(DEEP), "nest more than 100 deep; mend it"),
    "recipe of options": (
        "recipe",
        changed(lambda r: r | {"quick": {"seeds": [0], "options": {"epochs": {}}}}),
        "`epochs` is {}, but must be a whole number",
    ),
    "piece too deep": (
        "piece",
        content(DEEP),
        "deep; take it away, and it is computed",
    ),
    "piece without value": ("piece", content("{}"), "is no piece of `ornstein reprod"),
    "record is a list": ("table1 record", content("[]"), "is no result of `ornstein r"),
}


def damaged(name: str, make: Callable[[Path], Any], folder: Path) -> Any:
    """The error of a reader whose file was replaced."""
    reader = READERS[name]
    make(reader.make(folder))
    return guarded(lambda: reader.read(folder))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_one_sentence(name: str, tmp_path: Path):
    """Within ten seconds and one gigabyte.

    Seen failing before there were bounds: `RecursionError` (deep), `MemoryError` and
    `DecompressionBombError` (claims), `KeyError`, `AttributeError` (missing parts), and
    zeros in silence (1e300). Of other things in a run's places it was said that the run
    is not finished, or that it has no checkpoint yet.
    """
    reader, make, sentence = HOSTILE[name]
    error = damaged(reader, make, tmp_path)
    assert error is not None, "it was read"
    assert not complaint(error), complaint(error)
    with pytest.raises(type(error), match=sentence):
        raise error


# What they keep is made again.
READ_AGAIN = {"corruptions", "photographs"}


@pytest.mark.parametrize("make", [fifo, device, bound_socket])
@pytest.mark.parametrize("name", READERS)
def test_no_reader_opens_what_would_hang(name: str, make: Any, tmp_path: Path):
    """Pipes wait for a writer and devices never end: catches an `open` before `stat`.

    Seen hanging for most readers of one file.
    """
    error = damaged(name, make, tmp_path)
    assert (error is None) == (name in READ_AGAIN)
    assert not complaint(error), complaint(error)


def test_links_to_regular_files_are_read(tmp_path: Path):
    for name in ("csv", "PNG", "model", "safetensors", "parquet"):
        home = tmp_path / name
        home.mkdir()
        path = READERS[name].make(home)
        path.rename(tmp_path / f"{name}.kept")
        path.symlink_to(tmp_path / f"{name}.kept")
        assert READERS[name].read(home) is not None


def test_a_run_of_one_number_is_no_bomb_but_may_be_one(tmp_path: Path, monkeypatch):
    """Constant columns compress well: the bound is on size and on ratio together."""
    reader = READERS["parquet"]
    path = reader.make(tmp_path)
    constant_column(path)
    assert path.stat().st_size < 4_000_000 / 500
    assert not complaint(guarded(lambda: reader.read(tmp_path)))
    monkeypatch.setattr(_unreadable, "_MAX_EXPANDED", 2**20)
    error = guarded(lambda: reader.read(tmp_path))
    with pytest.raises(ValueError, match="bytes say they become 4,000,000, which"):
        raise error or AssertionError


def test_tensors_of_eight_bits_are_one_sentence(tmp_path: Path):
    """NumPy has no type for them: a `TypeError` or `AttributeError` of safetensors."""
    reader = READERS["safetensors"]
    path = reader.make(tmp_path)
    text = b'{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0\0")
    error = guarded(lambda: reader.read(tmp_path))
    assert error is None or not complaint(error), complaint(error)
