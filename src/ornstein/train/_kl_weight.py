r"""How much the KL counts in the loss: over the run, and over an epoch's batches.

With M batches an epoch, batch i = 1, ..., M counts the KL $M \pi_i$ times, where
$\sum_i \pi_i = 1$: the epoch's losses add up to that of the whole data set.
"""

import abc
import math

import equinox as eqx
import jax.numpy as jnp

from .._kinds import check_kind
from .._types import Array, Float, Int, RealScalar
from ._check import check_fraction


class AbstractKLSplit(eqx.Module):
    r"""The weights $\pi$ over an epoch's batches."""

    @abc.abstractmethod
    def factor(self, batch: Int[Array, ""], num_batches: int) -> RealScalar:
        r"""$M \pi_i$: 1 on average over an epoch.

        Args:
            batch: $i - 1$, from 0.
            num_batches: M.
        """


class UniformSplit(AbstractKLSplit):
    r"""$\pi_i = 1 / M$: every batch's loss is an unbiased estimate of the whole."""

    def factor(self, batch: Int[Array, ""], num_batches: int) -> float:
        """See `AbstractKLSplit`."""
        del batch, num_batches
        return 1.0


class GeometricSplit(AbstractKLSplit):
    r"""$\pi_i = 2^{-i} / (1 - 2^{-M})$: the prior first, the data later.

    The printed $2^{M - i} / (2^M - 1)$ is the same and overflows for M above 1,000. The
    first batch of an epoch counts the KL M / 2 times: with many batches, choose
    `clip_norm` with that in mind.

    References:
        Blundell et al. (2015), "Weight Uncertainty in Neural Networks", section 3.4.
    """

    def factor(self, batch: Int[Array, ""], num_batches: int) -> Float[Array, ""]:
        """See `AbstractKLSplit`."""
        total = -math.expm1(-num_batches * math.log(2.0))
        return num_batches / total * jnp.exp2(-(batch.astype(float) + 1.0))


_UNIFORM = UniformSplit()


class KLWeight(eqx.Module):
    r"""How much the KL counts: its weight, the warm-up to it, and who shares it.

    Attributes:
        weight: $\beta$ after the warm-up. The loss is the bound on the evidence at 1
            only.
        warmup: fraction of the steps over which $\beta$ rises from 0 in a straight
            line.
        split: how an epoch's batches share the KL of the weights: `UniformSplit()`, or
            `GeometricSplit()`, with which the recorded `loss` differs from batch to
            batch and only its mean over an epoch compares.
    """

    weight: float = 1.0
    warmup: float = 0.0
    split: AbstractKLSplit = _UNIFORM

    def __check_init__(self) -> None:
        remedy = "`UniformSplit()` or `GeometricSplit()`"
        check_kind("KLWeight.split", self.split, AbstractKLSplit, remedy)
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise ValueError(
                f"`KLWeight.weight` must be finite and not negative, got "
                f"{self.weight}: 1 is the evidence lower bound."
            )
        check_fraction("KLWeight.warmup", self.warmup)

    def at(self, step: Int[Array, ""], num_steps: int) -> Float[Array, ""]:
        r"""$\beta$ at a step of a run of known length."""
        num_rising = self.warmup * num_steps
        if num_rising < 1:
            return jnp.asarray(self.weight)
        return self.weight * jnp.minimum(step.astype(float) / num_rising, 1.0)

    def is_full(self, step: int, num_steps: int) -> bool:
        r"""Whether $\beta$ at a step is what it stays at: the warm-up is over."""
        num_rising = self.warmup * num_steps
        return num_rising < 1 or step >= num_rising
