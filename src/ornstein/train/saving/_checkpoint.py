"""Checkpoints of a run: numbered, whole or absent, and checked when they are read.

A checkpoint is a folder `step_000001234` with orbax's arrays (no pickle: a stranger's
checkpoint runs no code) and `meta.json`, which has the digest of everything. It is
written under another name and renamed, so a process killed while writing leaves the
previous one as it was. What a disk damages all the same is set aside, and the one
before is gone on from.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from ..._files import UnreadableError, check_folder, naming, read_json, to_disk
from ..._processes import num_processes
from ..._types import PyTree
from .._errors import CheckpointError
from ._leaves import describe, named_arrays, with_arrays

logger = logging.getLogger("ornstein")

_PREFIX = "step_"
_PARTIAL = ".partial_"
_DAMAGED = "damaged_"
_NEW_IDENTITY = ("model",)
"""What runs begun before did not say of themselves."""
# Every epoch's record is there: 400 bytes each, and tables of few rows have many.
_MAX_META_BYTES = 2**28
_SYSTEM_ERROR = re.compile(r"os_error_code='(\d+)'")
_DAMAGE = (AttributeError, KeyError, MemoryError, OSError, OverflowError)
_DAMAGE += (TypeError, ValueError)
# What says nothing about the checkpoint itself.
_OF_THE_READER = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}
_OF_THE_READER |= {errno.ENOMEM, errno.EIO, errno.ESTALE}


def save_checkpoint(
    folder: Path, step: int, tree: PyTree, meta: dict[str, Any], *, keep: int = 2
) -> Path:
    """Write a checkpoint, then remove all but the newest `keep`.

    Args:
        folder: of all checkpoints; made if it is missing.
        step: the number of steps taken, which names it.
        tree: what to save: its array leaves.
        meta: what else to save, as JSON.
        keep: how many checkpoints stay: two, so that there is always one before.

    Returns:
        Where it was written.

    Raises:
        OSError: naming the checkpoint, of which nothing is left.
    """
    final = folder / f"{_PREFIX}{step:09d}"
    with naming(final):
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(f"{_PARTIAL}*"):  # of a process that was killed
            shutil.rmtree(leftover)
        if final.exists():
            return final
        partial = folder / f"{_PARTIAL}{step:09d}"
        try:
            with _system_errors():
                _write(partial, step, tree, meta)
                to_disk(*partial.rglob("*"), partial)
            os.replace(partial, final)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)  # room for others
            raise
        to_disk(folder, folder.parent)  # before older ones go
        for old in checkpoints(folder)[:-keep]:
            # Renamed first: a half-removed folder must not look like a checkpoint.
            doomed = old.rename(folder / f"{_PARTIAL}{old.name}")
            shutil.rmtree(doomed)
    return final


def _write(partial: Path, step: int, tree: PyTree, meta: dict[str, Any]) -> None:
    partial.mkdir()
    arrays = named_arrays(tree)
    # orbax refuses empty arrays, whose content their shape already says.
    stored = [array for array in arrays.values() if array.size]
    numbered = {f"{i:06d}": array for i, array in enumerate(stored)}
    with _checkpointer() as checkpointer:
        checkpointer.save(
            (partial / "arrays").absolute(), args=ocp.args.StandardSave(numbered)
        )
    text = json.dumps(meta, sort_keys=True, allow_nan=False)
    record = {
        "step": step,
        "leaves": describe(arrays),
        "digest": _digest(partial / "arrays", text),
    }
    record |= {"of_record": _record_digest(record), "meta": meta}
    (partial / "meta.json").write_text(json.dumps(record), encoding="utf-8")


def _checkpointer() -> ocp.Checkpointer:
    """Orbax's, of this process alone: by default it waits for all that there are."""
    options = ocp.options.MultiprocessingOptions()
    if num_processes() > 1:
        own = jax.process_index()
        options = ocp.options.MultiprocessingOptions(
            primary_host=own,
            active_processes={own},
            barrier_sync_key_prefix=f"ornstein-{own}",
        )
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=options)
    return ocp.Checkpointer(handler, multiprocessing_options=options)


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Tensorstore's errors of the system, such as a full disk, as such."""
    try:
        yield
    except ValueError as error:
        found = _SYSTEM_ERROR.search(str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1]))) from error


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first.

    Raises:
        CheckpointError: if what is there is no folder.
    """
    try:
        check_folder(folder)
    except UnreadableError as error:
        raise CheckpointError(
            f"{folder} should be a folder of checkpoints ({error}): move it away, and "
            "put the run's own folder back or start the run again."
        ) from error
    return sorted(folder.glob(f"{_PREFIX}*"), key=_order)


def _order(path: Path) -> tuple[int, str]:
    """By step: names have nine digits, and a long run more steps."""
    step = path.name.removeprefix(_PREFIX)
    return (int(step) if step.isdecimal() else 0), step


def load_checkpoint(
    folder: Path, like: PyTree, *, identity: dict[str, Any]
) -> tuple[PyTree, dict[str, Any]]:
    """The newest whole checkpoint's tree and what was saved beside it.

    Newer ones that are damaged are set aside as `damaged_step_…`, and the log says so.

    Args:
        folder: of all checkpoints.
        like: a tree of the same structure, shapes and types.
        identity: what `meta["identity"]` must say, so that a run goes on as it began.

    Raises:
        CheckpointError: if there is none, or all are damaged, or the newest that is
            not belongs to another model.
        OSError: if the newest may not be read.
    """
    found = checkpoints(folder)
    if not found:
        raise CheckpointError(
            f"There is no checkpoint in {folder}: the run ended before its first. "
            "Start it again without resuming."
        )
    damaged: dict[Path, str] = {}
    for path in reversed(found):
        try:
            arrays, meta = _read(path)
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_READER:
                raise
            damaged[path] = _reason(error)
            continue
        tree = _checked(path, arrays, meta, like, identity)
        if damaged:
            _set_aside(damaged, path)
        return tree, meta
    newest, reason = next(iter(damaged.items()))
    raise CheckpointError(
        f"The checkpoint {newest} is truncated or damaged ({reason}), and no earlier "
        "one is complete: put a copy of one back, or start the run again."
    )


def _checked(
    path: Path,
    arrays: dict[str, np.ndarray],
    meta: dict[str, Any],
    like: PyTree,
    identity: dict[str, Any],
) -> PyTree:
    """The tree of a checkpoint, if it is of the run that goes on."""
    for name, value in identity.items():
        known = meta.get("identity", {})
        begun_with = known.get(name, value if name in _NEW_IDENTITY else None)
        if begun_with == value:
            continue
        if isinstance(value, str) and isinstance(begun_with, str):
            theirs, ours = _difference(begun_with, value)
            raise CheckpointError(
                f"The checkpoint {path} is of another {name}, with {theirs} where this "
                f"one has {ours}: pass the {name} that it was begun with, or start "
                "another run."
            )
        raise CheckpointError(
            f"The checkpoint {path} is of a run begun with {name}={begun_with}, "
            f"not {value}: pass the arguments that it was begun with, or start "
            "another run."
        )
    try:
        return with_arrays(like, arrays)
    except ValueError as error:
        raise CheckpointError(
            f"The checkpoint {path} belongs to another model or other settings: "
            f"{error}."
        ) from error


def _difference(theirs: str, ours: str) -> tuple[str, str]:
    """The first lines in which two texts differ."""
    pairs = zip_longest(theirs.splitlines(), ours.splitlines(), fillvalue="nothing")
    a, b = next((a, b) for a, b in pairs if a != b)
    return a.strip().rstrip(","), b.strip().rstrip(",")


def _set_aside(damaged: dict[Path, str], whole: Path) -> None:
    """Out of the way of what is written next, and those of before go."""
    for before in whole.parent.glob(f"{_DAMAGED}*"):
        shutil.rmtree(before) if before.is_dir() else before.unlink()
    for path, reason in damaged.items():
        aside = path.rename(path.with_name(f"{_DAMAGED}{path.name}"))
        logger.warning(
            "The checkpoint %s is truncated or damaged (%s) and is set aside as %s: "
            "going on from %s, the one before it.",
            path,
            reason,
            aside.name,
            whole.name,
        )


def _reason(error: Exception) -> str:
    """Why a checkpoint cannot be read, as a clause."""
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"{Path(error.filename).name} is not there"
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error).partition("\n")[0] or type(error).__name__


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    record = read_json(path / "meta.json", limit=_MAX_META_BYTES)
    # Those written before had none.
    if record.get("of_record", whole := _record_digest(record)) != whole:
        raise ValueError("what it says of itself does not match its digest")
    if not isinstance(record["meta"].get("identity", {}), dict):
        raise ValueError("the identity is no object")
    text = json.dumps(record["meta"], sort_keys=True, allow_nan=False)
    # Before orbax, whose readers leave threads behind when they meet damage.
    if _digest(path / "arrays", text) != record["digest"]:
        raise ValueError("the digest does not match")
    arrays = {
        name: np.zeros(shape, jax.numpy.dtype(dtype))
        for name, shape, dtype in record["leaves"]
    }
    stored = [name for name, array in arrays.items() if array.size]
    like = {f"{i:06d}": arrays[name] for i, name in enumerate(stored)}
    with _system_errors(), _checkpointer() as checkpointer:
        numbered = checkpointer.restore(
            (path / "arrays").absolute(), args=ocp.args.StandardRestore(like)
        )
    arrays |= {name: np.asarray(numbered[f"{i:06d}"]) for i, name in enumerate(stored)}
    return arrays, record["meta"]


def _record_digest(record: dict[str, Any]) -> str:
    """SHA-256 of what is said of a checkpoint, but for `meta`, which has its own."""
    said = [record["step"], record["leaves"], record["digest"]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _digest(arrays: Path, text: str) -> str:
    """SHA-256 of all of orbax's files and of what is written beside them."""
    total = hashlib.sha256(text.encode())
    for file in sorted(path for path in arrays.rglob("*") if path.is_file()):
        total.update(file.relative_to(arrays).as_posix().encode())
        with file.open("rb") as content:
            while block := content.read(2**20):
                total.update(block)
    return total.hexdigest()
