"""A pruned network in a file that holds what is left of it, and nothing else."""

import io
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..._files import UnreadableError, write_atomically
from ...functions import MeanField, NormalFamily, Pruned
from .._errors import CheckpointError
from ._leaves import describe, named_arrays, with_arrays
from ._model_file import read_with_header, refuse_non_finite

_HEADER = "ornstein_sparse"


def save_sparse(path: str | Path, pruned: Pruned) -> None:
    """Write a pruned network's surviving weights, whole or not at all.

    Each takes its mean, its rho, and its distance from the survivor before it in the
    smallest unsigned type that holds the leaf's largest: 1 or 2 bytes as a rule, so 9
    or 10 bytes a survivor in single precision, and nothing for the others.

    Args:
        path: of the file, by convention with the suffix `.npz`.
        pruned: as `prune` returned it.
    """
    content = {}
    means, rhos = (named_arrays(t) for t in (pruned.family.mean, pruned.family.rho))
    for i, (name, mean) in enumerate(means.items()):
        rho = rhos[name].ravel()
        places = np.flatnonzero(rho > -np.inf)
        gaps = np.diff(places, prepend=-1)
        largest = int(gaps.max(initial=0))
        content[f"gaps_{i}"] = gaps.astype(np.min_scalar_type(largest))
        content[f"mean_{i}"] = _to_bytes(mean.ravel()[places])
        content[f"rho_{i}"] = _to_bytes(rho[places])
    points = named_arrays(pruned.rest)
    for i, array in enumerate(points.values()):
        content[f"point_{i}"] = _to_bytes(array)
    header = json.dumps({"weights": describe(means), "points": describe(points)})
    content[_HEADER] = np.frombuffer(header.encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **content)
    write_atomically(Path(path), buffer.getvalue())


def load_sparse(path: str | Path, like: MeanField | Pruned) -> Pruned:
    """The pruned network of a file.

    Args:
        path: as `save_sparse` wrote it.
        like: a mean-field (or pruned) network of the same structure, shapes and types.

    Raises:
        CheckpointError: if the file cannot be read, or is of another network.
    """
    family = like.family
    if not isinstance(family, NormalFamily):
        raise TypeError(
            f"A sparse file holds normal weights, got `{type(family).__name__}`: build "
            "`like` with `NormalFamily`."
        )
    path = Path(path)
    try:
        header, content = read_with_header(path, _HEADER)
    except UnreadableError as error:
        raise _damaged(path, str(error)) from error
    wanted = {
        "weights": describe(named_arrays(family.mean)),
        "points": describe(named_arrays(like.rest)),
    }
    # Before room is made: what was removed takes none in the file.
    if header != wanted:
        raise CheckpointError(
            f"{path} holds another network: its arrays are other than those of `like`; "
            "build it with the hyperparameters that the file was written with."
        )
    try:
        means, rhos, points = _arrays(header, content)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _damaged(path, "its header and its arrays disagree") from error
    removed = dict.fromkeys(rhos, np.asarray(-np.inf))
    for parts, sound in (
        (means, named_arrays(family.mean)),
        (rhos, removed),
        (points, named_arrays(like.rest)),
    ):
        refuse_non_finite(path, parts, like=sound)
    loaded = NormalFamily(
        with_arrays(family.mean, means), with_arrays(family.rho, rhos)
    )
    return Pruned(loaded, with_arrays(like.rest, points))


def _to_bytes(array: np.ndarray) -> np.ndarray:
    """Raw: npz has no bfloat16."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _from_bytes(raw: np.ndarray, dtype: str) -> np.ndarray:
    return np.frombuffer(raw.tobytes(), jnp.dtype(dtype))


def _arrays(
    header: dict[str, Any], content: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], ...]:
    """Means, rhos and points by name, with what was removed filled in."""
    means, rhos, points = {}, {}, {}
    for i, (name, shape, dtype) in enumerate(header["weights"]):
        places = np.cumsum(content[f"gaps_{i}"].astype(np.int64)) - 1
        if places.size and (places[0] < 0 or np.any(np.diff(places) <= 0)):
            raise ValueError("places must increase")
        for arrays, part, removed in ((means, "mean", 0.0), (rhos, "rho", -np.inf)):
            dense = np.full(int(np.prod(shape)), removed, jnp.dtype(dtype))
            dense[places] = _from_bytes(content[f"{part}_{i}"], dtype)
            arrays[name] = dense.reshape(shape)
    for i, (name, shape, dtype) in enumerate(header["points"]):
        points[name] = _from_bytes(content[f"point_{i}"], dtype).reshape(shape)
    return means, rhos, points


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{path} is no sparse file of ornstein's, or is truncated ({reason}): write it "
        "again with `save_sparse`."
    )
