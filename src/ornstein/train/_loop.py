"""Many steps at a time: in one compiled call, or batch by batch."""

import abc
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .._mesh import (
    as_parameters,
    everywhere,
    over_rows,
    part_of,
    put_batches,
    put_parameters,
    put_rows,
    rows_in_parts,
)
from .._processes import largest
from .._types import Array, Int, PRNGKeyArray, PyTree
from ..data import DataError, Part, Streamed
from ._shuffle import batch_indices
from ._step import Trainer, TrainState
from .records import StepRecord

MAX_STEPS = 512
"""Steps in one compiled call, at most; the number taken is not part of the program."""
_CALL_BYTES = 2**24
"""Of rows that are read from disk: as many in one call, unless a batch has more."""
_NOT_READ = (
    "Another process of this run could not read its rows: see what it says, and go on "
    "from the last checkpoint in all of them."
)


class Feed:
    """Batches one after the other, which end where one cannot be read.

    So that the steps before it are not lost.

    Args:
        batches: without end.

    Attributes:
        failure: why they ended, or `None`.
    """

    def __init__(self, batches: Iterator[Any]):
        self._batches = batches
        self.failure: Exception | None = None

    def __iter__(self) -> "Feed":
        return self

    def __next__(self) -> Any:
        if self.failure is None:
            try:
                return next(self._batches)
            except Exception as error:
                self.failure = error
        raise StopIteration


