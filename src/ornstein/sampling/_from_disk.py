"""Steps of chains whose rows stay on disk: each meets a batch that was read for it."""

import contextlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from .._sentence import OptionError
from .._types import Array, Int, PRNGKeyArray, PyTree
from ..data import Streamed
from ..data.stream import Ahead
from ..mcmc import AbstractKernel, AbstractState, Stage
from ..potential import AbstractPotential, BatchPotential, Potential, Tempered
from ..sgmcmc import ConstantSGD, NaiveSGHMC
from ._advance import DeviceSamples, Sampler, repeat, together

_MAX_STEPS = 512
_BLOCK_BYTES = 2**24
"""Of rows that go to the device at once: as many steps', unless a batch has more."""


def why_not_from_disk(kernel: AbstractKernel) -> str | None:
    """What a kernel does that rows on disk do not allow; `None` if nothing.

    Args:
        kernel: of chains.
    """
    if not kernel.is_minibatch:
        return "sees all training rows at each step"
    if isinstance(kernel, ConstantSGD):
        # It forgets in half an epoch, over which such noise cancels: of a Gaussian
        # posterior one chain has 0.66 of the standard deviation, each of four 0.89.
        return "lives on the noise of batches that are drawn with replacement"
    if getattr(kernel, "noise_estimate", 0.0):
        # As much of it, by SGHMC: `python -m benchmarks.streamed_chains`.
        return "takes off (`noise_estimate`) the noise of batches with replacement"
    has_several = getattr(kernel, "num_integration_steps", 1) > 1
    if has_several or isinstance(kernel, NaiveSGHMC):
        return "takes several batches in one step"
    return None


def check_rows(
    rows: Streamed | None,
    kernel: AbstractKernel,
    potential: AbstractPotential,
    mesh: Mesh | None,
) -> None:
    """Refuse rows on disk that chains cannot run over, and a sample taken for all.

    Args:
        rows: on disk, or `None`.
        kernel: of the chains.
        potential: of the chains.
        mesh: of several devices, or `None`.

    Raises:
        ValueError: saying what does not go together.
    """
    is_network = isinstance(potential, Potential)
    num_data = potential.num_data if is_network else None
    if rows is None:
        inner = potential
        while isinstance(inner, Tempered | BatchPotential):
            inner = inner.potential
        if isinstance(inner, Potential) and inner.num_rows < inner.num_data:
            raise ValueError(
                f"The potential has {inner.num_rows:,} of {inner.num_data:,} rows: "
                "give it bare, and `rows`, where the others are."
            )
        return
    if num_data != len(rows):
        whose = f"{num_data:,} rows" if is_network else "no rows"
        raise ValueError(
            f"`rows` has {len(rows):,} rows on disk, and the potential {whose}: give "
            "Potential(..., rows.in_memory(), num_data=len(rows))."
        )
    if (why := why_not_from_disk(kernel)) is not None:
        raise ValueError(
            f"`{type(kernel).__name__}` {why}, and rows on disk are read in "
            "epochs, batch by batch: take `SGLD`, `PreconditionedSGLD`, "
            "`AdaptiveDriftSGLD`, `SGHMC` or `SGNHT`, or load the data without "
            "stream=True."
        )
    if mesh is not None:
        raise OptionError(
            "Chains over rows that {stream} leaves on disk run on one device without "
            "a mesh: leave {mesh} or {stream} out."
        )


def may_drift(rows: Streamed) -> bool:
    """Whether rows that were written beside each other are also met together."""
    return rows.most_rows < len(rows) and int(rows.shards.block_rows.max()) > 1


def check_enough(rows: Streamed, potential: AbstractPotential, num_chains: int) -> None:
    """Refuse batches of which an epoch has none.

    Args:
        rows: on disk.
        potential: whose batches they are.
        num_chains: that each have their own.

    Raises:
        ValueError: naming what is too large.
    """
    size = _batch_size(potential)
    if size * num_chains > len(rows):
        raise OptionError(
            "Each of the chains has its own part of what a step reads, {num_chains} {} "
            "times {batch_size} {}, and there are {:,} training rows: lower one of "
            "them.",
            num_chains,
            size,
            len(rows),
        )


