"""Where samples go as chains run: host memory, or a folder of .npy files.

A folder has `samples.json` (what the files hold, and the settings of the run), one
`.npy` file for each array, written in place as memory maps, and the states from which
the chains go on (`_progress.py`). Nothing in it is a pickle. Until `samples.json` is
there, an empty file says whose the others are.

A chain's samples lie one after the other in a file, so that its checksum grows with
them: each is hashed once as it is written, and all of them when a folder is opened.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from .._files import (
    LOCK,
    UnreadableError,
    check_folder,
    check_npy,
    naming,
    read_json,
    write_atomically,
)
from .._types import PyTree
from ..train import CheckpointError

_HEADER = "samples.json"
_BEGUN = ".ornstein.begun"
_HEADER_NAMES = (
    "num_chains",
    "num_samples",
    "info",
    "arrays",
    "settings",
    "chain_info",
    "starts",
    "checksums",
)

REMEDY = "put the file back, or sample again into another folder"

Checksums: TypeAlias = list[list[int]]
"""For each array, one of each chain's samples so far."""


def in_memory(like: PyTree) -> PyTree[np.ndarray]:
    """Empty arrays in host memory.

    Args:
        like: a tree with shapes and types.
    """
    return jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), like)


def no_checksums(like: PyTree) -> Checksums:
    """Those of chains without samples."""
    return [[0] * a.shape[0] for a in jax.tree.leaves(like)]


def add_checksums(checksums: Checksums, parts: PyTree[np.ndarray]) -> Checksums:
    """Those of chains that have some more samples.

    Args:
        checksums: until now.
        parts: the new samples, chains first.
    """
    return [
        [zlib.crc32(np.ascontiguousarray(a[c]).data, crc) for c, crc in enumerate(crcs)]
        for crcs, a in zip(checksums, map(_raw, jax.tree.leaves(parts)), strict=True)
    ]


def create_files(folder: Path, like: tuple[PyTree, dict[str, Any]]) -> PyTree:
    """Empty arrays in files of a folder: whole, and zeros, before they are mapped.

    A folder is none of samples before `write_header`.

    Args:
        folder: new, or empty, or one that was never finished.
        like: (position, info) with shapes and types, chains and samples first.

    Raises:
        OSError: if the disk has no room for all samples.
    """
    folder.mkdir(parents=True, exist_ok=True)
    leaves, treedef = jax.tree.flatten(like)
    with naming(folder):
        (folder / _BEGUN).touch()
    arrays = []
    for i, a in enumerate(leaves):
        path, dtype = folder / f"{i}.npy", _stored(a.dtype)
        description = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": tuple(a.shape),
        }
        with naming(path), path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, description)
            begin, size = file.tell(), int(np.prod(a.shape)) * dtype.itemsize
            # On a full disk a map ends the process; this ends in a sentence.
            if size and hasattr(os, "posix_fallocate"):
                file.flush()
                os.posix_fallocate(file.fileno(), begin, size)
            file.truncate(begin + size)
        arrays.append(np.load(path, mmap_mode="r+").view(a.dtype))
    return jax.tree.unflatten(treedef, arrays)


def write_header(
    folder: Path,
    like: tuple[PyTree, dict[str, Any]],
    settings: dict[str, Any] | None,
    *,
    starts: str | None,
    chain_info: dict[str, Any] | None = None,
    checksums: Checksums | None = None,
) -> None:
    """Say what the files of a folder hold, once they are there.

    Args:
        folder: of `create_files`.
        like: as it was given.
        settings: of a run whose chains may go on, as JSON.
        starts: where chains began, in words.
        chain_info: of chains that are over, as JSON.
        checksums: of the arrays of chains that are over, by name.
    """
    num_chains, num_samples = jax.tree.leaves(like)[0].shape[:2]
    header = {
        "num_chains": num_chains,
        "num_samples": num_samples,
        "info": {name: jnp.dtype(a.dtype).name for name, a in like[1].items()},
        "arrays": _describe(like),
        "settings": settings,
        "chain_info": chain_info,
        "starts": starts,
        "checksums": checksums,
    }
    write_atomically(folder / _HEADER, json.dumps(header, indent=2).encode())
    (folder / _BEGUN).unlink(missing_ok=True)


def is_unfinished(folder: Path) -> bool:
    """Whether a folder has nothing but files of ours, never said to be whole."""
    if not folder.is_dir():
        return False
    is_ours = (folder / _BEGUN).exists()
    return all(
        file.name in (LOCK, _BEGUN)
        or (is_ours and file.suffix == ".npy" and file.stem.isdecimal())
        or (is_ours and file.name.startswith(f".{_HEADER}."))
        for file in folder.iterdir()
    )


