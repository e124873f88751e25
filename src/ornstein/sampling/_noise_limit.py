"""Minibatch kernels whose step size is lowered where gradient noise heats the chain."""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Key

from .._gather import gathered
from .._kinds import check_kind
from .._sentence import Choice, Sentence
from .._types import Array, Float, Params, PRNGKeyArray
from ..mcmc import AbstractKernel, AbstractState
from ..sgmcmc import SGNHT, NaiveSGHMC
from ..train import check_positive
from ._advance import Sampler
from ._burn_in import has_noise_ratio, noise_ratios

HOT = 8.0
"""Gradient noise, times the injected noise, above which samples are called too wide: by
more than thrice, in the direction where it is largest."""
_LAST_CHECK = 0.8
"""Of the warm-up; what is left of it has the step size of the samples."""
_SAVED = ("step_size_factor", "most_step_size_factor", "num_restarts")
_LOWEST = "lowest_energies"
_BATCHES = 10
"""That say how high chains are."""
_ENERGY_STEP = 2**31 - 3
"""The number of no step: its randomness is that of these batches."""
_ROUNDING = 1e-6
_RESTART = 1 / 4
"""Of the step size that chains were lost with."""
_LEAST, _MOST = 1 / 4, 4.0
"""Times a step size, at one check: what a chain meets on its way may pass."""


class NoiseLimit(eqx.Module):
    r"""Lower a minibatch kernel's step size in the warm-up until it is cool enough.

    At `num_checks` steps of the first four fifths of the warm-up the `noise_ratio` $r$
    of every chain is held against the threshold: along the direction in which gradient
    noise is largest a chain of small steps has $1 + r$ times the posterior's variance.
    The step size is multiplied by what brings the largest $r$ to the threshold, but
    never above the one that was given, for all chains; friction is divided by it, so
    that a step keeps the same part of the momentum. In the first half of the checks it
    is left as it is while chains still descend: there gradients of rows differ by more
    than they will. Where a chain has left the finite numbers, or climbed above where
    chains started, they start again with a quarter of the step size. Samples all have
    the last one.

    Args:
        threshold: of the ratio.
        num_checks: of it.
        num_restarts: of the chains, at most.

    References:
        Welling & Teh (2011), section 4.2, has the ratio, and steps that fall.
    """

    threshold: float = 1.0
    num_checks: int = 16
    num_restarts: int = 6

    def __check_init__(self):
        check_positive(num_checks=self.num_checks)
        if not self.threshold > 0:
            raise ValueError(
                f"`threshold` must be positive, got {self.threshold}: 1 lets gradient "
                "noise double the variance of a step."
            )
        if self.num_restarts < 0:
            raise ValueError(
                f"`num_restarts` must not be negative, got {self.num_restarts}."
            )

    def next_check(self, step: int, num_warmup: int) -> int:
        """The next step after `step` at which to check; the warm-up's end if none is.

        Args:
            step: of the warm-up.
            num_warmup: its steps.
        """
        for check in range(1, self.num_checks + 1):
            at = math.ceil(_LAST_CHECK * num_warmup * check / self.num_checks)
            if at > step:
                return at
        return num_warmup

    def is_due(self, step: int, num_warmup: int) -> bool:
        """Whether to check after `step` steps."""
        return 0 < step < num_warmup and self.next_check(step - 1, num_warmup) == step


def check_can_slow(limit: NoiseLimit, kernel: AbstractKernel) -> None:
    """Refuse a kernel whose step size cannot be lowered.

    Args:
        limit: that is to lower it.
        kernel: any.

    Raises:
        TypeError: for what is no limit.
        ValueError: saying why.
    """
    check_kind("noise_limit", limit, NoiseLimit, "orn.sampling.NoiseLimit(1.0)")
    name, write = type(kernel).__name__, "leave `noise_limit` out"
    is_naive = isinstance(kernel, NaiveSGHMC)
    if not has_noise_ratio(kernel) or not hasattr(kernel, "step_size") or is_naive:
        raise ValueError(
            "`noise_limit` lowers the step size of a kernel that injects noise beside "
            f"that of its batches, and `{name}` is none: {write}."
        )
    for field in ("step_size", "friction", "temperature"):
        value = getattr(kernel, field, 1.0)
        if callable(value):
            raise ValueError(
                f"`noise_limit` lowers a step size, and the `{field}` of `{name}` is a "
                f"schedule: {write}."
            )
        if not np.all(np.asarray(value) > 0):
            raise ValueError(
                f"`noise_limit` compares the noise of batches with that of `{name}`, "
                f"which has none (`{field}` is {value}): {write}."
            )


