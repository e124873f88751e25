"""Positive numbers as softplus(rho) of unconstrained ones."""

import jax.numpy as jnp

from .._types import Array, Float, RealScalar


def softplus_inverse(
    value: RealScalar | Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """`x` with `softplus(x) = value`, in a form that large values do not overflow."""
    return value + jnp.log(-jnp.expm1(-value))
