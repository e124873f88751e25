"""Samples in a folder, written and read: the format that `sample(folder=...)` has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import PyTree
from ..functions import PosteriorSamples
from ..functions._network import Network, split_where
from ..likelihood import AbstractLikelihood
from ..train import CheckpointError
from ._store import (
    STATE,
    create_files,
    flush,
    open_files,
    read_header,
    read_progress,
)


def save_samples(folder: str | Path, samples: PosteriorSamples) -> None:
    """Write samples, one `.npy` file for each array.

    Args:
        folder: a new or empty one.
        samples: what `sample` returned.

    Raises:
        FileExistsError: if something is there.
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} exists: choose another folder.")
    tree = (samples.positions, samples.info)
    chain_info = {k: np.asarray(a).tolist() for k, a in samples.chain_info.items()}
    files = create_files(path, tree, None, chain_info=chain_info)

    def write(file, array):
        file[...] = array

    jax.tree.map(write, files, tree)
    flush(files)


def load_samples(
    folder: str | Path,
    model: Network,
    likelihood: AbstractLikelihood,
    *,
    where: Callable[[Any], PyTree] | None = None,
) -> PosteriorSamples:
    """The samples of a folder; of chains that were interrupted, what they have.

    The files stay on disk until numbers are read from them; no pickle is loaded.

    Args:
        folder: as `sample(folder=...)` or `save_samples` wrote it.
        model: a network of the same structure, shapes and types.
        likelihood: likewise.
        where: as `sample` was given it.

    Raises:
        CheckpointError: if there are no samples, or they are of another model.
    """
    path = Path(folder)
    header = read_header(path)
    params, network = split_where(model, where)
    is_learned = jax.tree.map(lambda name: name != "frozen", likelihood.labels())
    scale, fixed_likelihood = eqx.partition(likelihood, is_learned)
    lengths = (header["num_chains"], header["num_samples"])

    def with_lengths(leaf):
        return jax.ShapeDtypeStruct((*lengths, *jnp.shape(leaf)), jnp.dtype(leaf.dtype))

    info = {
        name: jax.ShapeDtypeStruct(lengths, jnp.dtype(dtype))
        for name, dtype in header["info"].items()
    }
    like = (jax.tree.map(with_lengths, (params, scale)), info)
    positions, info = open_files(path, like)
    chain_info = header["chain_info"]
    if header["settings"] is not None:
        state = path / STATE
        num_kept = 0
        if state.exists():
            meta = read_progress(state)
            num_kept, chain_info = meta["num_kept"], meta["chain_info"]
        if num_kept == 0:
            raise CheckpointError(
                f"{path} has no samples yet: its chains are in their warm-up; go on "
                "with `sample(..., resume=True)`."
            )
        positions, info = jax.tree.map(lambda a: a[:, :num_kept], (positions, info))
    return PosteriorSamples(
        network,
        fixed_likelihood,
        positions,
        info=info,
        chain_info=chain_info,
    )
