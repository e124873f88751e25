"""Starts from members of an ensemble that is optimised on the spot."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Key

from .._mesh import agreed_here
from .._types import Array, Float, Params, PRNGKeyArray, PyTree
from ..data import Streamed
from ..functions import Deterministic
from ..likelihood import AbstractLikelihood
from ..network import Network
from ..potential import Potential
from ..prior import AbstractPrior
from ..train import NonFiniteError, check_data, check_positive
from ._callback import SamplingCallback, SamplingPlan
from ._starts import Starts, apart

_CALL_SECONDS = 1.0
"""How long a call should take: progress and Ctrl-C come between calls."""


def optimised_starts(
    model: Network,
    split: Any,
    likelihood: AbstractLikelihood,
    *,
    prior: AbstractPrior,
    key: PRNGKeyArray,
    num_chains: int = 4,
    num_steps: int = 2000,
    learning_rate: float = 0.01,
    where: Callable[[Any], PyTree] | None = None,
    likelihood_prior: AbstractPrior | None = None,
    batch_size: int | None = None,
    callbacks: Sequence[SamplingCallback] = (),
) -> Starts:
    r"""Members of an ensemble, each near a mode of the posterior of its own.

    Minimises $U(\theta) = -\log p(D | \theta) - \log p(\theta)$, the energy that the
    chains will sample, by Adam, whose rate falls to 0 as a cosine does. Each member
    begins where a chain would without `starts`: at a draw of its own from the prior, no
    larger than the network. All members move side by side in one compiled program, and
    the same key gives the same bits however the steps are cut into calls.

    For `sample(..., starts=optimised_starts(...))`: chains that begin in modes of their
    own need no long way there, and show by an R-hat above 1 that they have not met.
    Starts of `MicrocanonicalLangevin` above all: Sommer et al. (2025).

    Args:
        model: as `sample` takes it.
        split: training data.
        likelihood: as `sample` takes it.
        prior: of the network's parameters; the same as the chains'.
        key: of the members' beginnings and their batches.
        num_chains: members, one for each chain.
        num_steps: of Adam.
        learning_rate: its first.
        where: as `sample` takes it.
        likelihood_prior: of a learned scale, which each member learns by itself.
        batch_size: rows behind a step, drawn anew with replacement; all by default.
        callbacks: hear about it as they do about chains, with the phase "members".

    Returns:
        positions, and how they came about, which a result repeats as `chains_started`.

    Raises:
        ValueError: for arguments or data that cannot work.
        NonFiniteError: if a member leaves the finite numbers.
    """
    if isinstance(model, Deterministic):
        model = model.network
    if isinstance(split, Streamed):
        raise ValueError(
            "Members are optimised over rows in memory, and those of `split` stay on "
            "disk: `fit` an `Ensemble` of `Deterministic` to them, and give that as "
            "`starts`."
        )
    check_data(split, "split")
    check_positive(num_chains=num_chains, num_steps=num_steps)
    if not 0 < learning_rate < float("inf"):
        raise ValueError(f"`learning_rate` must be positive, got {learning_rate}.")
    potential = Potential(
        model,
        split,
        likelihood,
        prior=prior,
        likelihood_prior=likelihood_prior,
        where=where,
        batch_size=len(split.y) if batch_size is None else batch_size,
    )
    begin_key, batch_key = jax.random.split(key)
    positions = apart(potential, num_chains, key=begin_key)
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, num_steps))
    members = _Members(
        potential,
        jax.random.split(batch_key, num_chains),
        optimiser.update,
        is_whole=batch_size is None,
    )
    plan = SamplingPlan(
        num_warmup=num_steps,
        num_samples=0,
        num_chains=num_chains,
        thin=1,
        num_parameters=sum(a[0].size for a in jax.tree.leaves(positions)),
        first_step=0,
    )
    carry = (positions, jax.vmap(optimiser.init)(positions))
    for callback in callbacks:
        callback.start(plan)
    try:
        positions = _optimise(members, carry, num_steps, callbacks)
    finally:
        for callback in callbacks:
            callback.stop()
    return Starts(
        positions,
        f"each at a member of its own, optimised by {num_steps} steps of Adam from a "
        "draw of the prior no larger than the network",
    )


class _Members(eqx.Module):
    """What a step of every member needs.

    Attributes:
        potential: that is minimised.
        keys: of the batches, one for each member; step t draws from `fold_in(., t)`.
        update: Adam's.
        is_whole: whether a step sees all rows.
    """

    potential: Potential
    keys: Key[Array, " members"]
    update: Callable = eqx.field(static=True)
    is_whole: bool = eqx.field(static=True)

    @eqx.filter_jit
    def steps(
        self, carry: PyTree, first: Array, num: Array
    ) -> tuple[PyTree, Float[Array, " members"]]:
        """Some steps of all members, and the energies before the last of them."""

        def one(position, state, key, time):
            key = jax.random.fold_in(key, time)
            estimate = lambda q: self.potential.estimate(q, key=key)
            energy_fn = self.potential if self.is_whole else estimate
            energy, gradient = jax.value_and_grad(energy_fn)(position)
            updates, state = self.update(gradient, state, position)
            return (optax.apply_updates(position, updates), state), energy

        def step(time, carry_and_energy):
            carry, _ = carry_and_energy
            all_of_them = jax.vmap(one, in_axes=(0, 0, 0, None))
            return all_of_them(*carry, self.keys, time)

        energies = jnp.zeros(self.keys.shape)
        return lax.fori_loop(first, first + num, step, (carry, energies))


def _optimise(
    members: _Members,
    carry: PyTree,
    num_steps: int,
    callbacks: Sequence[SamplingCallback],
) -> Params:
    step, num_next = 0, 1  # the first call compiles
    while step < num_steps:
        num = min(num_next, num_steps - step)
        begin = time.monotonic()
        carry, energies = members.steps(carry, jnp.asarray(step), jnp.asarray(num))
        _check_finite((carry[0], energies), step + num)
        step += num
        seconds = max((time.monotonic() - begin) / num, 1e-6)
        num_next = max(1, min(int(_CALL_SECONDS / seconds), 8 * num_next))
        (num_next,) = agreed_here(num_next)
        record = {"phase": "members", "energy": float(jnp.mean(energies))}
        for callback in callbacks:
            callback.advance(step, record)
    return carry[0]


def _check_finite(parts: PyTree[Array], step: int) -> None:
    for leaf in jax.tree.leaves(parts):
        finite = np.isfinite(np.asarray(leaf)).reshape(leaf.shape[0], -1).all(axis=1)
        if not finite.all():
            raise NonFiniteError(
                f"Member {int(np.argmin(finite))} left the finite numbers by step "
                f"{step} of its optimisation: divide its `learning_rate` by 10."
            )
