"""Every data set by its name."""

import dataclasses
import os
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._sentence import Option, Sentence
from ._base import Data
from ._error import DataError, DataNotFoundError, nearest
from ._source import Source, expanded
from .images import HUB_SETS, ImageFit, digits, hub_set, image_folder
from .series import SERIES_TOYS, mocap
from .shards import (
    KINDS,
    is_image_folder,
    is_sharded,
    kind_of_folder,
    load_images,
    load_shards,
)
from .tables import TOYS, TableOptions, archive, table, toy, uci

_TABLES = (".csv", ".parquet")


def load(
    name: str | Path,
    *,
    data_dir: str | Path | None = None,
    split: int = 0,
    validation_fraction: float = 0.0,
    seed: int = 0,
    target: str | Sequence[str] | None = None,
    task: str | None = None,
    test_fraction: float = 0.2,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    id_column: str | None = None,
    separator: str | None = None,
    test: str | Path | None = None,
    image_size: int | None = None,
    image_fit: ImageFit = "crop",
    stream: bool = False,
    shuffle_buffer: int | None = None,
) -> Data:
    """Load a data set: split, checked, and standardised by its training rows.

    Args:
        name: one of `list_data()`, `uci/NAME`, or the user's own: a `.csv` or
            `.parquet` file (with `target`), an `.npz` file with x and y, or a folder
            of images with a sub-folder for each class.
        data_dir: the folder of downloaded sets; `ORNSTEIN_DATA` where it is `None`.
        split: which of the numbered splits of `uci/NAME`.
        validation_fraction: of the training rows, to hold out for choosing.
        seed: decides the validation rows, and the test rows of the user's own data.
        target: for tables, the column to predict, or several for a regression.
        task: for the user's tables and arrays, `"classification"` or `"regression"`;
            `None` decides by the target, and says in `notes` where it had to guess.
        test_fraction: of the user's own rows, for the test; with `stream`, 0 leaves all
            of them for the training, and `test` without rows.
        features: for tables, the columns to learn from; by default all that are not
            named otherwise, but texts that are names and whole numbers that are ids.
        drop: for tables, columns to leave out.
        id_column: for tables, the one that names the rows, which is no feature.
        separator: between the cells of a `.csv`; seen from its header by default.
        test: for tables, another file, whose rows are the test.
        image_size: for folders of images, of the sides to which they are brought; by
            default they must be of one size.
        image_fit: how: `"crop"` leaves the ends of the longer side out, `"pad"` puts
            black beside the shorter one.
        stream: leave training rows on disk and read them as they are needed: of a
            .parquet or .npz file, a folder of such files, or a folder of images. See
            `Streamed`.
        shuffle_buffer: with `stream`: rows that are shuffled among each other; as many
            as 32 MB hold by default.

    Returns:
        The data.

    Raises:
        DataNotFoundError: for data that are not there (a `FileNotFoundError`, too).
        DataError: for data that cannot be used (a `ValueError`).
    """
    folder = data_dir or os.environ.get("ORNSTEIN_DATA") or None
    root = None if folder is None else Path(folder)
    if not isinstance(name, str | Path):
        raise DataError(
            f"Data are loaded by name or path, and got {type(name).__name__}: write a "
            "table to a .parquet file, and give its path."
        )
    name = str(name)
    path = expanded(name)
    suffix = path.suffix.lower()
    columns: dict[str, Any] = {
        "features": tuple(features),
        "drop": tuple(drop),
        "id_column": id_column,
        "separator": separator,
        "test": None if test is None else expanded(test),
    }
    check_load_options(
        name,
        split=split,
        target=target,
        task=task,
        columns=columns,
        image_size=image_size,
        image_fit=image_fit,
        stream=stream,
        shuffle_buffer=shuffle_buffer,
    )
    is_folder = _is_folder(path, stream=stream)
    is_table = _is_table(path, stream=stream)
    own = {"test_fraction": test_fraction, "seed": seed}
    if stream:
        how: dict[str, Any] = own | {
            "validation_fraction": validation_fraction,
            "shuffle_buffer": shuffle_buffer,
        }
        if is_folder:
            return load_images(path, size=image_size, fit=image_fit, **how)
        return load_shards(path, TableOptions(target, task, **columns), **how)
    is_own = False
    if name == "digits":
        data = digits()
    elif name in TOYS:
        data = toy(name)
    elif name in SERIES_TOYS:
        data = SERIES_TOYS[name].build(name)
    elif name == "mocap":
        data = mocap(root)
    elif name in HUB_SETS:
        data = hub_set(name, root)
    elif name.startswith("uci/"):
        data = uci(name, root, split=split)
    elif is_table:  # which knows its source
        data = table(path, TableOptions(target, task, **columns), **own)
    elif suffix == ".npz":
        data, is_own = archive(path, task=task, **own), True
    elif path.is_dir():
        data = image_folder(path, size=image_size, fit=image_fit, **own)
        is_own = True
    else:
        raise _unknown(name, path)
    if is_own:  # and no folder that happens to have the name of built-in data
        num_rows = len(data.train) + len(data.test)
        source = Source.of([path], num_rows=num_rows)
        data = dataclasses.replace(data, source=source)
    if validation_fraction == 0:
        return data
    return data.with_validation(validation_fraction, seed=seed)