class _Block(NamedTuple):
    """The batches of some steps, on the device.

    Attributes:
        first: the number of the first step.
        num: steps; of a block that is cut short there is room for more.
        rows: inputs and targets; steps, chains, rows first.
    """

    first: int
    num: int
    rows: tuple[Array, Array]


class _Drawing(NamedTuple):
    """Where chains are between two samples.

    Attributes:
        states: of the chains.
        time: the number of the next step.
        info: of the steps since the sample before.
        left: steps until the next sample, at least.
        num: samples that were kept.
    """

    states: AbstractState
    time: Int[Array, ""]
    info: PyTree[Array]
    left: Int[Array, ""]
    num: Int[Array, ""]


class FromDisk:
    """What a `Sampler` does, over rows that a thread reads while the chains move.

    Step t, warm-up included, meets batch t of an order that the key decides; it has
    rows for all chains, and each gets its own part. So chains share no row within an
    epoch, and what a step sees is a function of the key, its number and the number of
    chains. Close it.

    Args:
        sampler: of the chains; its potential has some of the rows, for all that is no
            step.
        rows: all of them.
        key: of their order.
    """

    def __init__(self, sampler: Sampler, rows: Streamed, *, key: PRNGKeyArray):
        self.sampler, self._rows = sampler, rows
        self._seed = np.asarray(jax.random.key_data(key)).tolist()
        self._ahead: Ahead[_Block] | None = None
        self._block: _Block | None = None
        self._no_info: dict[bool, Any] = {}  # of the warm-up, and not: traced once

    def warm_up(
        self, states: AbstractState, stages: Stage, first: Array, num: Array
    ) -> tuple[AbstractState, PyTree[Array]]:
        """See `Sampler.warm_up`.

        Raises:
            DataError: when it comes to rows that cannot be read.
        """
        time, end = int(first), int(first + num)
        info = None
        while time < end:
            block = self._block_at(time)
            count = min(end, block.first + block.num) - time
            inputs = (self.sampler, block.rows, _int(block.first), stages)
            if info is None:
                info = self._info_before(inputs, states, first)
            states, info = _warm_up(inputs, states, _int(time), _int(count), info)
            time += count
        return states, info

    def draw(
        self,
        states: AbstractState,
        first: Array,
        num: Array,
        thin: Array,
        *,
        capacity: int,
    ) -> tuple[AbstractState, Array, DeviceSamples]:
        """See `Sampler.draw`.

        Raises:
            DataError: when it comes to rows that cannot be read.
        """
        at: _Drawing | None = None
        room: Any = None
        while at is None or int(at.num) < int(num):
            time = int(first) if at is None else int(at.time)
            block = self._block_at(time)
            batches = (self.sampler, block.rows, _int(block.first))
            if at is None:
                info = self._info_before((*batches, None), states, first)
                at = _Drawing(states, first, info, thin, jnp.zeros_like(num))
                like = DeviceSamples(states.position, info)
                zeros = lambda a: jnp.zeros((capacity, *a.shape), a.dtype)
                room = jax.tree.map(zeros, like)
            end = _int(block.first + block.num)
            at, room = _draw((batches, at, end, num, thin), room)
        return at.states, at.time, room

    def close(self) -> None:
        """End the thread."""
        if self._ahead is not None:
            self._ahead.close()
        self._ahead = self._block = None

    def _info_before(self, inputs, states, time):
        """That of no step: zeros."""
        is_warm_up = inputs[-1] is not None
        if is_warm_up not in self._no_info:
            _, like = eqx.filter_eval_shape(_step, inputs, states, time)
            zeros = lambda a: jnp.zeros(a.shape, a.dtype)
            self._no_info[is_warm_up] = jax.tree.map(zeros, like)
        return self._no_info[is_warm_up]

    def _block_at(self, time: int) -> _Block:
        """The block that has a step's batch."""
        block = self._block
        if block is not None and block.first <= time < block.first + block.num:
            return block
        is_next = block is not None and time == block.first + block.num
        if self._ahead is None or not is_next:
            self.close()
            self._ahead = Ahead(lambda: self._blocks(time))
        self._block = next(self._ahead)
        return self._block

    def _blocks(self, first: int) -> Iterator[_Block]:
        """Blocks from a step on; one that cannot be read whole is cut short before."""
        num_chains = len(self.sampler.keys)
        size = num_chains * _batch_size(self.sampler.potential)
        batches = self._rows.batches(size, seed=self._seed, start=first)
        with contextlib.closing(batches):
            length = 1
            while True:
                found, failure = [], None
                try:
                    found += islice(batches, 1)
                    num_bytes = sum(a.nbytes for a in found[0])
                    length = min(_MAX_STEPS, max(1, _BLOCK_BYTES // num_bytes))
                    while len(found) < length:
                        found.append(next(batches))
                except Exception as error:  # after the batches before it
                    failure = error
                if found:
                    x, y = zip(*found, strict=True)
                    rows = _dealt(x, length, num_chains), _dealt(y, length, num_chains)
                    yield _Block(first, len(found), rows)
                    first += len(found)
                if failure is not None:
                    raise failure


def _batch_size(potential: AbstractPotential) -> int:
    """Of one chain."""
    assert isinstance(potential, Potential)
    return potential.batch_size


def _dealt(batches: tuple[np.ndarray, ...], length: int, num_chains: int) -> Array:
    """Batches on the device, a part to each chain, with room for `length` of them."""
    rows, *shape = batches[0].shape
    room = np.zeros((length, rows, *shape), batches[0].dtype)
    np.stack(batches, out=room[: len(batches)])
    return jnp.asarray(room.reshape(length, num_chains, rows // num_chains, *shape))


def _step(inputs, states, time):
    """A step of every chain, of the warm-up if there are stages."""
    sampler, rows, first, stages = inputs
    x, y = jax.tree.map(lambda a: a[time - first], rows)
    stage = None if stages is None else jax.tree.map(lambda a: a[time], stages)

    def one(state, key, x, y):
        potential = sampler.potential.of_batch(x, y)
        if stage is None:
            return sampler.kernel.step(potential, state, key=key)
        return sampler.kernel.warm_up(potential, state, stage, key=key)

    return jax.vmap(one)(states, sampler.keys_at(time), x, y)


@eqx.filter_jit
def _warm_up(inputs, states, first, num, info):
    step = lambda states, time: _step(inputs, states, time)
    return repeat(step, states, first, num, info)


@eqx.filter_jit(donate="all-except-first")
def _draw(inputs, room):
    """Steps until there are `num` samples, or the batches are at their `end`."""
    batches, at, end, num, thin = inputs

    def is_going(carry):
        at, _ = carry
        return (at.time < end) & (at.num < num)

    def next_step(carry):
        at, room = carry
        states, new = _step((*batches, None), at.states, at.time)
        info = jax.tree_util.tree_map_with_path(together, at.info, new)
        # Until it is kept, a sample's place is written over by the next step.
        put = lambda a, new: lax.dynamic_update_index_in_dim(a, new, at.num, 0)
        room = jax.tree.map(put, room, DeviceSamples(states.position, info))
        is_sampling = jnp.all(jnp.asarray(getattr(new, "is_sampling", True)))
        is_kept = (at.left <= 1) & is_sampling
        info = jax.tree.map(lambda a: jnp.where(is_kept, jnp.zeros_like(a), a), info)
        # In step with a cycle, `thin` steps again would never meet its phase.
        left = jnp.where(is_kept, thin, jnp.maximum(at.left - 1, 1))
        num_kept = at.num + is_kept.astype(at.num.dtype)
        at = _Drawing(states, at.time + 1, info, left, num_kept)
        return at, room

    return lax.while_loop(is_going, next_step, (at, room))


def _int(number: int) -> Array:
    return jnp.asarray(number, jnp.int32)
