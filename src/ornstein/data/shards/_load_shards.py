"""Data whose training rows stay in their files."""

import dataclasses
from pathlib import Path

from .._base import Data
from ..stream import Streamed
from ..tables import TableOptions
from ._arrays import load_arrays
from ._deal import MOST_HELD, deal
from ._files import KINDS, shard_files
from ._load_table import load_table


def is_sharded(path: Path) -> bool:
    """Whether a path is of files that may be read as they are needed.

    Args:
        path: of data.
    """
    return path.is_dir() or path.suffix.lower() in KINDS


def load_shards(
    path: Path,
    options: TableOptions,
    *,
    test_fraction: float,
    validation_fraction: float,
    seed: int,
    shuffle_buffer: int | None,
) -> Data:
    """Look at all rows once, and leave those of the training where they are.

    What a model must know of them (kinds, categories, what fills gaps, means and
    spreads) is learned in that pass; test and validation rows, at most `MOST_HELD` of
    each and drawn at random, and as many training rows are kept in memory.

    Args:
        path: a .parquet or .npz file, or a folder of them.
        options: which columns of tables.
        test_fraction: of the rows, where no other file has the test.
        validation_fraction: of the training rows.
        seed: decides which rows are held out.
        shuffle_buffer: see `Streamed`.

    Raises:
        DataNotFoundError: if files are missing.
        DataError: if they cannot be used.
    """
    files = shard_files(path)
    held = {
        "test_fraction": 0.0 if options.test is not None else test_fraction,
        "validation_fraction": validation_fraction,
        "seed": seed,
    }
    load = load_table if files[0].suffix.lower() == ".parquet" else load_arrays
    data = load(path, files, options, lambda num_rows: deal(num_rows, **held))
    assert isinstance(data.train, Streamed)
    streamed = dataclasses.replace(data.train, shuffle_buffer=shuffle_buffer)
    return dataclasses.replace(
        data, train=streamed, notes=[*data.notes, _note(data, streamed)]
    )


def _note(data: Data, streamed: Streamed) -> str:
    """What readers of scores must know of rows that were not all looked at."""
    num_blocks, most = len(streamed.shards.block_rows), streamed.most_rows
    largest = int(streamed.shards.block_rows.max())
    mixed = max(most, largest)
    if mixed >= len(streamed):
        how = "shuffled as a whole in each epoch"
    else:
        how = (
            f"in {num_blocks:,} blocks, shuffled in each epoch, and rows among about "
            f"{mixed:,}"
        )
    drawn = "" if len(data.test) < MOST_HELD else ", drawn from all"
    return (
        f"{data.name}: {len(streamed):,} training rows stay on disk, {how}; "
        f"{len(data.test):,} test rows{drawn} are in memory."
    )