class AbstractLoop(eqx.Module):
    """Where the data are, and so how steps follow each other.

    Attributes:
        mesh: of several devices that share each batch, or `None`.
        call_seconds: how long a call should take: progress, checkpoints and Ctrl-C come
            between calls.
    """

    mesh: eqx.AbstractVar[Mesh | None]
    call_seconds: eqx.AbstractClassVar[float]

    def place(self, state: TrainState) -> TrainState:
        """The state, on the devices where steps have it."""
        return put_parameters(state, self.mesh)

    @abc.abstractmethod
    def feed(
        self, num_data: int, batch_size: int, *, key: PRNGKeyArray, start: int
    ) -> Generator[Any, None, None]:
        """What `run` takes, from a step on, without end: a generator, to be closed.

        Args:
            num_data: how many rows there are.
            batch_size: of each step.
            key: of all shuffles.
            start: the first step's number.
        """

    @abc.abstractmethod
    def run(
        self, state: TrainState, feed: Feed, num_steps: int, *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """Take some steps, and stop after the first non-finite one.

        Where those are skipped, it goes on. Where the feed ends, it took fewer.

        Args:
            state: before the first step; its memory is reused, so it is gone after.
            feed: of the batches.
            num_steps: to take, at most `MAX_STEPS`.
            key: of the run; step k uses `fold_in(key, k)`.

        Returns:
            The state after the last step, and what each recorded, the steps leading.
        """


class InMemory(AbstractLoop):
    """Data on the device, and up to `MAX_STEPS` steps in one compiled call.

    Attributes:
        trainer: of the steps.
        data: all inputs and targets, on the device.
        max_steps: the length of the buffers of indices and records.
        mesh: of several devices that share each batch, or `None`.
    """

    trainer: Trainer
    data: tuple[PyTree, PyTree]
    max_steps: int
    mesh: Mesh | None = None
    # A program's scratch is allocated once for all its steps.
    call_seconds: ClassVar[float] = 3.0

    def feed(
        self, num_data: int, batch_size: int, *, key: PRNGKeyArray, start: int
    ) -> Generator[np.ndarray, None, None]:
        """The rows' numbers."""
        return batch_indices(num_data, batch_size, key=key, start=start)

    def run(
        self, state: TrainState, feed: Feed, num_steps: int, *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """See `AbstractLoop.run`."""
        indices = list(islice(feed, num_steps))
        padded = np.zeros((self.max_steps, len(indices[0])), np.int32)
        padded[: len(indices)] = indices
        count = jnp.asarray(len(indices), jnp.int32)
        inputs = (self.trainer, self.data, jnp.asarray(padded), count, key)
        inputs = everywhere(inputs, self.mesh)
        state, records, num_done = _run_steps((inputs, self.mesh), state)
        return state, _on_host(records, int(num_done))


class BatchByBatch(AbstractLoop):
    """Data in numpy, on disk perhaps: one compiled call a step.

    Also the faster choice on a CPU for networks with Equinox's own convolutions,
    whose gradients are slow inside a compiled loop.

    Attributes:
        trainer: of the steps.
        data: all inputs and targets, as numpy arrays or memory maps.
        mesh: of several devices that share each batch, or `None`.
    """

    trainer: Trainer
    data: tuple[PyTree, PyTree]
    mesh: Mesh | None = None
    call_seconds: ClassVar[float] = 1.0

    def feed(
        self, num_data: int, batch_size: int, *, key: PRNGKeyArray, start: int
    ) -> Generator[np.ndarray, None, None]:
        """The rows' numbers."""
        return batch_indices(num_data, batch_size, key=key, start=start)

    def run(
        self, state: TrainState, feed: Feed, num_steps: int, *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """See `AbstractLoop.run`."""
        records = _room_for(self.trainer, max(MAX_STEPS, num_steps))
        trainer, key, records = everywhere((self.trainer, key, records), self.mesh)
        num_done = 0
        for i, rows in enumerate(islice(feed, num_steps)):
            num_done = i + 1
            batch = jax.tree.map(lambda a, rows=rows: np.asarray(a[rows]), self.data)
            number = everywhere(jnp.asarray(i, jnp.int32), self.mesh)
            inputs = (trainer, put_rows(batch, self.mesh), key, number)
            state, records = _run_one_step((inputs, self.mesh), (state, records))
        # Records are read only here, so that a device never waits for the host.
        found = _on_host(records, num_done)
        if self.trainer.skips_nonfinite:
            return state, found
        bad = np.flatnonzero(~found.is_finite(np))
        return state, _on_host(records, int(bad[0]) + 1) if bad.size else found


class FromDisk(AbstractLoop):
    """Data on disk, read ahead of the steps: several batches to a compiled call.

    The rows of one call are on the device, and those of the next are put there while
    it runs.

    Attributes:
        trainer: of the steps.
        data: the rows.
        mesh: of several devices that share each batch, or `None`; each of its processes
            reads its own part of the rows.
    """

    trainer: Trainer
    data: Streamed
    mesh: Mesh | None = None
    call_seconds: ClassVar[float] = 1.0

    def feed(
        self, num_data: int, batch_size: int, *, key: PRNGKeyArray, start: int
    ) -> Generator[tuple[np.ndarray, np.ndarray], None, None]:
        """The rows themselves, of this process's part."""
        del num_data
        seed = np.asarray(jax.random.key_data(key)).tolist()
        part = Part(*part_of(self.mesh))
        return self.data.batches(batch_size, seed=seed, start=start, part=part)

    def run(
        self, state: TrainState, feed: Feed, num_steps: int, *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """See `AbstractLoop.run`."""
        parts: list[tuple[StepRecord, Array, int]] = []
        num_taken = 0
        trainer, key = everywhere((self.trainer, key), self.mesh)
        while num_taken < num_steps:
            batches = list(islice(feed, 1))
            length = self._steps_at_once(batches)
            batches += islice(feed, min(length, num_steps - num_taken) - len(batches))
            num_shared = len(batches)
            if part_of(self.mesh)[1] > 1:
                num_shared = -largest(-num_shared)[0]
            if num_shared < len(batches):  # or its steps would wait for the other's
                feed.failure = DataError(_NOT_READ)
                batches = batches[:num_shared]
            if not batches:
                break
            numbers = jnp.arange(length, dtype=jnp.int32)
            count = jnp.asarray(len(batches), jnp.int32)
            numbers, count = everywhere((numbers, count), self.mesh)
            data = put_batches(_stacked(batches, length), self.mesh)
            if len(parts) > 1:  # two calls' rows are enough to have on the device
                jax.block_until_ready(parts[-2][1])
            inputs = (trainer, data, numbers, count, key)
            state, records, done = _run_steps((inputs, self.mesh), state)
            parts.append((records, done, len(batches)))
            num_taken += len(batches)
        found = [_on_host(_room_for(self.trainer, 1), 0)]
        for records, done, num_asked in parts:
            found.append(_on_host(records, int(done)))
            if int(done) < num_asked:
                break
        return state, jax.tree.map(lambda *a: np.concatenate(a), *found)

    def _steps_at_once(self, batches: list[tuple[np.ndarray, np.ndarray]]) -> int:
        """How many batches like these, if there are any, one call takes."""
        size = sum(a.nbytes for a in batches[0]) if batches else 1
        return min(MAX_STEPS, max(1, _CALL_BYTES // size))


@eqx.filter_jit(donate="all-except-first")
def _run_steps(inputs, state):
    (trainer, data, indices, num_steps, key), mesh = inputs
    records = _room_for(trainer, indices.shape[0])

    def is_going(carry):
        i, ok, _, _ = carry
        return ok & (i < num_steps)

    def next_step(carry):
        i, _, state, records = carry
        batch = over_rows(jax.tree.map(lambda a: a[indices[i]], data), mesh)
        step_key = jax.random.fold_in(key, state.step)
        with rows_in_parts(mesh):
            state, record = trainer.step(state, batch, key=step_key)
        state = as_parameters(state, mesh)
        ok = jnp.asarray(True) if trainer.skips_nonfinite else record.is_finite()
        return i + 1, ok, state, _put(records, record, i)

    start = (jnp.zeros((), jnp.int32), jnp.asarray(True), state, records)
    num_done, _, state, records = jax.lax.while_loop(is_going, next_step, start)
    return state, records, num_done


@eqx.filter_jit(donate="all-except-first")
def _run_one_step(inputs, state_and_records):
    (trainer, batch, key, i), mesh = inputs
    state, records = state_and_records
    step_key = jax.random.fold_in(key, state.step)
    with rows_in_parts(mesh):
        state, record = trainer.step(state, batch, key=step_key)
    return as_parameters(state, mesh), _put(records, record, i)


def _stacked(
    batches: list[tuple[np.ndarray, np.ndarray]], length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Batches along a new axis, which is as long for fewer of them."""

    def stack(*leaves: np.ndarray) -> np.ndarray:
        room = np.zeros((length, *leaves[0].shape), leaves[0].dtype)
        np.stack(leaves, out=room[: len(leaves)])
        return room

    x, y = zip(*batches, strict=True)
    return stack(*x), stack(*y)


def _room_for(trainer: Trainer, num_steps: int) -> StepRecord:
    """Room for the records of several steps, on the device."""
    room = lambda a: jnp.zeros((num_steps, *a.shape))
    return jax.tree.map(room, trainer.no_record())


def _put(records: StepRecord, record: StepRecord, i: Int[Array, ""]) -> StepRecord:
    """`records` with that of step `i`."""
    put = lambda room, new: room.at[i].set(new.astype(room.dtype))
    return jax.tree.map(put, records, record)


def _on_host(records: StepRecord, num_steps: int) -> StepRecord:
    """The first of several records, in double precision."""
    first = lambda a: np.asarray(a, np.float64)[:num_steps]
    return jax.tree.map(first, records)
