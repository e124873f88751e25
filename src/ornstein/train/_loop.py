"""Many steps at a time: in one compiled call, or batch by batch."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .._mesh import as_parameters, everywhere, over_rows, put_parameters, put_rows
from .._types import Array, Int, PRNGKeyArray, PyTree
from ._step import Trainer, TrainState
from .records import StepRecord

MAX_STEPS = 512
"""Steps in one compiled call, at most; the number taken is not part of the program."""


class AbstractLoop(eqx.Module):
    """Where the data are, and so how steps follow each other.

    Attributes:
        mesh: of several devices that share each batch, or `None`.
    """

    mesh: eqx.AbstractVar[Mesh | None]

    def place(self, state: TrainState) -> TrainState:
        """The state, on the devices where steps have it."""
        return put_parameters(state, self.mesh)

    @abc.abstractmethod
    def run(
        self, state: TrainState, indices: list[np.ndarray], *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """Take one step for each batch, and stop after the first non-finite one.

        Where those are skipped, it goes on.

        Args:
            state: before the first step; its memory is reused, so it is gone after.
            indices: the rows of each batch.
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

    def run(
        self, state: TrainState, indices: list[np.ndarray], *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """See `AbstractLoop.run`."""
        padded = np.zeros((self.max_steps, len(indices[0])), np.int32)
        padded[: len(indices)] = indices
        num_steps = jnp.asarray(len(indices), jnp.int32)
        inputs = (self.trainer, self.data, jnp.asarray(padded), num_steps, key)
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

    def run(
        self, state: TrainState, indices: list[np.ndarray], *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """See `AbstractLoop.run`."""
        records = _room_for(self.trainer, max(MAX_STEPS, len(indices)))
        trainer, key, records = everywhere((self.trainer, key, records), self.mesh)
        for i, rows in enumerate(indices):
            batch = jax.tree.map(lambda a, rows=rows: np.asarray(a[rows]), self.data)
            number = everywhere(jnp.asarray(i, jnp.int32), self.mesh)
            inputs = (trainer, put_rows(batch, self.mesh), key, number)
            state, records = _run_one_step((inputs, self.mesh), (state, records))
        # Records are read only here, so that a device never waits for the host.
        found = _on_host(records, len(indices))
        if self.trainer.skips_nonfinite:
            return state, found
        bad = np.flatnonzero(~found.is_finite(np))
        return state, _on_host(records, int(bad[0]) + 1) if bad.size else found


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
    state, record = trainer.step(state, batch, key=step_key)
    return as_parameters(state, mesh), _put(records, record, i)


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
