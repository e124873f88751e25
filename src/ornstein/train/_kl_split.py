r"""How an epoch's batches share the KL of the weights.

With M batches an epoch, batch i = 1, ..., M counts the KL $M \pi_i$ times, where
$\sum_i \pi_i = 1$: the epoch's losses add up to that of the whole data set.
"""

import abc
import math

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, Float, Int, RealScalar


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
