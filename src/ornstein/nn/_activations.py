"""Nonlinearities, by name for the command line."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float


@jax.custom_jvp
def tanh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The hyperbolic tangent, of which differentiation keeps the value only.

    JAX's own also stores `1 - y`, a second copy of every hidden unit: in an SDE-BNN on
    images almost half of the memory, and a tenth of the time.
    """
    return jnp.tanh(x)


@tanh.defjvp
def _tanh_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    y = tanh(x)
    return y, dx - y * (y * dx)


def rbf(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """A bump: exp(-x²)."""
    return jnp.exp(-jnp.square(x))


class Swish(eqx.Module):
    """x σ(β x) with a trainable β = softplus(ρ) (Ramachandran et al., 2017).

    One β for the layer, which starts at softplus(0.5) as in the SDE-BNN's reference
    code.

    Attributes:
        rho: ρ, unconstrained.
    """

    rho: Float[Array, ""]

    def __init__(self, *, rho: float = 0.5):
        self.rho = jnp.array(rho, float)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Apply to every number."""
        return x * jax.nn.sigmoid(jax.nn.softplus(self.rho) * x)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "elu": jax.nn.elu,
    "mish": jax.nn.mish,
    "rbf": rbf,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "tanh": tanh,
}
"""The nonlinearities without parameters."""


def activation_from_name(name: str) -> Callable[[Array], Array]:
    """One of `ACTIVATIONS`, or a new trainable `Swish` for `"swish"`.

    Raises:
        ValueError: for another name.
    """
    if name == "swish":
        return Swish()
    if name not in ACTIVATIONS:
        names = ", ".join(sorted([*ACTIVATIONS, "swish"]))
        raise ValueError(f"There is no activation {name!r}: choose one of {names}.")
    return ACTIVATIONS[name]