class StepControl:
    """The step size of chains as a `NoiseLimit` has changed it.

    Args:
        rule: that decides.
        sampler: of the chains, with the step size that was given.
        states: where they start.
    """

    def __init__(self, rule: NoiseLimit, sampler: Sampler, states: AbstractState):
        self.rule, self.given, self.first = rule, sampler, states
        self.factor = self.most = 1.0
        self.num_restarts = 0
        self.lowest: np.ndarray | None = None
        temperature: Any = getattr(sampler.kernel, "temperature", 1.0)
        size = sum(a[0].size for a in jax.tree.leaves(states.position))
        self.heat = float(temperature) * size  # twice the mean of U above a mode

    @property
    def sampler(self) -> Sampler:
        """With the step size that is used."""
        return self._at(self.factor)

    def saved(self, num_chains: int) -> dict[str, np.ndarray]:
        """What `load` needs, by name; nothing before the first check."""
        if self.lowest is None and self.factor == 1:
            return {}
        numbers = (self.factor, self.most, self.num_restarts)
        named = zip(_SAVED, numbers, strict=False)
        found = {name: np.full(num_chains, float(number)) for name, number in named}
        return found if self.lowest is None else found | {_LOWEST: self.lowest}

    def load(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from what `saved` gave."""
        found = {name: float(saved[name][0]) for name in _SAVED if name in saved}
        self.factor, self.most, restarts = (
            found.get(name, default)
            for name, default in zip(_SAVED, (1.0, 1.0, 0.0), strict=True)
        )
        self.num_restarts = int(restarts)
        self.lowest = saved.get(_LOWEST)

    def starts_again(self) -> AbstractState | None:
        """Where lost chains start once more, in smaller steps; `None` if no more."""
        if self.num_restarts == self.rule.num_restarts:
            return None
        self.num_restarts += 1
        # What was too long once is not taken again where the noise would allow it.
        self.factor = self.most = _RESTART * self.factor
        self.lowest = None
        return _slowed(self.first, self.sampler.kernel, self.factor)

    def is_lost(self, states: AbstractState) -> bool:
        r"""Whether a chain has climbed above where it started.

        At temperature T a chain climbs from a mode by T / 2 for each of its D entries,
        and a hot one by more; from elsewhere it descends. Lost is what has climbed by
        2 T D, and three standard errors of what some batches say of that.

        Args:
            states: of the chains.
        """
        climbed = self._energies(states) - self._energies(self.first)
        mean, error = _mean_and_error(climbed)
        return not bool(np.all(mean - 3 * error <= 2 * self.heat))

    def _descends(self, states: AbstractState) -> bool:
        """Whether chains are below all that was seen of them by T D / 4 each."""
        now = np.mean(self._energies(states), axis=0)
        lowest = self.lowest
        if lowest is None:
            lowest = np.mean(self._energies(self.first), axis=0)
        mean, error = _mean_and_error(lowest - now)
        self.lowest = now if mean > 0 else lowest
        return bool(mean - 3 * error > self.heat / 4)

    def _energies(self, states: AbstractState) -> np.ndarray:
        """Of each chain, by each of some batches: the same ones for all states."""
        key = jax.random.fold_in(self.given.keys[0], _ENERGY_STEP)
        found = _energies(self.given, states.position, jax.random.split(key, _BATCHES))
        return np.asarray(gathered(found, self.given.mesh), np.float64)

    def fitted(
        self, states: AbstractState, key: PRNGKeyArray, *, is_early: bool
    ) -> AbstractState:
        """The states with the step size that suits the noise at them.

        Args:
            states: of the chains.
            key: of the rows.
            is_early: leave it as it is while chains descend.
        """
        before = self.factor
        if is_early and self._descends(states):
            return states

        def ratio(factor):
            found = noise_ratios(self._at(factor), states, key=key)
            return float(np.max(found))

        now = ratio(before)
        if before == self.most and not now > self.rule.threshold:
            return states
        step = _factor_for(now, ratio(before / 2), self.rule.threshold)
        self.factor = min(self.most, before * step)
        return _slowed(states, self.sampler.kernel, self.factor / before)

    def _at(self, factor: float) -> Sampler:
        if factor == 1:
            return self.given
        kernel = _slower(self.given.kernel, factor)
        return dataclasses.replace(self.given, kernel=kernel)


def final(saved: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of what `StepControl.saved` gave what is of use after the warm-up."""
    factor, *others = _SAVED
    kept = {name: a for name, a in saved.items() if name not in (*others, _LOWEST)}
    if np.all(kept.get(factor, 1) == 1):
        kept.pop(factor, None)
    return kept


def _mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Over the last axis; of infinite energies NaN."""
    with np.errstate(invalid="ignore"):
        error = np.std(values, axis=-1, ddof=1) / math.sqrt(values.shape[-1])
        return np.asarray(np.mean(values, axis=-1)), np.asarray(error)


@eqx.filter_jit
def _energies(
    sampler: Sampler, positions: Params, keys: Key[Array, " batches"]
) -> Float[Array, "chains batches"]:
    """Batch by batch: a pass over all rows is what minibatch kernels avoid."""

    def of_chain(position):
        return jax.lax.map(
            lambda key: sampler.potential.estimate(position, key=key), keys
        )

    return jax.lax.map(of_chain, positions)


def _slower(kernel: Any, factor: float) -> Any:
    """The kernel with its step size times a factor, and the same part of a momentum.

    Its numbers are arrays, so that another factor compiles nothing.

    Args:
        kernel: of which `check_can_slow` has nothing to say.
        factor: at most 1.
    """
    changes = {"step_size": jnp.asarray(kernel.step_size * factor, float)}
    if hasattr(kernel, "friction"):
        # Rounded downwards: a step may take the whole of the momentum, and no more.
        friction = kernel.friction / factor * (1 - _ROUNDING)
        changes["friction"] = jnp.asarray(friction, float)
    return dataclasses.replace(kernel, **changes)


def _slowed(states: Any, kernel: AbstractKernel, factor: float) -> Any:
    """States of chains as a kernel of another step size has them.

    Args:
        states: of chains.
        kernel: with the new step size.
        factor: of that, to the one before.
    """
    scale = lambda a: a * jnp.asarray(factor, a.dtype)
    momentum = jax.tree.map(scale, states.momentum)
    # Not by name: a state of several chains is none of its own types.
    states = eqx.tree_at(lambda s: s.momentum, states, momentum)
    if isinstance(kernel, SGNHT):
        # A thermostat that was set to more noise moves too little in small steps.
        adapted = jnp.full_like(states.adapted, kernel.friction)
        states = eqx.tree_at(lambda s: s.adapted, states, adapted)
    return states


def _factor_for(ratio: float, halved: float, threshold: float) -> float:
    """What a step size must be multiplied by, from the ratio at it and at half of it.

    Args:
        ratio: of gradient noise to injected noise.
        halved: the same with half the step size.
        threshold: that is wanted.
    """
    if math.isinf(ratio):
        return _LEAST
    if not 0 < halved < ratio:  # nor NaN
        return 1.0
    power = math.log2(ratio / halved)
    return min(_MOST, max(_LEAST, (threshold / ratio) ** (1 / power)))


def how_hot(ratio: float) -> Sentence:
    """What gradient noise does to samples, in words."""
    return Sentence(
        "Gradient noise is up to {:.3g} times the injected noise after the warm-up: "
        "along that direction of the weights samples are up to {:.2g} times as wide as "
        "the posterior. {}, or raise {batch_size}.",
        ratio,
        math.sqrt(1 + ratio),
        Choice(
            "Lower the step size",
            "Give a longer {num_warmup}, or a smaller {step_size}",
        ),
    )


def calmer(kernel: Any) -> str:
    """What keeps the chains of a kernel from running away, in words.

    Args:
        kernel: of chains that left the finite numbers.
    """
    if not hasattr(kernel, "step_size"):
        return "raise the batch size, or begin nearer to a mode"
    more = ", or raise the friction" if hasattr(kernel, "friction") else ""
    return f"divide the step size by 10{more}"
