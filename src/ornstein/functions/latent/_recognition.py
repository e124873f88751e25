r"""What a series says about its latent path: $q(z_0)$, and a context for the drift.

An encoder (recognition network) takes one series, with zeros where a value is missing.
"""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, Bool, Float, PRNGKeyArray, RealScalar
from ...nn import MLP, Linear, tanh
from .._softplus import softplus, softplus_inverse
from ._diffusion import check_scale


class AbstractContext(eqx.Module):
    """What the posterior's drift sees of the data, at any time."""

    @abc.abstractmethod
    def __call__(self, t: RealScalar) -> Float[Array, " context"]:
        """Evaluate at time t."""


class StaticContext(AbstractContext):
    """The same at all times.

    Attributes:
        value: it.
    """

    value: Float[Array, " context"]

    def __call__(self, t: RealScalar) -> Float[Array, " context"]:
        """Evaluate at time t."""
        del t
        return self.value


class NextContext(AbstractContext):
    """At time t, what is known at the next time of the series, and how far it is.

    A path that has passed an observation has nothing more to learn from it: what
    remains is summarised at the next.

    Attributes:
        ts: the times of the series.
        values: a context at each of them.
        observed: the time of the next observation at or after each of them.
    """

    ts: Float[Array, " times"]
    values: Float[Array, "times size"]
    observed: Float[Array, " times"]

    def __call__(self, t: RealScalar) -> Float[Array, " size_and_one"]:
        """The context at the first time after t, and the wait until its observation."""
        position = jnp.sum(self.ts <= t)
        position = jnp.minimum(position, self.ts.shape[0] - 1)
        wait = self.observed[position] - t
        return jnp.concatenate([self.values[position], wait[None]])


class Recognised(eqx.Module):
    """What an encoder makes of one series.

    Attributes:
        mean: of q(z₀); `None` where q(z₀) is p(z₀).
        scale: its standard deviations, or `None`.
        context: for the posterior's drift.
    """

    mean: Float[Array, " latent"] | None
    scale: Float[Array, " latent"] | None
    context: AbstractContext


class AbstractRecognition(eqx.Module):
    """From one series to q(z₀) and a context.

    Attributes:
        latent_size: dimensions of z.
        context_size: numbers that the posterior's drift is given.
    """

    latent_size: eqx.AbstractVar[int]
    context_size: eqx.AbstractVar[int]

    @abc.abstractmethod
    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        """Encode one series.

        Args:
            ts: its times.
            values: what was observed, zero elsewhere.
            mask: where something was observed.
        """


