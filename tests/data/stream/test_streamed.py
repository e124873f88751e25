"""Batches of rows on disk, of blocks that say which rows they are."""

import threading

import jax
import numpy as np
import pytest
from jaxtyping import Int

import ornstein as orn
from ornstein.data import AbstractShards, DataError, Split, Streamed
from ornstein.data.stream._ahead import Ahead
from ornstein.data.stream._order import Part
from ornstein.prediction import FittedModel
from ornstein.train import LastLayer, Validation


class Counting(AbstractShards):
    """Row i has x = (i, i) and y = i; `broken` blocks cannot be read."""

    block_rows: Int[np.ndarray, " blocks"]
    broken: tuple[int, ...] = ()
    digest: str = "counting"
    x_like: jax.ShapeDtypeStruct = jax.ShapeDtypeStruct((2,), np.float32)
    y_like: jax.ShapeDtypeStruct = jax.ShapeDtypeStruct((), np.int32)

    def read(self, block: int):
        if block in self.broken:
            raise DataError(f"block {block} is gone")
        first = int(self.block_rows[:block].sum())
        rows = np.arange(first, first + self.block_rows[block])
        return np.stack([rows, rows], 1).astype(np.float32), rows.astype(np.int32)


def streamed(buffer: int = 12, broken: tuple[int, ...] = ()) -> Streamed:
    shards = Counting(np.array([7, 3, 11, 5, 4, 9]), broken)
    sample = Split(*Counting(np.array([7])).read(0))
    return Streamed(shards, sample, shuffle_buffer=buffer)


def first_batches(rows: Streamed, number: int, **how):
    how = {"seed": [1, 2], "start": 0} | how
    batches = rows.batches(4, **how)
    found = [next(batches) for _ in range(number)]
    batches.close()
    return found


def test_what_takes_rows_in_memory_says_so():
    """Catches (seen) a traceback of NumPy's about a shape without values."""
    rows = streamed()
    network = orn.nn.MLP(2, 2, [3], key=jax.random.key(0))
    fitted = FittedModel(orn.Deterministic(network), orn.Categorical())
    calls = {
        "`validation` stays on disk": lambda: Validation(rows),
        "`split` stays on disk": lambda: orn.fit_laplace(
            fitted, rows, structure=LastLayer()
        ),
    }
    for said, call in calls.items():
        with pytest.raises(TypeError, match=said) as raised:
            call()
        assert "without stream=True" in str(raised.value)


@pytest.mark.parametrize("buffer", [1, 12, 100])
def test_an_epoch_has_every_row_at_most_once(buffer: int):
    """Catches batches that lose or repeat rows where two windows meet."""
    rows = streamed(buffer)
    num_steps = rows.steps_per_epoch(4)
    assert num_steps == 39 // 4
    batches = first_batches(rows, 3 * num_steps)
    for epoch in range(3):
        own = batches[epoch * num_steps : (epoch + 1) * num_steps]
        seen = np.concatenate([y for _, y in own])
        assert len(set(seen.tolist())) == 4 * num_steps
        for x, y in own:
            np.testing.assert_array_equal(x, np.stack([y, y], 1).astype(np.float32))


@pytest.mark.parametrize("start", [0, 1, 5, 8, 9, 10, 23])
def test_batches_from_any_step_are_those_of_a_whole_run(start: int):
    """Catches a place in a window, or in an epoch, that is off by a row."""
    whole = first_batches(streamed(), 30)
    rest = first_batches(streamed(), 30 - start, start=start)
    for (x, y), (x_there, y_there) in zip(whole[start:], rest, strict=True):
        np.testing.assert_array_equal(x, x_there)
        np.testing.assert_array_equal(y, y_there)


def test_processes_meet_other_rows():
    """Two processes, two rows of each batch: no row is met by both."""
    parts = [first_batches(streamed(), 9, part=Part(n, 2)) for n in range(2)]
    seen = [{int(row) for _, y in part for row in y} for part in parts]
    assert not seen[0] & seen[1]
    assert all(len(y) == 2 for part in parts for _, y in part)


def test_a_block_that_cannot_be_read_ends_the_batches_there():
    """Catches a thread that dies in silence: the batches before it come first."""
    whole = first_batches(streamed(), 9)
    batches = streamed(broken=(2,)).batches(4, seed=[1, 2], start=0)
    found = []
    with pytest.raises(DataError, match="block 2 is gone"):
        found.extend(batches)
    assert 0 < len(found) < 9
    for (_, y), (_, expected) in zip(found, whole, strict=False):
        np.testing.assert_array_equal(y, expected)


def test_the_thread_ends_with_the_batches():
    def threads() -> int:
        return sum(t.name == "ornstein-read-ahead" for t in threading.enumerate())

    before = threads()
    batches = streamed().batches(4, seed=[1, 2], start=0)
    next(batches)
    assert threads() == before + 1
    batches.close()
    assert threads() == before


def test_no_more_is_read_ahead_than_one():
    """Catches a queue without end, which would hold all rows: two were made."""
    made, has_made = [], threading.Event()

    def make():
        for item in range(100):
            made.append(item)
            if len(made) == 3:
                has_made.set()
            yield item

    with Ahead(make) as ahead:
        assert next(ahead) == 0
        assert has_made.wait(10.0)  # one waits, one more stands before the queue
        assert len(made) <= 3


def test_blocks_that_give_a_process_too_little_are_refused():
    rows = Streamed(Counting(np.array([50, 1])), streamed().sample)
    with pytest.raises(DataError, match="do not give each of 2 processes 4 rows"):
        rows.steps_per_epoch(8, num_parts=2)


def test_a_buffer_of_no_rows_is_refused():
    with pytest.raises(DataError, match="at least 1 row, got 0"):
        streamed(buffer=0)


def test_no_reader_is_refused():
    rows = streamed()
    with pytest.raises(DataError, match="`num_readers` must be at least 1 thread, got"):
        Streamed(rows.shards, rows.sample, num_readers=0)


def test_rows_by_number_are_those_of_their_blocks():
    """Catches rows that are counted from another block's first."""
    found = streamed().rows(np.array([38, 0, 7, 6, 7, 21]))
    np.testing.assert_array_equal(found.y, [38, 0, 7, 6, 7, 21])
    np.testing.assert_array_equal(found.x[:, 0], found.y)


def test_processes_with_uneven_rows_are_refused():
    """Catches rows of the process with the fewest that count more than others'."""
    uneven = Streamed(Counting(np.array([300, 300, 300])), streamed().sample)
    assert uneven.steps_per_epoch(10) == 90
    with pytest.raises(DataError, match="300 to 600 rows, and those of the fewest"):
        uneven.steps_per_epoch(10, num_parts=2)
    assert uneven.steps_per_epoch(9, num_parts=3) == 100