def open_files(folder: Path, like: PyTree, *, mode: str = "r") -> PyTree[np.ndarray]:
    """The arrays of a folder, on disk until they are read.

    Args:
        folder: as `create_files` made it.
        like: a tree with the names, shapes and types that are expected.
        mode: "r", or "r+" to go on writing.

    Raises:
        CheckpointError: if they are not those, or a file has lost or gained bytes.
    """
    header = read_header(folder)
    found, wanted = header["arrays"], _describe(like)
    for name in sorted(found.keys() ^ wanted.keys()):
        raise CheckpointError(
            f"{folder} holds samples of another model: {name} is in only one of them."
        )
    leaves, treedef = jax.tree.flatten(like)
    arrays = []
    for i, (name, leaf) in enumerate(zip(wanted, leaves, strict=True)):
        path = folder / f"{i}.npy"
        if not path.exists():
            raise CheckpointError(f"{path} ({name}) is not there: {REMEDY}.")
        try:
            check_npy(path)
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise CheckpointError(
                f"{path} ({name}) cannot be read ({error}): {REMEDY}."
            ) from error
        shape, dtype, size = array.shape, array.dtype, array.offset + array.nbytes
        if shape[:2] != leaf.shape[:2]:
            raise CheckpointError(
                f"{path} ({name}) has chains of unequal length with the rest, "
                f"{shape[:2]} instead of {leaf.shape[:2]}: {REMEDY}."
            )
        if shape != leaf.shape or dtype != _stored(leaf.dtype):
            raise CheckpointError(
                f"{path} holds another model's {name}: {dtype}"
                f"{list(shape)} instead of {leaf.dtype}{list(leaf.shape)}."
            )
        if path.stat().st_size != size or not array.flags.c_contiguous:
            raise CheckpointError(
                f"{path} ({name}) has {path.stat().st_size} bytes instead of {size}: "
                f"{REMEDY}."
            )
        # Only now: a map for writing fills up what a file has lost with zeros.
        array = np.load(path, mmap_mode=mode, allow_pickle=False)  # pyright: ignore[reportArgumentType]
        arrays.append(array.view(leaf.dtype))
    return jax.tree.unflatten(treedef, arrays)


def check_samples(
    folder: Path, arrays: PyTree[np.ndarray], num_kept: int, checksums: Any
) -> None:
    """Refuse samples that are not those that were written.

    Args:
        folder: of the files.
        arrays: as `open_files` gave them.
        num_kept: samples of each chain.
        checksums: of those.

    Raises:
        CheckpointError: naming the file.
    """
    kept = jax.tree.map(lambda a: a[:, :num_kept], arrays)
    found = add_checksums(no_checksums(kept), kept)
    if not isinstance(checksums, list) or len(checksums) != len(found):
        raise CheckpointError(
            f"{folder} has no checksums of its samples, so that nobody can tell "
            f"whether they are whole: {REMEDY}."
        )
    for i, name in enumerate(_describe(arrays)):
        if found[i] != checksums[i]:
            raise CheckpointError(
                f"{folder / f'{i}.npy'} ({name}) does not hold what was written to "
                f"it, by its checksum: {REMEDY}."
            )


def read_header(folder: Path) -> dict[str, Any]:
    """What a folder says of its files: see `create_files`.

    Raises:
        CheckpointError: if there are no samples.
    """
    try:
        check_folder(folder)
    except UnreadableError as error:
        raise CheckpointError(
            f"{folder} should be a folder of samples ({error}): move it away, and put "
            "the folder back or sample again."
        ) from error
    try:
        header = read_json(folder / _HEADER)
        header = {name: header[name] for name in _HEADER_NAMES}
        _check_header(header)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{folder} holds no samples, or they are damaged: give the folder that "
            "`sample(..., folder=...)` wrote."
        ) from error
    return header


def _check_header(header: dict[str, Any]) -> None:
    """Numbers of chains and samples, types that there are, and objects."""
    lengths = [header["num_chains"], header["num_samples"]]
    if any(type(n) is not int or not 0 <= n < 2**63 for n in lengths):
        raise TypeError("chains and samples are counted")
    for dtype in header["info"].values():
        jnp.dtype(dtype)
    header["arrays"].keys()
    if not isinstance(header["starts"], str | None):
        raise TypeError("where chains started is said in words")
    if header["settings"] is None:
        header["chain_info"] = as_arrays(header["chain_info"])
    else:
        header["settings"].get("origin", {}).keys()


def as_arrays(chain_info: dict[str, Any]) -> dict[str, np.ndarray]:
    """What is said of chains, from JSON."""
    arrays = {name: np.asarray(values) for name, values in chain_info.items()}
    if any(array.dtype.kind not in "biuf" for array in arrays.values()):
        raise TypeError("what is said of chains is numbers")
    return arrays


def flush(arrays: PyTree[np.ndarray]) -> None:
    """See that what was written is in the files."""
    for array in jax.tree.leaves(arrays):
        if isinstance(array, np.memmap):
            array.flush()


def _raw(array: np.ndarray) -> np.ndarray:
    """As it is in the file."""
    return np.asarray(array).view(_stored(array.dtype))


def _describe(like: PyTree) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(like)
    return {
        jax.tree_util.keystr(path): [list(a.shape), jnp.dtype(a.dtype).name]
        for path, a in leaves
    }


def _stored(dtype: Any) -> np.dtype:
    """The type in the file: .npy has no bfloat16, only its bits."""
    dtype = jnp.dtype(dtype)
    return np.dtype(np.uint16) if dtype == jnp.bfloat16 else dtype
