"""Image sets of the Hugging Face hub: parquet in a local folder, or from the hub."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..._files import UnreadableError, check_expansion, check_fits_memory, parse_json
from ..._sentence import Sentence
from .._assemble import assemble
from .._base import Data
from .._error import DataError, DataNotFoundError
from ._pixels import decode, jpeg_notes


class HubSet(NamedTuple):
    """Where an image set lives, and what its columns are called.

    Attributes:
        description: one line for lists.
        repository: on the hub.
        image: column of images, `{bytes, path}`.
        label: column of class numbers.
        num_classes: classes.
        channels: 1 for grey, 3 for colour.
    """

    description: str
    repository: str
    image: str
    label: str
    num_classes: int
    channels: int


_CELL_BYTES = 8  # of a number; runs of one number take none in the file
_DAMAGE = (pa.ArrowException, MemoryError, OSError, UnicodeDecodeError)

HUB_SETS = {
    "mnist": HubSet(
        "70,000 handwritten digits, 28 x 28 grey, 10 classes",
        "ylecun/mnist",
        "image",
        "label",
        10,
        1,
    ),
    "fashion_mnist": HubSet(
        "70,000 pieces of clothing, 28 x 28 grey, 10 classes",
        "zalando-datasets/fashion_mnist",
        "image",
        "label",
        10,
        1,
    ),
    "cifar10": HubSet(
        "60,000 photographs, 32 x 32 colour, 10 classes",
        "uoft-cs/cifar10",
        "img",
        "label",
        10,
        3,
    ),
    "cifar100": HubSet(
        "60,000 photographs, 32 x 32 colour, 100 classes",
        "uoft-cs/cifar100",
        "img",
        "fine_label",
        100,
        3,
    ),
}
"""The image sets by name."""


def hub_set(name: str, data_dir: Path | None) -> Data:
    """One of `HUB_SETS`, with the test split it is published with.

    Args:
        name: a key of `HUB_SETS`.
        data_dir: the folder with a sub-folder `name`, in which parquet files may lie
            at any depth, as the hub's repositories have them.

    Raises:
        DataNotFoundError: if the set is neither there nor to be had.
        DataError: if its files cannot be used.
    """
    definition = HUB_SETS[name]
    folder = _folder(name, definition, data_dir)
    train = _read(_shards(folder, "train", name), definition)
    test = _read(_shards(folder, "test", name), definition)
    return assemble(
        name,
        train[:2],
        test[:2],
        class_names=train[2],
        notes=train[3],
    )


def _folder(name: str, definition: HubSet, data_dir: Path | None) -> Path:
    if data_dir is not None and any((data_dir / name).rglob("train-*.parquet")):
        return data_dir / name
    looked = (
        Sentence("no {data_dir} was given and ORNSTEIN_DATA is not set")
        if data_dir is None
        else f"there is no train-*.parquet below {data_dir / name}"
    )
    remedy = Sentence(
        "copy huggingface.co/datasets/{} into DIR/{} and name DIR with {data_dir} "
        "or ORNSTEIN_DATA",
        definition.repository,
        name,
    )
    try:
        # Of the extra `vision`.
        from huggingface_hub import (  # pyright: ignore[reportMissingImports]
            snapshot_download,
        )
    except ImportError:
        raise DataNotFoundError(
            Sentence(
                "{} was not found: {}, and huggingface_hub, which would fetch it, is "
                "not installed; `pip install ornstein[vision]`, or {}.",
                name,
                looked,
                remedy,
            )
        ) from None
    try:
        found = snapshot_download(
            definition.repository, repo_type="dataset", allow_patterns="*.parquet"
        )
    except (OSError, ValueError) as error:
        raise DataNotFoundError(
            Sentence(
                "{} was not found: {}, and the hub did not give it ({}); try again "
                "with a network, or {}.",
                name,
                looked,
                type(error).__name__,
                remedy,
            )
        ) from error
    return Path(found)


def _shards(folder: Path, part: str, name: str) -> list[Path]:
    """The files of one split, all of them: shard K of N is `part-K-of-N.parquet`."""
    paths = sorted(folder.rglob(f"{part}-*.parquet"))
    if not paths:
        raise DataNotFoundError(
            f"{name} has no {part}-*.parquet below {folder}: copy that file there, too."
        )
    paths = [path for path in paths if path.parent == paths[0].parent]
    match = re.search(r"-of-(\d+)", paths[0].name)
    if match and len(paths) != int(match[1]):
        raise DataError(
            f"{paths[0].parent} has {len(paths)} of the {int(match[1])} files "
            f"{part}-*-of-{match[1]}.parquet: copy the others there, too."
        )
    return paths


def _read(
    paths: Sequence[Path], definition: HubSet
) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
    """Images, labels, class names and notes of a split."""
    tables = [read_parquet(path) for path in paths]
    for path, table in zip(paths, tables, strict=True):
        _check_columns(path, table, definition)
    columns = [definition.image, definition.label]
    parts = [table.select(columns) for table in tables]
    table = pa.concat_tables(parts, promote_options="permissive")
    encoded = [cell["bytes"] for cell in table[definition.image].to_pylist()]
    labels = table[definition.label].to_numpy()
    names = [f"{paths[0].parent}: image {row}" for row in range(len(encoded))]
    images = decode(encoded, channels=definition.channels, names=names)
    return images, labels, _class_names(table, definition), jpeg_notes(encoded[:100])


def _check_columns(path: Path, table: pa.Table, definition: HubSet) -> None:
    """Images as `{bytes, path}` and whole numbers, without gaps."""
    missing = {definition.image, definition.label} - set(table.column_names)
    if missing:
        raise DataError(
            f"{path} has no column {sorted(missing)[0]!r}, only "
            f"{', '.join(table.column_names)}: put {definition.repository} there."
        )
    images, labels = table[definition.image], table[definition.label]
    fields = list(images.type) if pa.types.is_struct(images.type) else []
    names = [f.name for f in fields if f.type in (pa.binary(), pa.large_binary())]
    parts = dict(zip([f.name for f in fields], images.flatten(), strict=False))
    is_whole = "bytes" in names and not parts["bytes"].null_count
    if not is_whole or not pa.types.is_integer(labels.type):
        raise DataError(
            f"{path} has no image in every cell of {definition.image!r}, or no whole "
            f"number in {definition.label!r}: put {definition.repository} there."
        )
    if labels.null_count:
        raise DataError(
            f"{path} has {labels.null_count} empty cells in {definition.label!r}: put "
            f"{definition.repository} there."
        )


def _class_names(table: pa.Table, definition: HubSet) -> list[str]:
    """From the metadata that the hub writes; numbers where there are none."""
    found: Any = None
    try:
        found = parse_json((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    except UnreadableError:
        pass
    for name in ("info", "features", definition.label, "names"):
        found = found.get(name) if isinstance(found, dict) else None
    is_names = isinstance(found, list) and all(isinstance(n, str) for n in found)
    if is_names and len(found) == definition.num_classes:
        return found
    return [str(number) for number in range(definition.num_classes)]


def read_parquet(path: Path) -> pa.Table:
    """Read a parquet file.

    Args:
        path: the file.

    Raises:
        DataNotFoundError: if there is none.
        DataError: if it is cut short or something else.
    """
    if not path.exists():
        raise DataNotFoundError(f"There is no file {path}: check the path.")
    try:
        check_fits_memory(path)
        with path.open("rb") as file, pq.ParquetFile(file) as parquet:
            found = parquet.metadata
            cells = max(found.num_rows, 0) * found.num_columns
            check_expansion(_CELL_BYTES * cells, path.stat().st_size)
            return parquet.read()
    except (UnreadableError, *_DAMAGE) as error:
        reason = "it is cut short or something else"
        if isinstance(error, UnreadableError):
            reason = str(error)
        raise DataError(
            f"{path} ({path.stat().st_size:,} bytes) cannot be read as parquet: "
            f"{reason}; copy it again."
        ) from error
