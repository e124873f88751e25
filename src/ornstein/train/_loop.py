"""Many steps at a time: in one compiled call, or batch by batch."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import PRNGKeyArray, PyTree
from ._step import Trainer, TrainState

MAX_STEPS = 512
"""Steps in one compiled call, at most; the number taken is not part of the program."""


class AbstractLoop(eqx.Module):
    """Where the data are, and so how steps follow each other."""

    @abc.abstractmethod
    def run(
        self, state: TrainState, indices: list[np.ndarray], *, key: PRNGKeyArray
    ) -> tuple[TrainState, np.ndarray]:
        """Take one step for each batch, and stop after the first non-finite one.

        Args:
            state: before the first step; its memory is reused, so it is gone after.
            indices: the rows of each batch.
            key: of the run; step k uses `fold_in(key, k)`.

        Returns:
            The state after the last step, and one row of records for each step.
        """


class InMemory(AbstractLoop):
    """Data on the device, and up to `MAX_STEPS` steps in one compiled call.

    Attributes:
        trainer: of the steps.
        data: all inputs and targets, on the device.
        max_steps: the length of the buffers of indices and records.
    """

    trainer: Trainer
    data: tuple[PyTree, PyTree]
    max_steps: int

    def run(
        self, state: TrainState, indices: list[np.ndarray], *, key: PRNGKeyArray
    ) -> tuple[TrainState, np.ndarray]:
        """See `AbstractLoop.run`."""
        padded = np.zeros((self.max_steps, len(indices[0])), np.int32)
        padded[: len(indices)] = indices
        num_steps = jnp.asarray(len(indices), jnp.int32)
        inputs = (self.trainer, self.data, jnp.asarray(padded), num_steps, key)
        state, records, num_done = _run_steps(inputs, state)
        return state, np.asarray(records, np.float64)[: int(num_done)]


class BatchByBatch(AbstractLoop):
    """Data in numpy, on disk perhaps: one compiled call a step.

    Also the faster choice on a CPU for networks with Equinox's own convolutions,
    whose gradients are slow inside a compiled loop.

    Attributes:
        trainer: of the steps.
        data: all inputs and targets, as numpy arrays or memory maps.
    """

    trainer: Trainer
    data: tuple[PyTree, PyTree]

    def run(
        self, state: TrainState, indices: list[np.ndarray], *, key: PRNGKeyArray
    ) -> tuple[TrainState, np.ndarray]:
        """See `AbstractLoop.run`."""
        records = []
        for rows in indices:
            batch = jax.tree.map(lambda a, rows=rows: jnp.asarray(a[rows]), self.data)
            state, record = _run_one_step((self.trainer, batch, key), state)
            records.append(record)
        # Records are read only here, so that a device never waits for the host.
        records = np.asarray(jnp.stack(records), np.float64)
        bad = np.flatnonzero(~_finite(records, self.trainer, np))
        return state, records[: bad[0] + 1] if bad.size else records


@eqx.filter_jit(donate="all-except-first")
def _run_steps(inputs, state):
    trainer, data, indices, num_steps, key = inputs
    width = len(trainer.names) + 3 * trainer.num_bins
    records = jnp.zeros((indices.shape[0], width))

    def is_going(carry):
        i, ok, _, _ = carry
        return ok & (i < num_steps)

    def next_step(carry):
        i, _, state, records = carry
        batch = jax.tree.map(lambda a: a[indices[i]], data)
        step_key = jax.random.fold_in(key, state.step)
        state, record = trainer.step(state, batch, key=step_key)
        ok = _finite(record, trainer, jnp)
        return i + 1, ok, state, records.at[i].set(record.astype(records.dtype))

    start = (jnp.zeros((), jnp.int32), jnp.asarray(True), state, records)
    num_done, _, state, records = jax.lax.while_loop(is_going, next_step, start)
    return state, records, num_done


@eqx.filter_jit(donate="all-except-first")
def _run_one_step(inputs, state):
    trainer, batch, key = inputs
    return trainer.step(state, batch, key=jax.random.fold_in(key, state.step))


def _finite(records, trainer, np_like):
    """Whether loss and gradient are numbers, for one row of records or for many."""
    loss = records[..., trainer.names.index("loss")]
    grad_norm = records[..., trainer.names.index("grad_norm")]
    return np_like.isfinite(loss) & np_like.isfinite(grad_norm)
