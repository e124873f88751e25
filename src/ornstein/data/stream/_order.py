"""Which rows a step sees, of rows that are read in blocks.

Each epoch the blocks are shuffled and dealt into *windows*, as many to each as fit in
memory; the rows of a window are shuffled among each other, and batches are cut from
what follows from window to window. All of it is a function of the seed and the epoch,
and sizes are known without reading: the batch of any step is found in its window. A
buffer that is refilled row by row (`tf.data`, `datasets`) mixes neighbouring windows,
but its content is the outcome of all steps before, which a checkpoint would have to
hold.

Where one window holds all rows this is a shuffle of them all, and where each block is
one row. Else rows of one block stay in one window: rows that are sorted by what they
say must be shuffled when the files are written.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

_ROWS = 2**32
"""Where the seeds of rows begin: beyond those of blocks."""


class Part(NamedTuple):
    """One of the processes that share an epoch.

    Attributes:
        number: of the process.
        count: how many there are.
    """

    number: int = 0
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Window:
    """Blocks whose rows are shuffled among each other.

    Attributes:
        blocks: their numbers, in the order in which they are read.
        num_rows: of all of them.
        seed: of the shuffle.
    """

    blocks: tuple[int, ...]
    num_rows: int
    seed: tuple[int, ...]

    def order(self) -> Int[np.ndarray, " rows"]:
        """Of the rows, counted from the first of the first block."""
        return np.random.default_rng(self.seed).permutation(self.num_rows)


def own_blocks(
    block_rows: Int[np.ndarray, " blocks"], part: Part
) -> Int[np.ndarray, " own"]:
    """Numbers of the blocks that one process reads, the same in every epoch.

    The largest first, each to the process that has the fewest rows.

    Args:
        block_rows: how many rows each block has.
        part: the process.
    """
    if part.count == 1:
        return np.arange(len(block_rows))
    if np.ptp(block_rows) == 0:  # at once what is below: millions of images
        return np.arange(part.number, len(block_rows), part.count)
    totals, owner = np.zeros(part.count, np.int64), np.empty(len(block_rows), int)
    for block in np.argsort(-block_rows, kind="stable"):
        owner[block] = np.argmin(totals)
        totals[owner[block]] += block_rows[block]
    return np.flatnonzero(owner == part.number)


def steps_per_epoch(
    block_rows: Int[np.ndarray, " blocks"], batch_size: int, num_parts: int
) -> int:
    """Whole batches that every process can give its share of.

    Args:
        block_rows: how many rows each block has.
        batch_size: of all processes together, which they divide.
        num_parts: how many there are.
    """
    parts = [own_blocks(block_rows, Part(n, num_parts)) for n in range(num_parts)]
    fewest = min(int(block_rows[own].sum()) for own in parts)
    return fewest // (batch_size // num_parts)


def windows(
    block_rows: Int[np.ndarray, " blocks"],
    *,
    most_rows: int,
    seed: Sequence[int],
    epoch: int,
    part: Part,
) -> Iterator[Window]:
    """The windows of an epoch, in their order.

    Args:
        block_rows: how many rows each block has.
        most_rows: of a window, unless one block has more.
        seed: of all epochs.
        epoch: which.
        part: the process that reads them.
    """
    own = own_blocks(block_rows, part)
    own = own[block_rows[own] > 0]
    rng = np.random.default_rng([*seed, epoch, part.number])
    shuffled = own[rng.permutation(len(own))]
    number, blocks, num_rows = 0, [], 0
    for block in shuffled.tolist():
        more = int(block_rows[block])
        if blocks and num_rows + more > most_rows:
            yield _window(blocks, num_rows, seed, epoch, part, number)
            number, blocks, num_rows = number + 1, [], 0
        blocks.append(block)
        num_rows += more
    if blocks:
        yield _window(blocks, num_rows, seed, epoch, part, number)


def _window(blocks, num_rows, seed, epoch, part, number) -> Window:
    place = (*map(int, seed), epoch, part.number, _ROWS + number)
    return Window(tuple(blocks), num_rows, place)
