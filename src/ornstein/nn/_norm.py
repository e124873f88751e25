"""Normalisation of images, with statistics of the batch or of each image alone."""

import math

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from .._types import Array, Float
from ._chain import AbstractStateful, State
from ._layers import expand_like


class BatchNorm(AbstractStateful):
    r"""Batch normalisation over all axes but the channels.

    $y = \gamma (x - \mu) / \sqrt{v + \epsilon} + \beta$, where training takes the
    batch's mean $\mu$ and (biased) variance $v$ and inference the running ones. In
    training these move as PyTorch's do: $\bar\mu' = m \bar\mu + (1 - m) \mu$, and
    likewise the variance, with the unbiased one of the batch.

    The running statistics live in an `eqx.nn.State`, which `eqx.nn.State(network)`
    makes; their initial values (0 and 1) stay in `index.init`, the place of pretrained
    ones.

    Args:
        num_channels: the size of the last axis.
        momentum: m, the part of the old running value that is kept. PyTorch's
            `momentum` is 1 - m.
        eps: added to the variance.

    References:
        Ioffe & Szegedy (2015). Batch normalization: accelerating deep network training
        by reducing internal covariate shift. ICML.
    """

    scale: Float[Array, " channels"]
    offset: Float[Array, " channels"]
    index: eqx.nn.StateIndex
    inference: bool
    momentum: float
    eps: float = eqx.field(static=True)

    def __init__(self, num_channels: int, *, momentum: float = 0.9, eps: float = 1e-5):
        self.scale = jnp.ones(num_channels)
        self.offset = jnp.zeros(num_channels)
        self.index = eqx.nn.StateIndex(
            (jnp.zeros(num_channels), jnp.ones(num_channels))
        )
        self.inference = False
        self.momentum = momentum
        self.eps = eps

    def __check_init__(self):
        if not 0 <= self.momentum < 1:
            raise ValueError(
                f"`momentum` must be in [0, 1), got {self.momentum}: it is the part of "
                "the old running statistics that is kept."
            )

    def __call__(
        self, x: Float[Array, "*lead channels"], state: State
    ) -> tuple[Float[Array, "*lead channels"], State]:
        """Normalise, and renew the running statistics in training.

        Raises:
            ValueError: without a state, or in training with one number a channel.
        """
        if state is None:
            raise ValueError(
                "Batch normalisation got no state: call the network as `network(x, "
                "state)`, with `state = eqx.nn.State(network)` at the start."
            )
        if self.inference:
            mean, variance = state.get(self.index)
        else:
            mean, variance = _moments(x)
            state = state.set(self.index, self._renewed(state, x, mean, variance))
        # One multiplication and one addition an element.
        factor = self.scale * lax.rsqrt(variance + self.eps)
        shift = self.offset - mean * factor
        return x * expand_like(factor, x) + expand_like(shift, x), state

    def _renewed(
        self, state: eqx.nn.State, x: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array]:
        count = math.prod(x.shape[:-1])
        if count < 2:
            raise ValueError(
                f"Batch statistics need two numbers a channel, got an array of shape "
                f"{x.shape}: use a larger batch, or `eqx.nn.inference_mode(network)`."
            )
        unbiased = variance * (count / (count - 1))
        old_mean, old_variance = state.get(self.index)
        kept, new = self.momentum, 1 - self.momentum
        # The statistics are no path for gradients: nothing is trained through them.
        return (
            lax.stop_gradient(kept * old_mean + new * mean),
            lax.stop_gradient(kept * old_variance + new * unbiased),
        )


class FilterResponseNorm(eqx.Module):
    r"""Filter response normalisation: each channel of each image by itself.

    $y = \gamma x / \sqrt{\nu^2 + \epsilon + |\epsilon_l|} + \beta$, with $\nu^2$ the
    mean of x² over the channel's pixels: no batch statistics, no mean subtracted. Its
    authors pair it with `ThresholdedLinear`.

    Args:
        num_channels: the size of the last axis.
        eps: ε, fixed; the learned ε_l starts at 1e-4.

    References:
        Singh & Krishnan (2020). Filter response normalization layer. CVPR, eqs 1–3
        and section 3.2.
    """

    scale: Float[Array, " channels"]
    offset: Float[Array, " channels"]
    learned_eps: Float[Array, ""]
    eps: float = eqx.field(static=True)

    def __init__(self, num_channels: int, *, eps: float = 1e-6):
        self.scale = jnp.ones(num_channels)
        self.offset = jnp.zeros(num_channels)
        self.learned_eps = jnp.array(1e-4, float)
        self.eps = eps

    def __call__(
        self, x: Float[Array, "*lead height width channels"]
    ) -> Float[Array, "*lead height width channels"]:
        """Normalise images of any leading axes."""
        mean_square = jnp.mean(jnp.square(x), (-3, -2), keepdims=True)
        inverse = lax.rsqrt(mean_square + (self.eps + jnp.abs(self.learned_eps)))
        factor = expand_like(self.scale, x) * inverse
        return x * factor + expand_like(self.offset, x)


class ThresholdedLinear(eqx.Module):
    r"""max(x, τ) with a trainable τ for each channel, 0 at first.

    The companion of `FilterResponseNorm`, whose outputs have no mean of zero (Singh &
    Krishnan, 2020, section 3.1).

    Args:
        num_channels: the size of the last axis.
    """

    threshold: Float[Array, " channels"]

    def __init__(self, num_channels: int):
        self.threshold = jnp.zeros(num_channels)

    def __call__(
        self, x: Float[Array, "*lead channels"]
    ) -> Float[Array, "*lead channels"]:
        """Apply to an array of any leading axes."""
        return jnp.maximum(x, expand_like(self.threshold, x))


def _moments(x: Array) -> tuple[Array, Array]:
    # Two passes: the mean of squares less the squared mean cancels in single precision.
    axes = tuple(range(x.ndim - 1))
    mean = jnp.mean(x, axes)
    return mean, jnp.mean(jnp.square(x - expand_like(mean, x)), axes)
