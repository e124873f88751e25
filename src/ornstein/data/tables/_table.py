"""The user's own table: CSV or parquet, a row an example."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from jaxtyping import Float, Shaped

from ..._files import UnreadableError, check_fits_memory
from ..._sentence import Sentence
from .._assemble import split_and_assemble
from .._base import Data
from .._error import DataError, DataNotFoundError, nearest
from ..images import read_parquet
from ._formulas import unescaped
from ._targets import read_target

_MAX_COLUMNS = 100_000  # of a table: the parser takes a minute for ten times as many
_MAX_HEADER = 2**27  # bytes


def table(
    path: Path,
    *,
    target: str | Sequence[str] | None,
    task: str | None,
    test_fraction: float,
    seed: int,
) -> Data:
    """Learn the `target` columns from all the others.

    Args:
        path: `.csv` (a header, then rows) or `.parquet`.
        target: column, or columns for a regression with several outputs.
        task: `"classification"` or `"regression"`, or `None` to see from the target.
        test_fraction: of the rows, for the test.
        seed: decides which rows.

    Raises:
        DataNotFoundError: if there is no such file.
        DataError: if it cannot be used.
    """
    frame = read_table(path)
    columns = frame.column_names
    if not target:
        raise DataError(
            Sentence(
                "{} needs a target: name the column to predict with {target}; the "
                "columns are {}.",
                path,
                ", ".join(columns),
            )
        )
    targets = [target] if isinstance(target, str) else list(target)
    features = [column for column in columns if column not in targets]
    if not features:
        raise DataError(f"{path} has no column beside {', '.join(targets)} to learn.")
    x = numeric_columns(frame, features, path)
    if len(targets) == 1:
        values = _values(frame, targets[0], path)
    else:
        values = numeric_columns(frame, targets, path)
    y = read_target(values, f"{path}: target {', '.join(targets)}", task)
    return split_and_assemble(
        str(path),
        x,
        y.y,
        test_fraction=test_fraction,
        seed=seed,
        class_names=y.class_names,
        feature_names=features,
        target_names=targets,
        notes=y.notes,
    )


def read_table(path: Path) -> pa.Table:
    """Read a `.csv` or `.parquet` file.

    Args:
        path: the file.

    Raises:
        DataNotFoundError: if there is none.
        DataError: if it is empty, cut short or something else.
    """
    if path.suffix.lower() == ".parquet":
        frame = read_parquet(path)
    else:
        frame = _read_csv(path)
    if frame.num_rows == 0:
        raise DataError(f"{path} has a header and no rows: give at least one.")
    return frame


def _read_csv(path: Path) -> pa.Table:
    if not path.exists():
        raise DataNotFoundError(f"There is no file {path}: check the path.")
    try:
        check_fits_memory(path)
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty: give a header and rows.")
        # The parser wants the header and any row in one block; 1 MB is its own.
        block_size = min(max(2**20, 16 * _header_size(path)), 2**30)
        options = pacsv.ReadOptions(block_size=block_size)
        frame = pacsv.read_csv(path, read_options=options)
        frame = frame.rename_columns([unescaped(name) for name in frame.column_names])
    except (UnreadableError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(
            f"{path} cannot be read as CSV ({reason}): give UTF-8 text, commas between "
            "cells, and as many cells in every row as in the header."
        ) from error
    if len(set(frame.column_names)) < len(frame.column_names):
        raise DataError(f"{path} has two columns of one name: rename one.")
    return frame


def _header_size(path: Path) -> int:
    """The bytes of the first line, which says how many columns there are."""
    with path.open("rb") as file:
        header = file.readline(_MAX_HEADER)
    columns = header.count(b",") + 1
    if columns > _MAX_COLUMNS or len(header) == _MAX_HEADER:
        raise DataError(
            f"{path} has {columns:,} columns in its first {len(header):,} bytes, and "
            f"at most {_MAX_COLUMNS:,} are read: give arrays instead, written by "
            "numpy.savez(path, x=..., y=...)."
        )
    return len(header)


def numeric_columns(
    frame: pa.Table, columns: Sequence[str], path: Path
) -> Float[np.ndarray, "rows columns"]:
    """These columns side by side, in double precision.

    Args:
        frame: the table.
        columns: which, in this order.
        path: the table's file, for messages.

    Raises:
        DataError: for a column that is not there, is not numbers or has gaps.
    """
    return np.stack([_numbers(frame, column, path) for column in columns], axis=1)


def _numbers(frame: pa.Table, column: str, path: Path) -> Float[np.ndarray, " rows"]:
    values = _values(frame, column, path)
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: column {column!r} is not numbers (for instance "
            f"{str(values[0])!r}): encode it as numbers or leave it out."
        )
    return values.astype(np.float64)


def _values(frame: pa.Table, column: str, path: Path) -> Shaped[np.ndarray, " rows"]:
    """Numbers, booleans or strings, without gaps."""
    if frame.schema.get_field_index(column) < 0:  # `column_names` makes a list
        raise DataError(
            f"{path} has no column {column!r}{nearest(column, frame.column_names)}: "
            f"its columns are {', '.join(frame.column_names)}."
        )
    cells = frame[column].combine_chunks()
    if cells.null_count:
        first = cells.is_null().index(True).as_py()
        raise DataError(
            f"{path}: column {column!r} has {cells.null_count} empty cells, the first "
            f"in row {first}, counting from 0: fill them in or leave those rows out."
        )
    values = cells.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "biuf":
        return values
    return np.array([unescaped(str(value)) for value in values])
