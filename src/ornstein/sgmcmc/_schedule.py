r"""Numbers that change from step to step: step sizes above all.

Wherever a minibatch kernel takes a number it takes a schedule too: an object that is
called with the number of steps done.
"""

import math
import numbers
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, Bool, Float, Int, RealScalar

Schedule: TypeAlias = RealScalar | Callable[[Int[Array, ""]], Float[Array, ""]]
"""A number, the same at every step, or a map from the steps done to a number."""


class Polynomial(eqx.Module):
    r"""$\varepsilon_t = a (b + t)^{-\gamma}$: its sum diverges, its squares' does not.

    So SGLD's gradient noise dies away and the chain still gets everywhere (Robbins &
    Monro 1951; Welling & Teh 2011; eq. 40 of Jospin et al. 2022).

    Args:
        a: the scale, positive.
        b: steps by which the fall is put off, positive.
        gamma: the rate of the fall, in (1/2, 1].

    Raises:
        ValueError: for numbers outside these ranges.
    """

    a: float
    b: float = 1.0
    gamma: float = 0.55

    def __check_init__(self) -> None:
        check_positive("Polynomial.a", self.a)
        check_positive("Polynomial.b", self.b)
        if not 0.5 < self.gamma <= 1:
            raise ValueError(
                f"`Polynomial.gamma` must be in (1/2, 1], got {self.gamma}: only there "
                "do the steps sum to infinity and their squares do not."
            )

    def __call__(self, step: Int[Array, "*steps"]) -> Float[Array, "*steps"]:
        """The number at a step."""
        return self.a * (self.b + jnp.asarray(step, float)) ** -self.gamma


class Cyclical(eqx.Module):
    r"""Cosines from the peak to 0, again and again: one cycle finds a mode or more.

    $\varepsilon_t = \frac{\varepsilon_0}{2} (1 + \cos(\pi r_t))$ with $r_t$ the part of
    the cycle that is over. While $r_t < \beta$ the chain explores; after it, samples
    are taken.

    Args:
        peak: $\varepsilon_0$, the first number of every cycle.
        cycle_length: steps of a cycle; a run of K steps in M cycles has ⌈K / M⌉.
        exploration: $\beta$, the part of a cycle without samples, in [0, 1).

    Raises:
        ValueError: for numbers outside these ranges.

    References:
        Zhang, Li, Zhang, Chen & Wilson (2020), Cyclical stochastic gradient MCMC for
        Bayesian deep learning, eq. (1) and algorithm 1.
    """

    peak: float
    cycle_length: int
    exploration: float = 0.8

    def __check_init__(self) -> None:
        check_positive("Cyclical.peak", self.peak)
        if self.cycle_length < 1:
            raise ValueError(
                f"`Cyclical.cycle_length` must be at least 1, got {self.cycle_length}: "
                "it counts the steps of one cycle."
            )
        if not 0 <= self.exploration < 1:
            raise ValueError(
                f"`Cyclical.exploration` must be in [0, 1), got {self.exploration}: "
                "it is the part of a cycle in which no samples are taken."
            )
        if self.num_exploring >= self.cycle_length:
            raise ValueError(
                f"A cycle of {self.cycle_length} steps is over before it has explored "
                f"{self.exploration} of itself, and no sample would ever be taken: "
                "give a longer `cycle_length`, or less `exploration`."
            )

    def __call__(self, step: Int[Array, "*steps"]) -> Float[Array, "*steps"]:
        """The number at a step."""
        # The same as (1 + cos π r) / 2, which rounds to 0 before a long cycle ends.
        return self.peak * jnp.cos(0.5 * jnp.pi * self._part(step)) ** 2

    def is_sampling(self, step: Int[Array, "*steps"]) -> Bool[Array, "*steps"]:
        """Whether the cycle is in the phase in which samples are taken."""
        return step % self.cycle_length >= self.num_exploring

    @property
    def num_exploring(self) -> int:
        """Of a cycle, the steps before those that sample.

        Whole steps: single precision may miss the first of them.
        """
        return math.ceil(self.exploration * self.cycle_length - 1e-9)

    def _part(self, step):
        return jnp.asarray(step % self.cycle_length, float) / self.cycle_length


class SamplingOnly(eqx.Module):
    """A number in the sampling phase of a cycle, 0 while the chain explores.

    As a kernel's `temperature` it makes exploration an optimiser: Zhang et al.'s own
    choice.

    Args:
        cycle: whose phases.
        value: in the sampling phase.
    """

    cycle: Cyclical
    value: float = 1.0

    def __call__(self, step: Int[Array, "*steps"]) -> Float[Array, "*steps"]:
        """The number at a step."""
        return jnp.where(self.cycle.is_sampling(step), self.value, 0.0)


def at(schedule: Schedule, step: Int[Array, ""]) -> RealScalar:
    """The number that a schedule gives at a step."""
    return schedule(step) if callable(schedule) else schedule


def is_sampling(schedule: Schedule, step: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether samples are taken at a step: always, but for `Cyclical`."""
    if isinstance(schedule, Cyclical):
        return schedule.is_sampling(step)
    return jnp.array(True)


def check_positive(name: str, value: Schedule) -> None:
    """Refuse a number that is not positive and finite; arrays are the caller's."""
    _check_schedule(name, value)
    if isinstance(value, numbers.Real) and not (
        math.isfinite(value) and float(value) > 0
    ):
        raise ValueError(f"`{name}` must be positive, got {value}.")


def check_not_negative(name: str, value: Schedule) -> None:
    """Refuse a number that is negative or not finite; arrays are the caller's."""
    _check_schedule(name, value)
    if isinstance(value, numbers.Real) and not (
        math.isfinite(value) and float(value) >= 0
    ):
        raise ValueError(f"`{name}` must not be negative, got {value}.")


def _check_schedule(name: str, value: object) -> None:
    if value is None or isinstance(value, str):
        raise TypeError(
            f"`{name}` must be a number, or a schedule of the step, got {value!r}: "
            f"write {name}=1e-4."
        )
