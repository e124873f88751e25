"""Rows of Parquet files, as a model takes them."""

from collections.abc import Sequence

import jax
import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, Shaped

from .._column import Column
from .._columns import TableEncoding
from .._error import DataError
from .._split import Split
from .._standardise import Standardisation
from ..stream import AbstractShards
from ._cells import as_numbers, as_texts
from ._deal import digest_of, inside
from ._parquet import ParquetFiles
from ._seen_targets import TargetCodec


class TableRows(AbstractShards):
    """Training rows of Parquet files; a block is a row group.

    Attributes:
        files: with these rows among theirs.
        encoding: of the features.
        codec: of the targets.
        x_scaling: of the features.
        y_scaling: of the targets; `None` of classes.
        left_out: sorted numbers of the rows that are no training rows.
        block_rows: training rows of each row group.
    """

    files: ParquetFiles
    encoding: TableEncoding
    codec: TargetCodec
    x_scaling: Standardisation
    y_scaling: Standardisation | None
    left_out: Int[np.ndarray, " others"]
    block_rows: Int[np.ndarray, " blocks"]

    @property
    def x_like(self) -> jax.ShapeDtypeStruct:
        """See `AbstractShards`."""
        return jax.ShapeDtypeStruct((len(self.encoding.feature_names),), np.float32)

    @property
    def y_like(self) -> jax.ShapeDtypeStruct:
        """See `AbstractShards`."""
        if self.y_scaling is None:
            return jax.ShapeDtypeStruct((), np.int32)
        return jax.ShapeDtypeStruct((len(self.codec.columns),), np.float32)

    @property
    def digest(self) -> str:
        """See `AbstractShards`."""
        return digest_of(self.block_rows, self.left_out)

    def read(
        self, block: int
    ) -> tuple[Float[np.ndarray, "rows features"], Shaped[np.ndarray, "rows ..."]]:
        """See `AbstractShards.read`."""
        group = self.files.groups[block]
        columns = (*self.encoding.columns, *self.encoding.targets)
        found = self.files.read(block, [column.name for column in columns])
        others = inside(self.left_out, group.first, group.num_rows)
        if len(others):
            kept = np.ones(group.num_rows, bool)
            kept[others] = False
            found = found.filter(pa.array(kept))
        rows = self.encoded(found, f"row group {group.number} of {group.path}")
        return rows.x, rows.y

    def encoded(self, found: pa.Table, where: str) -> Split:
        """Rows of the files as a model takes them.

        Args:
            found: rows that have a target.
            where: they are from, for messages.

        Raises:
            DataError: for numbers that single precision does not hold, or a class that
                was not there before.
        """
        x = _encoded(found, self.encoding.columns, self.x_scaling)
        if not np.isfinite(x).all():
            column = int(np.argwhere(~np.isfinite(x))[0][1])
            name = self.encoding.feature_names[column]
            raise DataError(
                f"{where}: column {name!r} has numbers that in units of the training "
                "rows are beyond single precision: correct them, or leave it out."
            )
        y = self.codec.read(found, where)
        return Split(x, y if self.y_scaling is None else self.y_scaling.apply(y))


def _encoded(
    found: pa.Table, columns: Sequence[Column], scaling: Standardisation
) -> Float[np.ndarray, "rows features"]:
    """Features in their order: numbers, whether these are empty, categories.

    Column by column: in blocks of rows that fit in a cache it was no faster.
    """
    mean, scale = np.asarray(scaling.mean), np.asarray(scaling.scale)
    low, high = (0.0 - mean) / scale, (1.0 - mean) / scale
    x = np.empty((found.num_rows, len(mean)), np.float32)
    numbers = [c for c in columns if c.kind != "category"]
    first = len(numbers)
    with np.errstate(over="ignore"):  # infinite then, of which it is said above
        for place, column in enumerate(numbers):
            values = as_numbers(found.column(column.name), column.kind)
            is_gap = np.isnan(values)
            if is_gap.any():
                values = np.where(is_gap, column.fill, values)
            x[:, place] = (values - mean[place]) / scale[place]
            if column.has_gaps:
                x[:, first] = np.where(is_gap, high[first], low[first])
                first += 1
        x[:, first:] = low[first:]
        for column in columns:
            if column.kind != "category":
                continue
            at = _places(found.column(column.name), column, first)
            rows = np.flatnonzero(at >= 0)
            x[rows, at[rows]] = high[at[rows]]
            first += len(column.categories)
    return x


def _places(
    cells: pa.ChunkedArray, column: Column, first: int
) -> Int[np.ndarray, " rows"]:
    """The feature of each row's category; -1 of others."""
    texts = as_texts(cells)
    known = {text: first + n for n, text in enumerate(column.categories)}
    place_of = np.array([known.get(text, -1) for text in texts.texts], np.int64)
    return place_of[texts.codes]
