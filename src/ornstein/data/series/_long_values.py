"""The cells of a long table: values with gaps, and the names of series."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from jaxtyping import Float, Int

from .._error import DataError
from .._formulas import unescaped

_EMPTY = frozenset(pacsv.ConvertOptions().null_values)


def read_values(
    frame: pa.Table, column: str, path: Path
) -> Float[np.ndarray, " cells"]:
    """Numbers in double precision, NaN for empty cells.

    Args:
        frame: the table.
        column: of values.
        path: the table's file, for messages.

    Raises:
        DataError: for text and infinite numbers, which a row number finds.
    """
    cells = frame[column].combine_chunks()
    if pa.types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    values = cells.cast(pa.float64()) if pa.types.is_boolean(cells.type) else cells
    values = values.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iuf":
        raise _not_numbers(cells, column, path)
    values = values.astype(np.float64)
    bad = np.flatnonzero(np.isinf(values))
    if bad.size:
        raise DataError(
            f"{path}: column {column!r} has {bad.size} infinite values, the first in "
            f"row {bad[0]}, counting from 0: leave the cell empty where nothing was "
            "observed."
        )
    return values


def _not_numbers(cells: pa.Array, column: str, path: Path) -> DataError:
    texts = [str(cell) for cell in cells.to_pylist()]
    bad = [row for row, text in enumerate(texts) if not _is_number(text)]
    row = bad[0] if bad else 0
    return DataError(
        f"{path}: column {column!r} has {len(bad)} cells that are not numbers, the "
        f"first {texts[row]!r} in row {row}, counting from 0: correct it, or leave the "
        "cell empty where nothing was observed."
    )


def _is_number(text: str) -> bool:
    if text in _EMPTY or text == "None":
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_names(
    frame: pa.Table, column: str, path: Path
) -> tuple[tuple[str, ...], Int[np.ndarray, " cells"]]:
    """The names of the series in the order of the file, and each row's number.

    Among numbers, what says that a cell is empty is no name: `NA`.

    Args:
        frame: the table.
        column: that names the series, as it is written.
        path: the table's file, for messages.

    Raises:
        DataError: for an empty cell.
    """
    cells = frame[column].to_pylist()
    texts = ["" if c is None else unescaped(str(c).strip()) for c in cells]
    if all(map(_is_number, set(texts))):
        texts = ["" if text in _EMPTY else text for text in texts]
    if "" in texts:
        raise DataError(
            f"{path}: column {column!r} names no series in row {texts.index('')}, "
            "counting from 0: fill it in or leave that row out."
        )
    numbers = {name: number for number, name in enumerate(dict.fromkeys(texts))}
    return tuple(numbers), np.array([numbers[text] for text in texts])
