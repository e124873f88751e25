"""Samples in a folder, written and read: the format that `sample(folder=...)` has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._sentence import Choice, Sentence
from .._types import PyTree
from ..functions import PosteriorSamples
from ..likelihood import AbstractLikelihood
from ..network import Network, split_where
from ..train import CheckpointError
from ._progress import read_progress
from ._store import (
    add_checksums,
    check_samples,
    create_files,
    flush,
    is_unfinished,
    no_checksums,
    open_files,
    read_header,
    write_header,
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
    files = create_files(path, tree)

    def write(file, array):
        file[...] = array

    jax.tree.map(write, files, tree)
    flush(files)
    # Last: a folder with a header is whole.
    write_header(
        path,
        tree,
        None,
        starts=samples.starts,
        chain_info=chain_info,
        checksums=add_checksums(no_checksums(files), files),
    )


def origin_of(folder: str | Path) -> dict[str, str]:
    """The `origin` that `sample` was given for a folder; nothing where there is none.

    Raises:
        CheckpointError: if what is there is damaged.
    """
    path = Path(folder)
    if not path.exists() or is_unfinished(path):
        return {}
    return (read_header(path)["settings"] or {}).get("origin", {})


class NoSamplesYetError(CheckpointError):
    """Chains were interrupted before they kept a sample."""


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
        likelihood: of the same structure, with the samples' parameters put in.
        where: as `sample` was given it.

    Raises:
        CheckpointError: if there are no samples, they are of another model, or not
            those that were written.
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
    num_kept = header["num_samples"]
    checksums, chain_info = header["checksums"], header["chain_info"]
    if header["settings"] is None:
        check_samples(path, (positions, info), num_kept, checksums)
    else:
        progress = read_progress(path, (positions, info))
        if progress is None or progress.num_stored == 0:
            raise NoSamplesYetError(
                f"{path} has no samples yet: its chains are in their warm-up; go on "
                "with `sample(..., resume=True)`."
            )
        num_kept, chain_info = progress.num_stored, progress.chain_info
    notes = ()
    if num_kept < header["num_samples"]:
        positions, info = jax.tree.map(lambda a: a[:, :num_kept], (positions, info))
        notes = (
            Sentence(
                "The chains were interrupted: there are {:,} of {:,} samples of each; "
                "{} goes on.",
                num_kept,
                header["num_samples"],
                Choice("`sample(..., resume=True)`", "`ornstein sample` with {resume}"),
            ),
        )
    return PosteriorSamples(
        network,
        fixed_likelihood,
        positions,
        info=info,
        chain_info=chain_info,
        starts=header["starts"],
        notes=notes,
    )
