"""Many steps of many chains in one compiled call."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Key

from .._mesh import CHAINS, each_apart, rows_in_parts
from .._types import Array, Int, Params, PyTree
from ..mcmc import AbstractKernel, AbstractState, Stage
from ..potential import AbstractPotential


class Sampler(eqx.Module):
    """A kernel, its potential, and the randomness of each chain.

    Step t of chain c draws from `fold_in(keys[c], t)`, warm-up included, so that how
    steps are cut into calls changes nothing.

    Attributes:
        kernel: of every chain.
        potential: of the density that every chain samples.
        keys: one for each chain.
        mesh: of several devices, along whose `chains` each has its own; or `None`.
    """

    kernel: AbstractKernel
    potential: AbstractPotential
    keys: Key[Array, " chains"]
    mesh: Mesh | None = None

    @eqx.filter_jit
    def init(self, starts: Params, keys: Key[Array, " chains"]) -> AbstractState:
        """The states of chains that start at these positions, chains first."""

        def run(sampled, starts, keys):
            kernel, potential = sampled
            init = lambda start, key: kernel.init(potential, start, key=key)
            return jax.vmap(init)(starts, keys)

        with rows_in_parts(self._cut):
            return each_apart(run, self.mesh, CHAINS)(self._sampled, starts, keys)

    def step(
        self, states: AbstractState, time: Int[Array, ""]
    ) -> tuple[AbstractState, PyTree[Array]]:
        """Step number `time` of every chain."""
        step = lambda state, key: self.kernel.step(self.potential, state, key=key)
        return jax.vmap(step)(states, self.keys_at(time))

    @eqx.filter_jit
    def warm_up(
        self, states: AbstractState, stages: Stage, first: Array, num: Array
    ) -> tuple[AbstractState, PyTree[Array]]:
        """Some steps of the warm-up.

        Args:
            states: of the chains.
            stages: of the whole warm-up.
            first: the number of the first step.
            num: how many; not part of what is compiled.

        Returns:
            The states, and the info of the steps together (see `together`).
        """

        def run(whole, states, keys):
            sampled, stages, first, num = whole
            kernel, potential = sampled

            def step(states, time):
                stage = jax.tree.map(lambda a: a[time], stages)

                def one(state, key):
                    return kernel.warm_up(potential, state, stage, key=key)

                own = Sampler(*sampled, keys)
                return jax.vmap(one)(states, own.keys_at(time))

            return repeat(step, states, first, num)

        whole = (self._sampled, stages, first, num)
        with rows_in_parts(self._cut):
            return each_apart(run, self.mesh, CHAINS)(whole, states, self.keys)

    @eqx.filter_jit
    def draw(
        self,
        states: AbstractState,
        first: Array,
        num: Array,
        thin: Array,
        *,
        capacity: int,
    ) -> tuple[AbstractState, Array, "DeviceSamples"]:
        """Some samples of every chain, `thin` steps from one to the next.

        Where a schedule has phases, those that explore are passed over step by step.

        Args:
            states: of the chains.
            first: the number of the first step.
            num: samples; not part of what is compiled.
            thin: steps for each.
            capacity: samples that the result has room for.

        Returns:
            The states, the number of the next step, and the samples.
        """

        def run(whole, states, keys):
            sampled, *numbers = whole
            return Sampler(*sampled, keys)._draw(states, *numbers, capacity)

        run = each_apart(run, self.mesh, CHAINS, leading=(0, None, 1))
        with rows_in_parts(self._cut):
            return run((self._sampled, first, num, thin), states, self.keys)

    @property
    def _cut(self) -> Mesh | None:
        """The mesh, if its devices share rows: a batch lies whole on each."""
        return None if self.kernel.is_minibatch else self.mesh

    @property
    def _sampled(self) -> tuple[AbstractKernel, AbstractPotential]:
        return self.kernel, self.potential

    def _draw(self, states, first, num, thin, capacity):
        def thinned(carry):
            states, time, info, num, _ = carry
            states, info = repeat(self.step, states, time, num, info)
            is_kept = jnp.all(jnp.asarray(getattr(info, "is_sampling", True)))
            # In step with the cycle, `thin` steps again would never meet the phase.
            return states, time + num, info, jnp.ones_like(num), is_kept

        def keep(number, carry):
            states, time, kept = carry
            nothing = jax.tree.map(lambda a: jnp.zeros_like(a[number]), kept.info)
            states, time, info, *_ = lax.while_loop(
                lambda carry: ~carry[-1],
                thinned,
                (states, time, nothing, thin, jnp.array(False)),
            )
            put = lambda a, new: lax.dynamic_update_index_in_dim(a, new, number, 0)
            kept = jax.tree.map(put, kept, DeviceSamples(states.position, info))
            return states, time, kept

        like = eqx.filter_eval_shape(
            lambda: DeviceSamples(
                states.position, repeat(self.step, states, first, thin)[1]
            )
        )
        room = jax.tree.map(lambda a: jnp.zeros((capacity, *a.shape), a.dtype), like)
        return lax.fori_loop(0, num, keep, (states, first, room))

    def keys_at(self, time: Int[Array, ""]) -> Key[Array, " chains"]:
        """Of step number `time`."""
        return jax.vmap(jax.random.fold_in, in_axes=(0, None))(self.keys, time)


class DeviceSamples(NamedTuple):
    """Samples on the device: samples first, then chains.

    Attributes:
        position: of each chain.
        info: of the steps since the sample before.
    """

    position: Params
    info: PyTree[Array]


def repeat(
    step: Callable[[AbstractState, Array], tuple[AbstractState, PyTree[Array]]],
    states: AbstractState,
    first: Array,
    num: Array,
    info: PyTree[Array] = None,
) -> tuple[AbstractState, PyTree[Array]]:
    """`num` steps one after another, and their info together with that before.

    Args:
        step: of states and the step's number, to states and an info.
        states: before the first.
        first: its number.
        num: how many.
        info: of the steps before, if there are any.
    """

    def body(time, carry):
        states, info = carry
        states, new = step(states, time)
        paths = jax.tree_util.tree_map_with_path(together, info, new)
        return states, paths

    if info is None:
        _, like = eqx.filter_eval_shape(step, states, first)
        info = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), like)
    return lax.fori_loop(first, first + num, body, (states, info))


def together(path: tuple[Any, ...], before: Array, new: Array) -> Array:
    """Whether any step diverged; how much all did; else what the last one says.

    Args:
        path: of the leaf, as `jax.tree_util` has it.
        before: of the steps before.
        new: of a step.
    """
    if jax.tree_util.keystr(path[-1:], simple=True) == "is_divergent":
        return before | new
    return before + new if jnp.issubdtype(new.dtype, jnp.integer) else new
