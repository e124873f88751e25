"""New inputs for a fitted model, in the units of its training data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from .._files import UnreadableError, check_regular
from ._assemble import check_inputs, standardised
from ._base import Data
from ._columns import TableEncoding, check_columns
from ._error import DataError, DataNotFoundError
from ._formulas import unescaped
from ._source import expanded
from ._standardise import Standardisation
from .cells import FEW, Cells, Reading, bad_cells, few_written
from .images import SUFFIXES, images_below, read_images, unread_notes
from .tables import read_array, read_frame

if TYPE_CHECKING:
    import pandas as pd

_FAR = 10.0
"""Standard deviations of the training rows: further off, the unit may be another."""


class Inputs(NamedTuple):
    """Inputs as a model takes them, and as their file has them.

    Attributes:
        x: like `data.train.x`.
        labels: columns that tell rows apart: a table's id column, images' files.
        columns: of a table, all as they were read; empty for arrays and images.
        notes: what of them training had not shown.
        index: of a table that was given in memory; else `None`.
    """

    x: Float[np.ndarray, "rows ..."]
    labels: dict[str, list]
    columns: dict[str, list]
    notes: tuple[str, ...] = ()
    index: Any = None


def read_inputs(
    path: str | Path, data: Data, *, separator: str | None = None
) -> Inputs:
    """Read inputs alone, and bring them to the units that `data` has.

    Args:
        path: a `.csv` or `.parquet` file with the columns that `data` learned from (in
            any order, others may be there); an `.npz` file with x; an image, or a
            folder of images (taken in the order of their paths).
        data: what the model was trained on.
        separator: between cells of a `.csv`; seen from its header by default.

    Returns:
        The inputs.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    path = expanded(path)
    suffix = path.suffix.lower()
    if path.exists() and not path.is_dir():
        _check_regular(path)
    if suffix in (".csv", ".parquet"):
        return frame_inputs(read_frame(path, separator), data, str(path))
    if suffix == ".npz":
        return array_inputs(read_array(path, "x"), data, str(path))
    if suffix in SUFFIXES and path.exists() and not path.is_dir():
        files = [path]
    elif path.is_dir():
        files = list(images_below(path))
    elif not path.exists():
        raise DataNotFoundError(f"There is no {path}: check the path.")
    else:
        raise DataError(
            f"{path} is of no kind that can be read: give .csv, .parquet, .npz, or "
            "images."
        )
    how: Any = {"size": data.image_size, "fit": data.image_fit}
    raw = read_images(files, _channels(path, data), **how)
    found = array_inputs(raw, data, str(path))
    root = path if path.is_dir() else path.parent
    names = [file.relative_to(root).as_posix() for file in files]
    notes = (*unread_notes(path, [path]), *found.notes)  # of a file, there are none
    return found._replace(labels={"file": names}, notes=notes)


def frame_inputs(frame: "pd.DataFrame", data: Data, where: str = "The table") -> Inputs:
    """A table's rows as the model takes them.

    Args:
        frame: of pandas', Arrow's or another with `to_pandas`, with the columns that
            `data` learned from, in any order.
        data: what the model was trained on.
        where: its name, for messages.

    Raises:
        DataError: if it cannot be used.
    """
    frame = as_frame(frame, where)
    if len(data.example_shape) != 1:
        raise DataError(
            f"{where} has rows of numbers and the model learned from examples of shape "
            f"{data.example_shape}: give inputs like those of {data.name}."
        )
    if len(frame) == 0:
        raise DataError(f"{where} has no rows: give at least one.")
    if data.encoding is None:
        raw, notes = _numbers(frame, data, where), []
    else:
        raw, notes = data.encoding.apply(frame, where)
    found = _standard(raw, data, where)
    cells = {
        name: _as_written(frame.iloc[:, place])
        for place, name in enumerate(frame.columns)
    }
    labels = {n: column for n, column in cells.items() if n == data.id_column}
    return Inputs(found.x, labels, cells, (*notes, *found.notes), frame.index)


def as_frame(table: Any, where: str) -> "pd.DataFrame":
    """A table of pandas', whose columns are called by texts, as a file's are.

    Args:
        table: of pandas', or one that can become such, as Arrow's can.
        where: its name, for messages.

    Raises:
        DataError: for another.
    """
    import pandas as pd

    frame = table.to_pandas() if hasattr(table, "to_pandas") else table
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"{where} is of type {type(table).__name__}: give a pandas table."
        )
    if all(type(name) is str for name in frame.columns):
        return frame
    return frame.rename(columns=str)


