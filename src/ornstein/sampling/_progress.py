"""How far the chains of a folder are, by the newest state that its samples agree with.

`state.npz` is the newest, `state-before.npz` the one before it. Samples are only ever
added, so each state has its own of them, with their checksums: where the newest state
or what was sampled last is damaged, chains go on from the one before, to the same bits.
"""

import logging
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from .._files import link_atomically
from .._types import PyTree
from ..train import CheckpointError, load_hyperparameters, load_model, save_model
from ._store import REMEDY, Checksums, as_arrays, check_samples

logger = logging.getLogger("ornstein")

_STATE = "state.npz"
_BEFORE = "state-before.npz"
_DAMAGED = "damaged-state.npz"


class Progress(NamedTuple):
    """How far chains are.

    Attributes:
        step: steps taken.
        num_kept: samples of each chain.
        num_stored: of those, how many are in the files.
        num_divergent: of those that followed a divergence.
        chain_info: numbers of each chain.
        checksums: of the samples.
        pending_info: what the kernel said since the last sample in the files, of what
            adds up; states of earlier versions do not have it.
    """

    step: int
    num_kept: int
    num_stored: int
    num_divergent: int
    chain_info: dict[str, np.ndarray]
    checksums: Checksums
    pending_info: dict[str, np.ndarray]

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        lists = {
            "chain_info": to_lists(self.chain_info),
            "pending_info": to_lists(self.pending_info),
        }
        return self._asdict() | lists

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Progress":
        """What `to_json` gave."""
        read = lambda name: as_arrays(saved[name])
        return cls(**saved)._replace(
            chain_info=read("chain_info"), pending_info=read("pending_info")
        )


def to_lists(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Arrays for JSON, which `as_arrays` reads."""
    return {name: a.tolist() for name, a in arrays.items()}


def save_progress(folder: Path, states: PyTree, progress: Progress) -> None:
    """Write a state; that of before stays beside it.

    Args:
        folder: of the samples.
        states: of the chains.
        progress: how far they are.
    """
    newest = folder / _STATE
    if newest.exists():
        link_atomically(newest, folder / _BEFORE)
    save_model(newest, states, hyperparameters=progress.to_json())


def read_progress(folder: Path, arrays: PyTree[np.ndarray]) -> Progress | None:
    """How far the chains are; `None` of chains that have saved no state yet.

    Args:
        folder: of the samples.
        arrays: of the samples, as `open_files` gave them.

    Raises:
        CheckpointError: if neither state is whole with its samples.
    """
    found = _newest_whole(folder, arrays)
    return None if found is None else found[1]


def load_progress(
    folder: Path, arrays: PyTree[np.ndarray], states: PyTree
) -> tuple[PyTree, Progress] | None:
    """The states to go on from, likewise; a newer one that is damaged is set aside.

    Args:
        folder: of the samples.
        arrays: of the samples, as `open_files` gave them.
        states: of the same structure, shapes and types.
    """
    found = _newest_whole(folder, arrays)
    if found is None:
        return None
    path, progress = found
    states = load_model(path, states)
    newest = folder / _STATE
    if path != newest and newest.exists():
        os.replace(newest, folder / _DAMAGED)
    return states, progress


def _newest_whole(
    folder: Path, arrays: PyTree[np.ndarray]
) -> tuple[Path, Progress] | None:
    errors: list[CheckpointError] = []
    for path in (folder / _STATE, folder / _BEFORE):
        if not path.exists():
            continue
        try:
            progress = _read(path)
            _check_room(path, progress, arrays)
            check_samples(folder, arrays, progress.num_stored, progress.checksums)
        except CheckpointError as error:
            errors.append(error)
            continue
        if path.name == _BEFORE:
            reason = str(errors[0]) if errors else f"{folder / _STATE} is not there"
            logger.warning(
                "%s: the state before it is used, which has %d samples of each chain.",
                reason.removesuffix(f": {REMEDY}."),
                progress.num_kept,
            )
        return path, progress
    if errors:
        raise errors[0]
    return None


def _read(path: Path) -> Progress:
    try:
        meta = load_hyperparameters(path)
        counts = {n: meta[n] for n in ("step", "num_kept", "num_divergent")}
        counts["num_stored"] = meta.get("num_stored", meta["num_kept"])
        if any(type(count) is not int or count < 0 for count in counts.values()):
            raise TypeError("steps and samples are counted")
        chain_info = as_arrays(meta["chain_info"])
        pending = as_arrays(meta.get("pending_info", {}))
    except (
        CheckpointError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise CheckpointError(
            f"{path} is damaged, and with it the place to which the chains had come: "
            f"{REMEDY}."
        ) from error
    checksums: Any = meta.get("checksums")  # which are checked with the samples
    return Progress(
        **counts, chain_info=chain_info, checksums=checksums, pending_info=pending
    )


def _check_room(path: Path, progress: Progress, arrays: PyTree[np.ndarray]) -> None:
    room = jax.tree.leaves(arrays)[0].shape[1]
    if progress.num_stored > room:
        raise CheckpointError(
            f"{path} is of {progress.num_stored} samples, more than the {room} that "
            "there is room for: sample again."
        )
