"""A model in one file: its arrays in npz, its hyperparameters beside them in JSON."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..._files import UnreadableError, parse_json, read_npz, write_atomically
from ..._types import PyTree
from .._errors import CheckpointError
from ._leaves import describe, named_arrays, plain_leaves, with_arrays

_HEADER = "ornstein"


def save_model(
    path: str | Path, model: PyTree, *, hyperparameters: dict[str, Any] | None = None
) -> None:
    """Write a model's arrays, whole or not at all.

    Its plain numbers (a rate of dropout, say) are written too, to be compared; the rest
    of it, such as static fields and functions, is not.

    Args:
        path: of the file, by convention with the suffix `.npz`.
        model: any tree: a random function, or `(model, likelihood, state)`.
        hyperparameters: what it takes to build the model again, as JSON.
    """
    arrays = named_arrays(model)
    header = {
        "leaves": describe(arrays),
        "plain": plain_leaves(model),
        "hyperparameters": hyperparameters or {},
    }
    content = {
        # Raw bytes: npz has no bfloat16.
        f"leaf_{i}": np.frombuffer(np.ascontiguousarray(a).tobytes(), np.uint8)
        for i, a in enumerate(arrays.values())
    }
    content[_HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **content)
    write_atomically(Path(path), buffer.getvalue())


def load_model(path: str | Path, like: PyTree) -> PyTree:
    """`like` with the arrays of a file.

    Args:
        path: as `save_model` wrote it.
        like: a model of the same structure, shapes and types, and the same plain
            numbers.

    Raises:
        CheckpointError: if the file cannot be read, has NaN or infinities that `like`
            has not, or is of another model.
    """
    header, content = _read(Path(path))
    arrays = {}
    try:
        for i, (name, shape, dtype) in enumerate(header["leaves"]):
            raw = content[f"leaf_{i}"].tobytes()
            arrays[name] = np.frombuffer(raw, jax.numpy.dtype(dtype)).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(Path(path), "its header and its arrays disagree") from error
    try:
        loaded = with_arrays(like, arrays)
    except ValueError as error:
        raise CheckpointError(f"{path} holds another model: {error}.") from error
    here = plain_leaves(like)
    for name, value in header.get("plain", {}).items():  # older files have none
        if here.get(name, value) != value:
            raise CheckpointError(
                f"{path} holds another model: {name} is {value} in the file and "
                f"{here[name]} in the model: build it with the numbers that the file "
                "was written with."
            )
    refuse_non_finite(Path(path), arrays, like=named_arrays(like))
    return loaded


def refuse_non_finite(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    *,
    like: Mapping[str, np.ndarray],
) -> None:
    """Refuse arrays that are not numbers, from which nothing can be predicted.

    Args:
        path: where they come from.
        arrays: by name.
        like: those of a sound model: an infinity that an array has here (a bound, or
            the rho of a weight that was removed) it may have there, too.

    Raises:
        CheckpointError: naming the first.
    """
    for name, array in arrays.items():
        if not jax.numpy.issubdtype(array.dtype, np.inexact):
            continue
        # In single precision at least: numpy compares bfloat16 for no isin.
        odd = array[~np.isfinite(array)].astype(np.result_type(array, np.float32))
        allowed = [bound for bound in (-np.inf, np.inf) if np.any(like[name] == bound)]
        if not np.isin(odd, allowed).all():
            what = "NaN" if np.isnan(odd).any() else "infinity"
            raise CheckpointError(
                f"{path} has {what} in {name}: its training diverged, or the file is "
                "damaged; train again, with a lower learning rate."
            )


def load_hyperparameters(path: str | Path) -> dict[str, Any]:
    """What `save_model` was told it takes to build the model again."""
    return _read(Path(path))[0]["hyperparameters"]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        header, content = read_with_header(path, _HEADER)
    except UnreadableError as error:
        raise _damaged(path, str(error)) from error
    are_there = [isinstance(header.get("hyperparameters"), dict), "leaves" in header]
    if not (all(are_there) and isinstance(header.get("plain", {}), dict)):
        raise _damaged(path, "its header lacks a part")
    return header, content


def read_with_header(
    path: Path, name: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """An `.npz` file with JSON in one of its arrays: that, and the other arrays.

    Args:
        path: the file.
        name: of the array with the bytes of a JSON object.

    Raises:
        UnreadableError: if it is no such file, or is damaged.
    """
    arrays = read_npz(path).arrays
    if name not in arrays:
        raise UnreadableError("it has no header")
    header = parse_json(arrays.pop(name).tobytes())
    if not isinstance(header, dict):
        raise UnreadableError("its header is no JSON object")
    return header, arrays


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{path} is no model file of ornstein's, or is truncated ({reason}): write it "
        "again with `save_model`."
    )
