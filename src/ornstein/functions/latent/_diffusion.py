"""The diffusion that a latent path's prior and posterior share: one number a dimension.

The path KL is finite only because it is the same under both.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, ArrayLike, Float, PRNGKeyArray, RealScalar
from ...nn import tanh
from ...sde import AbstractProcess, BrownianMotion, OrnsteinUhlenbeck


class AbstractDiffusion(eqx.Module):
    """The diagonal of the noise, positive.

    Attributes:
        is_learned: whether training moves it.
        depends_on_state: whether it depends on z. The solve is then Itô's, and only
            an Itô solver will do.
    """

    is_learned: eqx.AbstractVar[bool]
    depends_on_state: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)`."""


class ConstantDiffusion(AbstractDiffusion):
    """The same noise always: additive.

    Args:
        scale: one number, or one for each dimension; in units of z over the square
            root of time.
        is_learned: train its logarithm.
    """

    log_scale: Float[Array, "..."]
    is_learned: bool = eqx.field(static=True)
    depends_on_state: bool = eqx.field(static=True, default=False)

    def __init__(self, scale: ArrayLike, *, is_learned: bool = False):
        check_scale("scale", scale)
        self.log_scale = jnp.log(jnp.asarray(scale, jnp.result_type(float)))
        self.is_learned = is_learned

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """The scale, for each dimension."""
        del t
        return jnp.broadcast_to(jnp.exp(self.log_scale), z.shape).astype(z.dtype)


class ProcessDiffusion(AbstractDiffusion):
    """The diffusion of a named process, which training leaves as it is.

    Attributes:
        process: one other than `OrnsteinUhlenbeck` and `BrownianMotion` is taken to
            have a diffusion that depends on z.
    """

    process: AbstractProcess
    depends_on_state: bool = eqx.field(static=True)
    is_learned: bool = eqx.field(static=True, default=False)

    def __init__(self, process: AbstractProcess):
        self.process, self.is_learned = process, False
        is_additive = isinstance(process, OrnsteinUhlenbeck | BrownianMotion)
        self.depends_on_state = not is_additive

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)`."""
        return jnp.broadcast_to(self.process.diffusion(t, z), z.shape).astype(z.dtype)


class NetDiffusion(AbstractDiffusion):
    r"""$g_i(z_i) = s_0 + (s_1 - s_0)\,\mathrm{sigmoid}(\mathrm{net}_i(z_i))$, learned.

    A small network for each dimension, so that the noise is diagonal, as in the latent
    SDEs of Li et al. (2020); theirs has $s_0 = 0$, $s_1 = 1$. The bounds keep the noise
    from vanishing, where the path KL is infinite, and from exploding.

    Args:
        size: of z.
        width_size: hidden units of each network.
        bounds: $s_0$ and $s_1$, in units of z over the square root of time.
        activation: the nonlinearity.
        key: randomness of the weights.
    """

    read: Float[Array, "latent width"]
    read_bias: Float[Array, "latent width"]
    write: Float[Array, "latent width"]
    write_bias: Float[Array, " latent"]
    bounds: tuple[float, float] = eqx.field(static=True)
    activation: Callable[[Array], Array]
    is_learned: bool = eqx.field(static=True, default=True)
    depends_on_state: bool = eqx.field(static=True, default=True)

    def __init__(
        self,
        size: int,
        width_size: int = 16,
        *,
        bounds: tuple[float, float] = (1e-2, 1.0),
        activation: Callable[[Array], Array] = tanh,
        key: PRNGKeyArray,
    ):
        if not 0 < bounds[0] < bounds[1]:
            raise ValueError(
                f"`bounds` must be positive and increase, got {bounds}: give the least "
                "and the greatest noise, such as (0.01, 1.0)."
            )
        read_key, bias_key, write_key = jr.split(key, 3)
        shape = (size, width_size)
        self.read = jr.normal(read_key, shape)
        self.read_bias = jr.normal(bias_key, shape)
        self.write = jr.normal(write_key, shape) / np.sqrt(width_size).astype(float)
        self.write_bias = jnp.zeros(size)
        self.bounds, self.activation = bounds, activation

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Each dimension's network at its own coordinate."""
        del t
        hidden = self.activation(self.read * z[:, None] + self.read_bias)
        logits = jnp.sum(self.write * hidden, axis=-1) + self.write_bias
        low, high = self.bounds
        return low + (high - low) * jax.nn.sigmoid(logits)


def check_scale(name: str, scale: ArrayLike):
    """Refuse a scale that is not positive, or of more than one axis."""
    known = np.asarray(scale)
    if known.ndim > 1 or not np.all(np.isfinite(known) & (known > 0)):
        raise ValueError(
            f"`{name}` must be one positive number, or one for each latent dimension, "
            f"got {scale}."
        )
