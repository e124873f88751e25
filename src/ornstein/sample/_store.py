"""Where samples go as chains run: host memory, or a folder of .npy files.

A folder has `samples.json` (what the files hold, and the settings of the run), one
`.npy` file for each array, written in place as memory maps, and `state.npz`, from
which the chains go on. Nothing in it is a pickle.
"""

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._files import check_npy, read_json
from .._types import PyTree
from ..train import CheckpointError, load_hyperparameters
from ..train._atomic import naming, write_atomically

STATE = "state.npz"
_HEADER = "samples.json"
_HEADER_NAMES = (
    "num_chains",
    "num_samples",
    "info",
    "arrays",
    "settings",
    "chain_info",
)


def in_memory(like: PyTree) -> PyTree[np.ndarray]:
    """Empty arrays in host memory.

    Args:
        like: a tree with shapes and types.
    """
    return jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), like)


def create_files(
    folder: Path,
    like: tuple[PyTree, dict[str, Any]],
    settings: dict[str, Any] | None,
    *,
    chain_info: dict[str, Any] | None = None,
) -> PyTree[np.ndarray]:
    """Empty arrays in files of a new folder.

    Args:
        folder: new or empty.
        like: (position, info) with shapes and types, chains and samples first.
        settings: of a run whose chains may go on, as JSON.
        chain_info: of chains that are over, as JSON.
    """
    folder.mkdir(parents=True, exist_ok=True)
    leaves, treedef = jax.tree.flatten(like)
    arrays = [
        np.lib.format.open_memmap(
            folder / f"{i}.npy", mode="w+", dtype=_stored(a.dtype), shape=a.shape
        ).view(a.dtype)
        for i, a in enumerate(leaves)
    ]
    for i in range(len(leaves)):
        _reserve(folder / f"{i}.npy")
    # The header is last: a folder with one is whole.
    num_chains, num_samples = leaves[0].shape[:2]
    header = {
        "num_chains": num_chains,
        "num_samples": num_samples,
        "info": {name: jnp.dtype(a.dtype).name for name, a in like[1].items()},
        "arrays": _describe(like),
        "settings": settings,
        "chain_info": chain_info,
    }
    write_atomically(folder / _HEADER, json.dumps(header, indent=2).encode())
    return jax.tree.unflatten(treedef, arrays)


def open_files(folder: Path, like: PyTree, *, mode: str = "r") -> PyTree[np.ndarray]:
    """The arrays of a folder, on disk until they are read.

    Args:
        folder: as `create_files` made it.
        like: a tree with the names, shapes and types that are expected.
        mode: "r", or "r+" to go on writing.

    Raises:
        CheckpointError: if they are not those, or a file is cut short.
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
        try:
            check_npy(path)
            array = np.load(path, mmap_mode=mode, allow_pickle=False)  # pyright: ignore[reportArgumentType]
        except (OSError, ValueError, EOFError) as error:
            raise CheckpointError(
                f"{path} cannot be read ({error}): sample again."
            ) from error
        if array.shape[:2] != leaf.shape[:2]:
            raise CheckpointError(
                f"{path} ({name}) has chains of unequal length with the rest, "
                f"{array.shape[:2]} instead of {leaf.shape[:2]}: sample again."
            )
        if array.shape != leaf.shape or array.dtype != _stored(leaf.dtype):
            raise CheckpointError(
                f"{path} holds another model's {name}: {array.dtype}"
                f"{list(array.shape)} instead of {leaf.dtype}{list(leaf.shape)}."
            )
        arrays.append(array.view(leaf.dtype))
    return jax.tree.unflatten(treedef, arrays)


def read_header(folder: Path) -> dict[str, Any]:
    """What a folder says of its files: see `create_files`.

    Raises:
        CheckpointError: if there are no samples.
    """
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


def read_progress(state: Path) -> dict[str, Any]:
    """How far the chains of a folder are, as their state file has it.

    Returns:
        The whole numbers `step`, `num_kept` and `num_divergent`, and `chain_info`, of
        arrays.

    Raises:
        CheckpointError: if the file is damaged.
    """
    meta = load_hyperparameters(state)
    try:
        counts = {n: meta[n] for n in ("step", "num_kept", "num_divergent")}
        if any(type(count) is not int or count < 0 for count in counts.values()):
            raise TypeError("steps and samples are counted")
        return {**counts, "chain_info": _as_arrays(meta["chain_info"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{state} does not say how far its chains are, or is damaged: sample again."
        ) from error


def _check_header(header: dict[str, Any]) -> None:
    """Numbers of chains and samples, types that there are, and objects."""
    lengths = [header["num_chains"], header["num_samples"]]
    if any(type(n) is not int or not 0 <= n < 2**63 for n in lengths):
        raise TypeError("chains and samples are counted")
    for dtype in header["info"].values():
        jnp.dtype(dtype)
    header["arrays"].keys()
    if header["settings"] is None:
        header["chain_info"] = _as_arrays(header["chain_info"])
    else:
        header["settings"].keys()


def _as_arrays(chain_info: dict[str, Any]) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(values) for name, values in chain_info.items()}
    if any(array.dtype.kind not in "biuf" for array in arrays.values()):
        raise TypeError("what is said of chains is numbers")
    return arrays


def flush(arrays: PyTree[np.ndarray]) -> None:
    """See that what was written is in the files."""
    for array in jax.tree.leaves(arrays):
        if isinstance(array, np.memmap):
            array.flush()


def _reserve(path: Path) -> None:
    """Take the room now: a disk that is full under a memory map kills the process."""
    if hasattr(os, "posix_fallocate"):
        with naming(path), path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


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
