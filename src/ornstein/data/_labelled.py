"""New rows with their targets, for a fitted model to be judged by."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from .._sentence import Sentence
from ._assemble import check_finite, check_lengths, standardised
from ._base import Data
from ._columns import Column, check_columns
from ._error import DataError, DataNotFoundError, nearest
from ._inputs import Inputs, array_inputs, as_frame, frame_inputs
from ._source import Source, expanded
from .images import class_folders, read_labelled_images, unread_notes
from .tables import class_name, own_labels, read_array, read_frame, with_targets

if TYPE_CHECKING:
    import pandas as pd


class LabelledInputs(NamedTuple):
    """Rows to judge a fitted model by.

    Attributes:
        inputs: as the model takes them.
        y: their targets, likewise, as `data.test.y` is.
    """

    inputs: Inputs
    y: Shaped[np.ndarray, "rows ..."]


def read_labelled(
    path: str | Path, data: Data, *, separator: str | None = None
) -> LabelledInputs:
    """Read inputs and their targets, and bring them to the units that `data` has.

    Args:
        path: a `.csv` or `.parquet` file with the columns that `data` learned from and
            those of the target; an `.npz` file with x and y; a folder of images with a
            sub-folder for each class.
        data: what the model was trained on.
        separator: between cells of a `.csv`; seen from its header by default.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used, or is what the model learned from.
    """
    path = expanded(path)
    suffix = path.suffix.lower()
    if not path.exists():
        raise DataNotFoundError(f"There is no {path}: check the path.")
    if suffix in (".csv", ".parquet"):
        found = frame_labelled(read_frame(path, separator), data, str(path))
    elif separator is not None:
        raise DataError(
            Sentence("{separator} is for a .csv, and {} is none: leave it out.", path)
        )
    elif suffix == ".npz":
        arrays = read_array(path, "x"), read_array(path, "y")
        found = array_labelled(*arrays, data, str(path))
    elif path.is_dir():
        found = _image_rows(path, data)
    else:
        raise DataError(
            f"{path} is of no kind that can be read: give .csv, .parquet, .npz, or a "
            "folder of images with a sub-folder for each class."
        )
    _check_other(path, data)
    return found


def frame_labelled(
    frame: "pd.DataFrame", data: Data, where: str = "The table"
) -> LabelledInputs:
    """A table's rows that have a target; a note says how many have none.

    Args:
        frame: with the columns that `data` learned from, and those of the target.
        data: what the model was trained on.
        where: its name, for messages.

    Raises:
        DataError: if it cannot be used.
    """
    frame = as_frame(frame, where)
    columns = _target_columns(data, where)
    names = [column.name for column in columns]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"{where} has no column {absent[0]!r}{nearest(absent[0], frame.columns)}, "
            "the target, by which rows are judged: add it (rows without it can be "
            "predicted, not judged)."
        )
    check_columns(frame, names, where)
    if len(frame) == 0:
        raise DataError(f"{where} has no rows: give at least one.")
    frame, notes = with_targets(frame, names, where)
    y = own_labels(frame, columns, data.class_names or None, where)
    inputs = frame_inputs(frame, data, where)
    inputs = inputs._replace(notes=(*notes, *inputs.notes))
    return LabelledInputs(inputs, _as_learned(y, data, where))


def array_labelled(
    x: Shaped[np.ndarray, "rows ..."],
    y: Shaped[np.ndarray, "..."],
    data: Data,
    where: str = "The arrays",
) -> LabelledInputs:
    """Raw features, or images, and their targets.

    Args:
        x: as `array_inputs` takes them.
        y: names of classes, (rows,), or numbers, (rows,) or (rows, outputs).
        data: what the model was trained on.
        where: their name, for messages.

    Raises:
        DataError: if they cannot be used.
    """
    inputs = array_inputs(x, data, where)
    check_lengths(inputs.x, y, where)
    if y.dtype.kind == "O":  # of a table's column, which may hold texts or numbers
        y = np.array(y.tolist())
    if data.num_classes is None:
        return LabelledInputs(
            inputs, _as_learned(_numbers(y, data, where), data, where)
        )
    single = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if single.ndim != 1:
        raise DataError(
            f"{where}: y has shape {y.shape}; give the class of each row, (rows,)."
        )
    numbers = {name: number for number, name in enumerate(data.class_names)}
    names = [class_name(value) for value in single]
    for row, name in enumerate(names):
        if name not in numbers:
            raise _unknown(f"{where}: y has {name!r} in row {row}", name, data)
    y = np.array([numbers[name] for name in names])
    return LabelledInputs(inputs, _as_learned(y, data, where))


def _image_rows(path: Path, data: Data) -> LabelledInputs:
    if data.task != "classification" or len(data.example_shape) != 3:
        raise DataError(
            f"{path} is a folder, of images in classes, and the model learned from "
            f"{data.name}: give rows like those."
        )
    known = list(map(str, data.class_names))
    there = class_folders(path)
    if not there:
        raise DataError(
            f"{path} has no sub-folder: give one of images for each class that is to "
            "be judged."
        )
    for name in there:
        if name not in known:
            raise _unknown(f"{path} has the sub-folder {name!r}", name, data)
    channels = data.example_shape[-1]
    how: Any = {"size": data.image_size, "fit": data.image_fit}
    images, y, files = read_labelled_images(path, known, channels, **how)
    inputs = array_inputs(images, data, str(path))
    labels: dict[str, list] = {"file": [f.relative_to(path).as_posix() for f in files]}
    notes = (*unread_notes(path, [path / name for name in known]), *inputs.notes)
    inputs = inputs._replace(labels=labels, notes=notes)
    return LabelledInputs(inputs, _as_learned(y, data, str(path)))


def _target_columns(data: Data, where: str) -> tuple[Column, ...]:
    """What a table's targets are called, and how their cells are read."""
    if data.encoding is not None and data.encoding.targets:
        return data.encoding.targets
    if not data.target_names:
        raise DataError(
            f"{where} is a table, and the target of {data.name} has no name by which "
            "to find it there: give an .npz file with x and y."
        )
    kind = "number" if data.num_classes is None else "category"
    return tuple(Column(name, kind) for name in data.target_names)


