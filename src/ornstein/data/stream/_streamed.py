"""Training rows that stay on disk: what `fit` takes in place of arrays."""

import math
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..._kinds import check_kind
from .._error import DataError
from .._split import Split
from ._ahead import Ahead
from ._base import AbstractShards
from ._order import Part, Window, own_blocks, steps_per_epoch, windows

_WINDOW_BYTES = 2**25
_MOST_UNEVEN = 0.02
"""Rows more of one process than of another: each gives as many to a batch."""

_Batch = tuple[np.ndarray, np.ndarray]


class Streamed(eqx.Module):
    """Training rows on disk, which a thread reads while others are trained on.

    What rows a step sees is a function of the key of `fit` and of the step's number, as
    it is for rows in memory: a run that is resumed meets the batches that it would have
    met. Blocks are shuffled, and rows among those of the blocks that are in memory at
    once. So this is a full shuffle only where all rows fit into `shuffle_buffer`, or
    where each block is a row, as of images; else rows of one class, or of one day, in
    one file stay close to each other in every epoch. Memory is about four times what
    `shuffle_buffer` rows take, or the rows of the largest block if these are more.

    Attributes:
        shards: the rows.
        sample: some of them, at random, in memory: what judges the fit looks at these.
        shuffle_buffer: rows that are shuffled among each other; as many as 32 MB hold
            by default.
        num_readers: threads that read blocks at the same time; what they read is put
            together in the same order. More than one take `shards.read` that may be
            called from several.
    """

    shards: AbstractShards
    sample: Split
    shuffle_buffer: int | None = None
    num_readers: int = 1

    def __check_init__(self) -> None:
        remedy = "what `orn.data.load(..., stream=True).train` has"
        check_kind("shards", self.shards, AbstractShards, remedy)
        if self.shuffle_buffer is not None and self.shuffle_buffer < 1:
            raise DataError(
                f"`shuffle_buffer` must be at least 1 row, got {self.shuffle_buffer}."
            )
        if self.num_readers < 1:
            raise DataError(
                f"`num_readers` must be at least 1 thread, got {self.num_readers}."
            )

    def __len__(self) -> int:
        return int(self.shards.block_rows.sum())

    # Any, as of `Split`: what takes values of them is refused by shapes without any.
    @property
    def x(self) -> Any:
        """Shape and type of all inputs, no value of which is in memory."""
        like = self.shards.x_like
        return jax.ShapeDtypeStruct((len(self), *like.shape), like.dtype)

    @property
    def y(self) -> Any:
        """Shape and type of all targets."""
        like = self.shards.y_like
        return jax.ShapeDtypeStruct((len(self), *like.shape), like.dtype)

    @property
    def most_rows(self) -> int:
        """Rows that are shuffled among each other, unless one block has more."""
        if self.shuffle_buffer is not None:
            return self.shuffle_buffer
        likes = (self.shards.x_like, self.shards.y_like)
        size = sum(math.prod(like.shape) * like.dtype.itemsize for like in likes)
        return max(1, _WINDOW_BYTES // size)

    @property
    def order(self) -> str:
        """A text that differs where rows would be met in another order."""
        blocks = self.shards.digest[:12]
        return f"rows shuffled among {self.most_rows:,} from the blocks {blocks}"

    def rows(self, indices: np.ndarray) -> Split:
        """The examples with these numbers, counted along the blocks, in their order.

        Reads every block that has one of them: for a few rows, or many of few blocks.
        """
        ends = np.cumsum(self.shards.block_rows)
        owner = np.searchsorted(ends, indices, side="right")
        likes = (self.shards.x_like, self.shards.y_like)
        x, y = (np.empty((len(indices), *like.shape), like.dtype) for like in likes)
        for block in np.unique(owner).tolist():
            here = np.flatnonzero(owner == block)
            own = indices[here] - (ends[block] - self.shards.block_rows[block])
            x_block, y_block = self.shards.read(block)
            x[here], y[here] = x_block[own], y_block[own]
        return Split(x, y)

    def in_memory(self) -> Split:
        """The sample."""
        return self.sample

    def steps_per_epoch(self, batch_size: int, *, num_parts: int = 1) -> int:
        """Whole batches of an epoch.

        Args:
            batch_size: of all processes together.
            num_parts: processes that each read their own blocks.
        """
        rows = self.shards.block_rows
        num_steps = steps_per_epoch(rows, batch_size, num_parts)
        if num_steps == 0:
            raise DataError(
                f"{len(self.shards.block_rows)} blocks do not give each of {num_parts} "
                f"processes {batch_size // num_parts} rows of its own: lower the batch "
                "size, write more and smaller files, or share by fewer processes."
            )
        parts = [
            int(rows[own_blocks(rows, Part(n, num_parts))].sum())
            for n in range(num_parts)
        ]
        more, own_size = max(parts) - min(parts), batch_size // num_parts
        if more > max(_MOST_UNEVEN * min(parts), own_size):
            raise DataError(
                f"{len(rows)} blocks give {num_parts} processes {min(parts):,} to "
                f"{max(parts):,} rows, and those of the fewest would count more: write "
                "more and smaller files, or share by fewer processes."
            )
        return num_steps

    def batches(
        self,
        batch_size: int,
        *,
        seed: Sequence[int],
        start: int,
        part: Part | None = None,
    ) -> Generator[_Batch, None, None]:
        """Batches from a step on, without end, read ahead; close what is returned.

        Args:
            batch_size: of all processes together; each gives its share of the rows.
            seed: of all epochs.
            start: the first step's number.
            part: the process, of several that each read their own blocks.

        Raises:
            DataError: when it comes to a block that cannot be read as it was.
        """
        part = Part() if part is None else part
        own_size = batch_size // part.count
        num_steps = self.steps_per_epoch(batch_size, num_parts=part.count)
        read = lambda: self._windows(num_steps * own_size, start * own_size, seed, part)
        pieces: list[_Batch] = []  # of a batch that windows share
        missing = own_size
        with Ahead(read) as ahead:
            for x, y, order in ahead:
                for begin in _begins(len(order), missing, own_size):
                    rows = order[max(begin, 0) : begin + own_size]
                    pieces.append((x.take(rows, axis=0), y.take(rows, axis=0)))
                    missing -= len(rows)
                    if missing == 0:
                        yield _joined(pieces)
                        pieces, missing = [], own_size

    def _windows(
        self, epoch_rows: int, first: int, seed: Sequence[int], part: Part
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rows of a window and the order in which they are met, from some row on.

        Args:
            epoch_rows: that an epoch's steps see, the first of it.
            first: the number of the first row, counted over epochs.
            seed: of all epochs.
            part: the process that reads.
        """
        epoch, first = divmod(first, epoch_rows)
        how: dict[str, Any] = {"most_rows": self.most_rows, "seed": seed, "part": part}
        while True:
            begin = 0
            for window in windows(self.shards.block_rows, epoch=epoch, **how):
                low, high = first - begin, epoch_rows - begin
                begin += window.num_rows
                order = window.order()[max(low, 0) : max(high, 0)]
                if len(order):
                    yield *self._read(window), order
            epoch, first = epoch + 1, 0

    def _read(self, window: Window) -> _Batch:
        """The rows of a window, block after block."""
        if len(window.blocks) == 1:
            return self.shards.read(window.blocks[0])
        like = (self.shards.x_like, self.shards.y_like)
        x, y = (np.empty((window.num_rows, *a.shape), a.dtype) for a in like)
        ends = np.cumsum(self.shards.block_rows[list(window.blocks)])

        def read(block: int, end: int) -> None:
            x_block, y_block = self.shards.read(block)
            begin = end - len(x_block)
            x[begin:end], y[begin:end] = x_block, y_block

        if self.num_readers == 1:
            for block, end in zip(window.blocks, ends.tolist(), strict=True):
                read(block, end)
            return x, y
        with ThreadPoolExecutor(self.num_readers, "ornstein-read") as readers:
            list(readers.map(read, window.blocks, ends.tolist()))
        return x, y


def _begins(num_rows: int, missing: int, size: int) -> range:
    """Where batches begin among rows, of which the first is to have `missing` more."""
    return range(missing - size, num_rows, size)


def _joined(pieces: list[_Batch]) -> _Batch:
    if len(pieces) == 1:
        return pieces[0]
    x, y = zip(*pieces, strict=True)
    return np.concatenate(x), np.concatenate(y)
