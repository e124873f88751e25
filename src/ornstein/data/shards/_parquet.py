"""Parquet files, read row group by row group."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .._column import PANDAS_INDEX
from .._error import DataError, DataNotFoundError
from .._formulas import unescaped

_DAMAGE = (pa.ArrowException, MemoryError, OSError, UnicodeDecodeError)
_CELL_BYTES = 8
_MOST_OF_MEMORY = 0.5
NO_KIND = "nothing"
"""The kind of a column that has no cell in a file."""


class RowGroup(NamedTuple):
    """A part of a Parquet file that is read whole.

    Attributes:
        path: of the file.
        number: in it.
        first: the number of its first row, over all files.
        num_rows: in it.
    """

    path: Path
    number: int
    first: int
    num_rows: int

    def where(self, row: int) -> str:
        """What a message calls one of its rows.

        Args:
            row: its number among the group's.
        """
        return f"row {row} of row group {self.number} of {self.path}, counting from 0"


class ParquetFiles(NamedTuple):
    """Files of the same columns.

    Attributes:
        groups: all row groups.
        kinds: what each column holds: number, boolean, date, category, or why not.
        whole: columns that are whole numbers in every file.
        stored: what the files call each column.
    """

    groups: tuple[RowGroup, ...]
    kinds: dict[str, str]
    whole: frozenset[str]
    stored: dict[str, str]

    @property
    def num_rows(self) -> int:
        """Of all files."""
        return sum(group.num_rows for group in self.groups)

    def _is_text(self, name: str) -> bool:
        return self.kinds[name] == "category"

    def read(self, number: int, names: Sequence[str]) -> pa.Table:
        """Some columns of a row group.

        Args:
            number: of the group.
            names: of the columns.

        Raises:
            DataNotFoundError: if the file is gone.
            DataError: if it is damaged, or another one than it was.
        """
        group = self.groups[number]
        stored = [self.stored[name] for name in names]
        try:
            texts = [s for n, s in zip(names, stored, strict=True) if self._is_text(n)]
            with pq.ParquetFile(group.path, read_dictionary=texts) as file:
                found = file.read_row_group(group.number, columns=stored)
        except FileNotFoundError:
            raise DataNotFoundError(
                f"{group.path} is gone, which was there when rows were counted: put it "
                "back, and go on from the last checkpoint."
            ) from None
        except (*_DAMAGE, IndexError) as error:
            raise _damaged(group.path, error) from error
        if found.num_rows != group.num_rows or set(stored) - {*found.column_names}:
            raise DataError(
                f"{group.path} is not what it was when rows were counted (row group "
                f"{group.number} had {group.num_rows:,} rows): put it back, and go on "
                "from the last checkpoint."
            )
        return found.select(stored).rename_columns(list(names))


def open_parquet(paths: Sequence[Path]) -> ParquetFiles:
    """Count the rows of files, and see that they have the same columns.

    Args:
        paths: of the files.

    Raises:
        DataError: for a file that cannot be read, or has other columns.
    """
    groups: list[RowGroup] = []
    first, kinds, whole, stored = paths[0], {}, set(), {}
    num_rows = 0
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                metadata, schema = file.metadata, file.schema_arrow
        except _DAMAGE as error:
            raise _damaged(path, error) from error
        names = _names(path, schema)
        found = {name: kind_of_type(schema.field(own).type) for name, own in names}
        wholes = {n for n, own in names if pa.types.is_integer(schema.field(own).type)}
        if path is first:
            kinds, whole, stored = found, wholes, dict(names)
        _check_columns(path, found, first, kinds)
        kinds = {n: found[n] if kind == NO_KIND else kind for n, kind in kinds.items()}
        whole &= wholes
        if dict(names) != stored:
            raise DataError(
                f"{path} spells its columns otherwise than {first}: rename."
            )
        for number in range(metadata.num_row_groups):
            rows = metadata.row_group(number).num_rows
            _check_fits(path, rows, len(names))
            groups.append(RowGroup(path, number, num_rows, rows))
            num_rows += rows
    if num_rows == 0:
        raise DataError(f"{paths[0]} has no rows: give at least one.")
    return ParquetFiles(tuple(groups), kinds, frozenset(whole), stored)


def kind_of_type(dtype: pa.DataType) -> str:
    """What cells of a type of Arrow's are; of types that are none, the type's name."""
    if pa.types.is_dictionary(dtype):
        return kind_of_type(dtype.value_type)
    is_of = {
        NO_KIND: pa.types.is_null,
        "boolean": pa.types.is_boolean,
        "number": lambda t: pa.types.is_integer(t) or pa.types.is_floating(t),
        "category": lambda t: pa.types.is_string(t) or pa.types.is_large_string(t),
        "date": lambda t: pa.types.is_date(t) or pa.types.is_timestamp(t),
    }
    if pa.types.is_decimal(dtype):
        return "number"
    return next((kind for kind, is_kind in is_of.items() if is_kind(dtype)), str(dtype))


def _names(path: Path, schema: pa.Schema) -> list[tuple[str, str]]:
    """What columns are called here and in the file, without pandas' index."""
    own = [name for name in schema.names if not name.startswith(PANDAS_INDEX)]
    names = [unescaped(name.strip()) for name in own]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns of one name, {twice!r}: rename one.")
    return list(zip(names, own, strict=True))


def _check_columns(
    path: Path, found: dict[str, str], first: Path, kinds: dict[str, str]
) -> None:
    """Refuse a file of other columns than the first's."""
    remedy = "write it again as the others are, or take it away"
    lacks, has = (
        [n for n in kinds if n not in found],
        [n for n in found if n not in kinds],
    )
    for names, here, there in ((lacks, "no", "has"), (has, "a", "has not")):
        if names:
            raise DataError(
                f"{path} has {here} column {', '.join(map(repr, names))}, which "
                f"{first} {there}: {remedy}."
            )
    for name, kind in found.items():
        if kind != kinds[name] and NO_KIND not in (kind, kinds[name]):
            raise DataError(
                f"{path} has column {name!r} of kind {kind}, and {first} of kind "
                f"{kinds[name]}: {remedy}."
            )


def _check_fits(path: Path, num_rows: int, num_columns: int) -> None:
    """Refuse a row group that this machine's memory does not hold."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = num_rows * num_columns * _CELL_BYTES
    if needed > _MOST_OF_MEMORY * memory:
        raise DataError(
            f"{path} has a row group of {num_rows:,} rows, about {needed:,} bytes, "
            f"which is read whole, and this machine has {memory:,}: write the file "
            "with row_group_size=100_000."
        )


def _damaged(path: Path, error: BaseException) -> DataError:
    reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return DataError(
        f"{path} cannot be read as Parquet ({reason}): it is cut short or something "
        "else; copy it again."
    )