def array_inputs(
    raw: Shaped[np.ndarray, "rows ..."], data: Data, where: str = "x"
) -> Inputs:
    """Raw features, or images, as the model takes them.

    Args:
        raw: in the units that the training data had before they were standardised; of
            a table its columns, in the order of `data.encoding.columns`.
        data: what the model was trained on.
        where: their name, for messages.

    Raises:
        DataError: if they cannot be used.
    """
    if data.encoding is not None:
        return frame_inputs(_as_table(raw, data.encoding, where), data, where)
    return _standard(raw, data, where)


def _as_table(
    raw: Shaped[np.ndarray, "rows ..."], encoding: TableEncoding, where: str
) -> "pd.DataFrame":
    """Cells without names, in the order of the training table's columns."""
    import pandas as pd

    names = [column.name for column in encoding.columns]
    if raw.ndim != 2 or raw.shape[1] != len(names):
        raise DataError(
            f"{where} has rows of shape {raw.shape[1:]}, and the model learned from "
            f"the {len(names)} columns {', '.join(names)}: give a table, or these in "
            "this order."
        )
    return pd.DataFrame(raw, columns=names).infer_objects()


def _standard(raw: Shaped[np.ndarray, "rows ..."], data: Data, where: str) -> Inputs:
    check_inputs(raw, where, data.feature_names)
    if raw.shape[1:] != data.example_shape:
        raise DataError(
            f"{where} has examples of shape {raw.shape[1:]} and the model learned from "
            f"shape {data.example_shape}: give inputs like those of {data.name}."
        )
    scaling = data.x_scaling or Standardisation(np.zeros(()), np.ones(()))
    x = standardised(scaling, raw, f"{where}: x", data.feature_names)
    return Inputs(x, {}, {}, tuple(_far_off(x, raw, data, where)))


def _far_off(
    x: Float[np.ndarray, "rows ..."],
    raw: Shaped[np.ndarray, "rows ..."],
    data: Data,
    where: str,
) -> list[str]:
    """Notes on columns that may be in another unit than the training rows'."""
    if x.ndim != 2:
        return []
    furthest = np.abs(x).argmax(0)
    distance = np.abs(x).max(0)
    numbers = []
    if data.encoding is not None:  # categories, and gaps, have no unit
        numbers = [c for c in data.encoding.columns if c.kind != "category"]
        has_unit = np.zeros(len(distance), bool)
        has_unit[: len(numbers)] = [not c.is_constant for c in numbers]
        distance = np.where(has_unit, distance, 0)
    far = np.flatnonzero(distance > _FAR)
    if not far.size:
        return []
    column = far[distance[far].argmax()]
    names = data.feature_names
    name = repr(names[column]) if names else str(column)
    said = numbers[column].said if numbers else "{:.10g}".format
    has = f"{where}: column {name} has {said(float(raw[furthest[column], column]))}"
    off = (
        f"{distance[column]:.0f} standard deviations from the training rows' mean"
        + f", as other values are of {len(far) - 1} more columns" * (len(far) > 1)
    )
    scaling = data.x_scaling
    if scaling is not None and scaling.scale[column] == 1:  # perhaps of one value
        off = f"and the training rows' mean is {said(float(scaling.mean[column]))}"
    return [f"{has}, {off}: is it in their unit?"]


def _as_written(cells: "pd.Series") -> list:
    """As objects of Python's, `None` where a cell is empty."""
    few = few_written(cells) if len(cells) <= FEW else None
    if few is not None:
        return few
    found = cells.astype(object).where(cells.notna(), None).tolist()
    return [unescaped(cell) if isinstance(cell, str) else cell for cell in found]


def _numbers(
    frame: "pd.DataFrame", data: Data, where: str
) -> Float[np.ndarray, "rows features"]:
    """Of a model that did not learn from a table: numbers, and no gaps."""
    names = list(data.feature_names) or list(map(str, frame.columns))
    check_columns(frame, names, where)
    for name in names:
        empty = ~Cells(frame[name]).given
        if empty.any():
            raise DataError(
                f"{where}: column {name!r} has {empty.sum()} empty cells, the first in "
                f"row {np.flatnonzero(empty)[0]}, counting from 0, and the model was "
                "never shown any: fill them in or leave those rows out."
            )
    plain = Reading()
    found = [bad_cells(Cells(frame[name]), "number", plain) for name in names]
    bad = [problem.said for problem in found if problem is not None]
    if bad:
        raise DataError(f"{where}: {'; '.join(bad)}: correct these cells.")
    return np.stack([Cells(frame[name]).numbers(plain) for name in names], axis=1)


def _check_regular(path: Path) -> None:
    try:
        check_regular(path)
    except UnreadableError as error:
        raise DataError(
            f"{path} cannot be read: {error}; write what it gives to a file first."
        ) from error


def _channels(path: Path, data: Data) -> int:
    if len(data.example_shape) != 3:
        raise DataError(
            f"{path} is images and the model learned from rows of "
            f"{data.example_shape[-1]} numbers: give a .csv, .parquet or .npz file."
        )
    return data.example_shape[-1]