class GRURecognition(AbstractRecognition):
    """A gated recurrent network that reads the series backwards.

    At each time it has read that observation and all later ones, which is what the
    exact posterior's drift before it depends on. It sees values, mask, and the time to
    the observation read before; a time without any observation passes unread.

    Args:
        num_features: of the series.
        latent_size: of z.
        hidden_size: of the recurrent network.
        context_size: numbers of context; the wait until the next observation is one
            more.
        start_scale: standard deviation of q(z₀) at first, about.
        key: randomness of the weights.

    References:
        Rubanova, Chen & Duvenaud (2019), "Latent ODEs for Irregularly-Sampled Time
        Series"; Li, Wong, Chen & Duvenaud (2020), "Scalable Gradients for Stochastic
        Differential Equations".
    """

    cell: eqx.nn.GRUCell
    to_start: Linear
    to_context: Linear
    latent_size: int = eqx.field(static=True)
    context_size: int = eqx.field(static=True)
    start_scale: float = eqx.field(static=True)

    def __init__(
        self,
        num_features: int,
        latent_size: int,
        *,
        hidden_size: int = 64,
        context_size: int = 16,
        start_scale: float = 0.1,
        key: PRNGKeyArray,
    ):
        check_scale("start_scale", start_scale)
        cell_key, start_key, context_key = jr.split(key, 3)
        self.cell = eqx.nn.GRUCell(2 * num_features + 1, hidden_size, key=cell_key)
        self.to_start = Linear(hidden_size, 2 * latent_size, key=start_key)
        self.to_context = Linear(hidden_size, context_size, key=context_key)
        self.latent_size, self.context_size = latent_size, context_size + 1
        self.start_scale = start_scale

    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        """See `AbstractRecognition`."""
        is_seen = jnp.any(mask, axis=-1)
        at_or_after = jax.lax.cummin(jnp.where(is_seen, ts, jnp.inf), reverse=True)
        after = jnp.append(at_or_after[1:], jnp.inf)
        gaps = jnp.where(jnp.isfinite(after), after - ts, 0)[:, None]
        inputs = jnp.concatenate([values, mask.astype(values.dtype), gaps], axis=-1)

        def read(hidden: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
            inputs, is_seen = at
            hidden = jnp.where(is_seen, self.cell(inputs, hidden), hidden)
            return hidden, hidden

        blank = jnp.zeros(self.cell.hidden_size, values.dtype)
        _, states = jax.lax.scan(read, blank, (inputs, is_seen), reverse=True)
        observed = jnp.where(jnp.isfinite(at_or_after), at_or_after, ts)
        context = NextContext(ts, self.to_context(states), observed)
        return Recognised(*_normal(self.to_start(states[0]), self.start_scale), context)


class FirstFrames(AbstractRecognition):
    """An MLP on the first few points alone: what comes later is to be predicted.

    A missing value counts as 0. The context is the same at all times.

    Args:
        num_frames: how many points it sees.
        num_features: of the series.
        latent_size: of z.
        width_sizes: of the hidden layers.
        context_size: numbers of context.
        activation: the nonlinearity.
        start_scale: standard deviation of q(z₀) at first, about.
        key: randomness of the weights.

    References:
        Yildiz, Heinonen & Lahdesmaki (2019), "ODE2VAE"; Li et al. (2020), section 7.3,
        for motion capture.
    """

    net: MLP
    num_frames: int = eqx.field(static=True)
    latent_size: int = eqx.field(static=True)
    context_size: int = eqx.field(static=True)
    start_scale: float = eqx.field(static=True)

    def __init__(
        self,
        num_frames: int,
        num_features: int,
        latent_size: int,
        *,
        width_sizes: Sequence[int] = (30,),
        context_size: int = 3,
        activation: Callable[[Array], Array] = tanh,
        start_scale: float = 0.1,
        key: PRNGKeyArray,
    ):
        check_scale("start_scale", start_scale)
        self.net = MLP(
            num_frames * num_features,
            2 * latent_size + context_size,
            width_sizes,
            activation=activation,
            key=key,
        )
        self.num_frames, self.start_scale = num_frames, start_scale
        self.latent_size, self.context_size = latent_size, context_size

    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        """See `AbstractRecognition`."""
        del mask
        if ts.shape[0] < self.num_frames:
            raise ValueError(
                f"`FirstFrames` reads {self.num_frames} points and got a series of "
                f"{ts.shape[0]}: give longer series, or fewer frames."
            )
        out = self.net(values[: self.num_frames].reshape(-1))
        start, context = jnp.split(out, [2 * self.latent_size])
        return Recognised(*_normal(start, self.start_scale), StaticContext(context))


class SplitRecognition(AbstractRecognition):
    """q(z₀) by one encoder, and the context by another.

    For series to be continued from their beginnings: with `FirstFrames` for the start,
    q(z₀) is the same in training and where no more is seen, and with `GRURecognition`
    for the context, the posterior's path follows what its start could not say. The
    prior's drift and noise learn from such paths how far a continuation may stray.

    Args:
        start: its q(z₀) is used, its context is not.
        context: the reverse.

    Raises:
        ValueError: if they disagree on the size of z.
    """

    start: AbstractRecognition
    context: AbstractRecognition
    latent_size: int = eqx.field(static=True)
    context_size: int = eqx.field(static=True)

    def __init__(self, start: AbstractRecognition, context: AbstractRecognition):
        if start.latent_size != context.latent_size:
            raise ValueError(
                f"`start` gives {start.latent_size} latent dimensions and `context` "
                f"{context.latent_size}: build both with one `latent_size`."
            )
        self.start, self.context = start, context
        self.latent_size, self.context_size = start.latent_size, context.context_size

    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        """See `AbstractRecognition`."""
        first = self.start(ts, values, mask)
        read = self.context(ts, values, mask)
        return Recognised(first.mean, first.scale, read.context)


class NoRecognition(AbstractRecognition):
    """No encoder: q(z₀) is a parameter, and the drift sees time and state alone.

    For a single series. Several rows of it are several draws of its path. What it
    learned begins at the first time of training and ends at the last observed one:
    predict from that first time on, with an observation, of any value, at that last.

    Args:
        latent_size: of z.
        mean: of q(z₀) at first.
        scale: its standard deviation at first.
    """

    mean: Float[Array, " latent"]
    rho: Float[Array, " latent"]
    latent_size: int = eqx.field(static=True)
    context_size: int = eqx.field(static=True, default=0)

    def __init__(self, latent_size: int, *, mean: float = 0.0, scale: float = 1.0):
        check_scale("scale", scale)
        dtype = jnp.result_type(float)
        self.mean = jnp.full(latent_size, mean, dtype)
        self.rho = jnp.full(latent_size, softplus_inverse(jnp.asarray(scale, dtype)))
        self.latent_size, self.context_size = latent_size, 0

    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        """See `AbstractRecognition`."""
        del ts, mask
        context = StaticContext(jnp.zeros(0, values.dtype))
        return Recognised(self.mean, softplus(self.rho), context)


def _normal(
    raw: Float[Array, " parameters"], start_scale: float
) -> tuple[Float[Array, " latent"], Float[Array, " latent"]]:
    """Mean and positive scale from a network's output."""
    mean, rho = jnp.split(raw, 2)
    offset = softplus_inverse(jnp.asarray(start_scale, rho.dtype))
    return mean, softplus(rho + offset)