def _numbers(y: Any, data: Data, where: str) -> Shaped[np.ndarray, "rows outputs"]:
    if y.dtype.kind not in "iufb":
        raise DataError(
            f"{where}: y is of type {y.dtype}, and the model learned numbers: give "
            "numbers."
        )
    values = np.asarray(y, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != data.num_outputs:
        raise DataError(
            f"{where}: y has shape {y.shape}, and the model learned {data.num_outputs} "
            "numbers a row: give as many."
        )
    return values


def _as_learned(
    y: Shaped[np.ndarray, "rows ..."], data: Data, where: str
) -> Shaped[np.ndarray, "rows ..."]:
    """In the units and the type in which the model learned its targets."""
    if data.y_scaling is None:
        return y.astype(np.int32 if data.num_classes is not None else np.float32)
    what = f"{where}: the target"
    check_finite(y, what, data.target_names)
    return standardised(data.y_scaling, y, what, data.target_names)


def _unknown(what: str, name: str, data: Data) -> DataError:
    names = list(map(str, data.class_names))
    return DataError(
        f"{what}, which training had not{nearest(name, names, is_given=True)}: its "
        "classes are "
        f"{', '.join(names)}."
    )


def _check_other(path: Path, data: Data) -> None:
    """Refuse the file that the model learned from."""
    source = data.source
    if source is None:
        return
    digest = lambda file: Source.of([file], num_rows=0).sha256
    learned, *others = [expanded(name) for name in source.paths]
    known = {source.sha256}
    if others and learned.exists():  # the others are of test rows
        known = {digest(learned)}
    if digest(path) in known or Source.share_a_file(learned, path):
        raise DataError(
            f"{path} is what the run learned from ({learned}): rows that were "
            "learned from judge nothing; give others."
        )