def check_load_options(
    name: str,
    *,
    split: int,
    target: str | Sequence[str] | None,
    task: str | None,
    columns: Mapping[str, Any],
    image_size: int | None,
    image_fit: str,
    stream: bool,
    shuffle_buffer: int | None,
) -> None:
    """Refuse options of other data than those of this name; no file is opened.

    Args:
        name: of the data, as `load` has it, and so below.
        split: a number of `uci/NAME`.
        target: of a table.
        task: of a table or arrays.
        columns: further options of a table, by name.
        image_size: of a folder of images.
        image_fit: how such images are made square.
        stream: rows stay on disk.
        shuffle_buffer: of these.

    Raises:
        DataError: naming the first of them.
    """
    path = expanded(name)
    is_folder = _is_folder(path, stream=stream)
    is_table = _is_table(path, stream=stream)
    _check_stream(name, path, stream, shuffle_buffer)
    for option, given in columns.items():
        if given and not is_table:
            raise DataError(
                Sentence(
                    "{} is for a .csv or .parquet file, and {} is none: leave it out.",
                    Option(option),
                    name,
                )
            )
    of_images = {"image_size": image_size is not None, "image_fit": image_fit != "crop"}
    for option, is_given in of_images.items():
        if is_given and not is_folder:
            text = "{} is for a folder of images, and {} is none: leave it out."
            raise DataError(Sentence(text, Option(option), name))
    fits = typing.get_args(ImageFit)
    if image_fit not in fits:
        text = "{image_fit} must be one of {}, got {}."
        raise DataError(Sentence(text, ", ".join(fits), repr(image_fit)))
    if image_fit != "crop" and image_size is None:
        raise DataError(
            Sentence(
                "{image_fit} {} is how images are brought to {image_size}: give that, "
                "too, or leave it out.",
                image_fit,
            )
        )
    if target is not None and not is_table:
        raise DataError(
            Sentence(
                "{} has its own target: leave {target} out, which names a column of a "
                ".csv or .parquet file.",
                name,
            )
        )
    if task is not None and not (is_table or path.suffix.lower() == ".npz"):
        raise DataError(Sentence("{} has its own task: leave {task} out.", name))
    if split != 0 and not name.startswith("uci/"):
        raise DataError(
            Sentence(
                "{} has no numbered splits, got split {}: only uci/NAME has; {seed} "
                "draws another split of your own data.",
                name,
                split,
            )
        )


def _is_folder(path: Path, *, stream: bool) -> bool:
    """Whether it holds images, a sub-folder for each class."""
    return is_image_folder(path) if stream else path.is_dir()


def _is_table(path: Path, *, stream: bool) -> bool:
    is_rows = stream and is_sharded(path) and not _is_folder(path, stream=stream)
    return path.suffix.lower() in _TABLES or is_rows


def _check_stream(
    name: str, path: Path, stream: bool, shuffle_buffer: int | None
) -> None:
    """Refuse rows on disk of what has none."""
    if not stream:
        if shuffle_buffer is not None:
            text = (
                "{shuffle_buffer} is for rows on disk: give {stream}, or leave it out."
            )
            raise DataError(Sentence(text))
        kind = kind_of_folder(path)
        if kind is not None:
            how = "{stream} reads such a folder."
            if kind not in KINDS:
                how = (
                    "give one .csv or .parquet file of all rows ({stream} reads "
                    "folders of .parquet or .npz files)."
                )
            text = f"{{}} is a folder of {{}} files: {how}"
            raise DataError(Sentence(text, name, kind))
        return
    if shuffle_buffer is not None and shuffle_buffer < 1:
        text = "{shuffle_buffer} must be at least 1 row, got {}."
        raise DataError(Sentence(text, shuffle_buffer))
    if path.exists() and not is_sharded(path):
        text = (
            "{} cannot be read with {stream}: give a .parquet or .npz file, a folder "
            "of one of these kinds, or one of images by class."
        )
        raise DataError(Sentence(text, name))
    if not path.exists() and path.suffix == "":
        text = "There is no file or folder {} to be read with {stream}: check the path."
        raise DataNotFoundError(Sentence(text, name))


def list_data() -> dict[str, str]:
    """The names that `load` knows, with a line on each."""
    return {
        "digits": "1,797 handwritten digits, 8 x 8 grey, 10 classes (built in)",
        **{name: toy.description for name, toy in TOYS.items()},
        **{name: toy.description for name, toy in SERIES_TOYS.items()},
        **{name: hub.description for name, hub in HUB_SETS.items()},
        "mocap": Sentence(
            "23 walks of one person, 300 frames of 50 sensors (from {data_dir})"
        ),
        "uci/NAME": Sentence(
            "a regression of the UCI repository, 20 splits (from {data_dir})"
        ),
        "FILE.csv, FILE.parquet": (
            Sentence(
                "your own table, with {target} COLUMN; or sequences, with {time} COLUMN"
            )
        ),
        "FILE.npz": "your own arrays x and y",
        "FOLDER": "your own images, a sub-folder for each class",
        "FOLDER, FILE.parquet, FILE.npz with more rows than memory": Sentence(
            "your own, of .parquet, .npz or image files, read as needed with {stream}"
        ),
    }


def _unknown(name: str, path: Path) -> DataError:
    if path.exists():
        return DataError(
            f"{name} is of no kind that can be read: give a .csv, .parquet or .npz "
            "file, or a folder of images with a sub-folder for each class."
        )
    names = ["digits", *TOYS, *SERIES_TOYS, *HUB_SETS, "mocap"]
    return DataNotFoundError(
        f"There is no data set {name!r}{nearest(name, names)}: give one of "
        f"{', '.join(names)}, uci/NAME, or the path of a .csv, .parquet or .npz file "
        "or of a folder of images."
    )
