"""Drifts of a latent path: the prior's, and the posterior's, which sees the data."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray, RealScalar
from ...nn import MLP, tanh
from ...sde import AbstractProcess
from .._softplus import softplus, softplus_inverse
from ._diffusion import check_scale


class ProcessDrift(eqx.Module):
    """The drift of a named process, which training leaves as it is.

    Attributes:
        process: such as `OrnsteinUhlenbeck`.
    """

    process: AbstractProcess

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)`."""
        return self.process.drift(t, z)


class LinearDrift(eqx.Module):
    """dz/dt = A z + b, learned.

    Args:
        size: of z.
        rate: A starts at -rate times the identity, so that paths stay near 0.
    """

    matrix: Float[Array, "latent latent"]
    bias: Float[Array, " latent"]

    def __init__(self, size: int, *, rate: float = 1.0):
        self.matrix = -rate * jnp.eye(size)
        self.bias = jnp.zeros(size)

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)`."""
        del t
        return self.matrix @ z + self.bias


class NetDrift(eqx.Module):
    """A prior's drift by a network of z, and of t if it sees that.

    Args:
        size: of z.
        width_sizes: of the hidden layers.
        sees_time: whether the law of motion may change over time. One that doesn't
            also holds past the last time of the training data.
        activation: the nonlinearity.
        output_scale: multiplies the last layer's initial parameters. Paths of an
            unbounded activation grow exponentially at 1: over 30 units of time a
            softplus's reach 1e3 to 1e12.
        key: randomness of the weights.
    """

    net: MLP
    sees_time: bool = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        width_sizes: Sequence[int],
        *,
        sees_time: bool = False,
        activation: Callable[[Array], Array] = tanh,
        output_scale: float = 1.0,
        key: PRNGKeyArray,
    ):
        self.sees_time = sees_time
        self.net = MLP(
            size + int(sees_time),
            size,
            width_sizes,
            activation=activation,
            output_scale=output_scale,
            key=key,
        )

    def __call__(
        self, t: RealScalar, z: Float[Array, " latent"]
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)`."""
        return self.net(_joined(t, z) if self.sees_time else z)


class ContextDrift(eqx.Module):
    """A posterior's drift by a network of t, z and the context; zero at first.

    Args:
        size: of z.
        context_size: of the context.
        width_sizes: of the hidden layers.
        sees_time: whether it sees t itself. Its context may say when the next
            observation comes (`GRURecognition`'s does).
        activation: the nonlinearity.
        output_scale: multiplies the last layer's initial parameters.
        key: randomness of the weights.
    """

    net: MLP
    sees_time: bool = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        context_size: int,
        width_sizes: Sequence[int],
        *,
        sees_time: bool = True,
        activation: Callable[[Array], Array] = tanh,
        output_scale: float = 0.0,
        key: PRNGKeyArray,
    ):
        self.sees_time = sees_time
        self.net = MLP(
            size + context_size + int(sees_time),
            size,
            width_sizes,
            activation=activation,
            output_scale=output_scale,
            key=key,
        )

    def __call__(
        self,
        t: RealScalar,
        z: Float[Array, " latent"],
        context: Float[Array, " context"],
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)` with what is known of the data there."""
        inputs = jnp.concatenate([z, context])
        return self.net(_joined(t, inputs) if self.sees_time else inputs)


class BridgeDrift(eqx.Module):
    r"""A posterior's drift that pulls to the next observation, and a network's beside.

    $(m(c) - z) / (w + r(c)) + n(t, z, c, w)$, where w is the wait until that
    observation and c the rest of the context. With $n = 0$, m the value observed and r
    its variance over $g^2$ it is the exact one of a Brownian motion of diffusion g,
    which is what sharp observations make of any diffusion: a pull that grows as 1 / w,
    which a network of w learns slowly. Only for contexts that end in the wait, as that
    of `GRURecognition` does.

    Args:
        size: of z.
        context_size: of the context, the wait included.
        width_sizes: of the hidden layers of both networks.
        slack: r at first, in units of time.
        activation: the nonlinearity.
        key: randomness of the weights.
    """

    pull: MLP
    rest: ContextDrift
    slack: float = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        context_size: int,
        width_sizes: Sequence[int],
        *,
        slack: float,
        activation: Callable[[Array], Array] = tanh,
        key: PRNGKeyArray,
    ):
        check_scale("slack", slack)
        pull_key, rest_key = jr.split(key)
        self.pull = MLP(
            context_size - 1, 2 * size, width_sizes, activation=activation, key=pull_key
        )
        self.rest = ContextDrift(
            size, context_size, width_sizes, activation=activation, key=rest_key
        )
        self.slack = slack

    def __call__(
        self,
        t: RealScalar,
        z: Float[Array, " latent"],
        context: Float[Array, " context"],
    ) -> Float[Array, " latent"]:
        """Evaluate at `(t, z)` with what is known of the data there."""
        level, rho = jnp.split(self.pull(context[:-1]), 2)
        offset = softplus_inverse(jnp.asarray(self.slack, rho.dtype))
        pull = (level - z) / (context[-1] + softplus(rho + offset))
        return pull + self.rest(t, z, context)


def _joined(t: RealScalar, z: Float[Array, " size"]) -> Float[Array, " size_and_one"]:
    return jnp.concatenate([jnp.broadcast_to(t, (1,)).astype(z.dtype), z])
