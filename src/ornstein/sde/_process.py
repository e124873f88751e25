"""Prior processes: diffusions with a name, usable as drift, diffusion and prior."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._types import Array, Float, PyTree, RealScalar


class AbstractProcess(eqx.Module):
    """A diffusion dy = drift dt + diffusion dB with diagonal noise.

    A user's own process is a subclass, or any pair of callables for `sdeint`.
    """

    @abc.abstractmethod
    def drift(self, t: RealScalar, y: PyTree[Array], args: Any = None) -> PyTree[Array]:
        """The drift at `(t, y)`."""

    @abc.abstractmethod
    def diffusion(
        self, t: RealScalar, y: PyTree[Array], args: Any = None
    ) -> PyTree[Array]:
        """The diffusion at `(t, y)`: one number for each entry of `y`."""


def over_leaves(value: PyTree, y: PyTree[Array]) -> PyTree[Array]:
    """`value`, a number or a tree prefix of `y`, in the structure of `y`."""
    return jax.tree.map(
        lambda v, sub: jax.tree.map(lambda leaf: jnp.asarray(v, leaf.dtype), sub),
        value,
        y,
    )


class OrnsteinUhlenbeck(AbstractProcess):
    r"""$dy = \theta (\mu - y) dt + \sigma dB$.

    Uhlenbeck and Ornstein (1930). Stationary law $N(\mu, \sigma^2 / 2\theta)$.

    Attributes:
        rate: $\theta \ge 0$, per unit of time.
        mean: $\mu$.
        scale: $\sigma > 0$. Each is a number, or a tree (prefix) of the state's.
    """

    rate: PyTree = 1.0
    mean: PyTree = 0.0
    scale: PyTree = 1.0

    def __check_init__(self):
        _check_positive("scale", self.scale, strictly=True)
        _check_positive("rate", self.rate, strictly=False)

    def drift(self, t: RealScalar, y: PyTree[Array], args: Any = None) -> PyTree[Array]:
        r"""$\theta (\mu - y)$."""
        del t, args
        rate, mean = over_leaves(self.rate, y), over_leaves(self.mean, y)
        return jax.tree.map(lambda r, m, v: r * (m - v), rate, mean, y)

    def diffusion(
        self, t: RealScalar, y: PyTree[Array], args: Any = None
    ) -> PyTree[Array]:
        r"""$\sigma$."""
        del t, args
        return over_leaves(self.scale, y)

    def transition(
        self, t: RealScalar, y0: Float[Array, "*shape"]
    ) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
        r"""Exact mean and variance at `t` of a path that starts at `y0`.

        $\mu + e^{-\theta t} (y_0 - \mu)$ and $\sigma^2 (1 - e^{-2\theta t}) / 2\theta$.
        """
        rate, mean, scale = (
            jnp.broadcast_to(jnp.asarray(v, y0.dtype), y0.shape)
            for v in (self.rate, self.mean, self.scale)
        )
        decay = jnp.exp(-rate * t)
        safe = jnp.where(rate == 0, 1.0, rate)
        spread = jnp.where(rate == 0, t, -jnp.expm1(-2 * safe * t) / (2 * safe))
        return mean + decay * (y0 - mean), scale**2 * spread


class BrownianMotion(AbstractProcess):
    r"""$dy = \sigma dB$.

    Attributes:
        scale: $\sigma > 0$, a number or a tree (prefix) of the state's.
    """

    scale: PyTree = 1.0

    def __check_init__(self):
        _check_positive("scale", self.scale, strictly=True)

    def drift(self, t: RealScalar, y: PyTree[Array], args: Any = None) -> PyTree[Array]:
        """Zero."""
        del t, args
        return jax.tree.map(jnp.zeros_like, y)

    def diffusion(
        self, t: RealScalar, y: PyTree[Array], args: Any = None
    ) -> PyTree[Array]:
        r"""$\sigma$."""
        del t, args
        return over_leaves(self.scale, y)


def _check_positive(name: str, value: PyTree, *, strictly: bool) -> None:
    for leaf in jax.tree.leaves(value):
        if isinstance(leaf, Tracer) or not eqx.is_array_like(leaf):
            continue
        known = np.asarray(leaf)
        if np.any(known < 0) or (strictly and np.any(known == 0)):
            wanted = "positive" if strictly else "at least 0"
            raise ValueError(f"`{name}` must be {wanted}, got {leaf}.")
