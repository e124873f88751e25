r"""A network whose layers learn how wide their weights' prior is.

An MLP with one scale of the prior for all layers is sure of too little where classes
part cleanly, and of too much where a table is nearly linear. Here each layer has a
scale of its own among the parameters, and a linear map stands beside the hidden layers,
as in Neal (1996), "Bayesian Learning for Neural Networks", chapters 3 and 4. Every
parameter is a multiplier that is N(0, 1) a priori, scales by way of their logarithms:
sampled so, a layer's scale and its weights do not pinch each other.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, Float, PRNGKeyArray
from .._activations import tanh

_LINEAR_CENTRE = _READOUT_CENTRE = 1.0
"""Logarithms of scales in units of 1/sqrt(fan-in), at which their priors have their
medians; that of hidden layers is 0. The spread of each is 1."""
_BIAS_SCALE = 2.0
_READOUT_START = 0.3
"""Of readouts at first, in units of their prior."""


class HierarchicalMLP(eqx.Module):
    r"""An MLP beside a linear map, with the scale of each among its parameters.

    $f(x) = b + e^{s_A} A x + e^{s_R} R\, h_L$ and $h_l = \phi(e^{s_l} (W_l h_{l-1} +
    b_l))$, weights in units of 1/sqrt(fan-in). Give it `GaussianPrior(1.0)`.

    Args:
        in_size: features in.
        out_size: features out.
        width_sizes: of the hidden layers; none leaves the linear map.
        activation: the nonlinearity $\phi$.
        key: randomness of the weights.
    """

    log_scales: Float[Array, " groups"]
    weights: tuple[Float[Array, "fan_in fan_out"], ...]
    biases: tuple[Float[Array, " fan_out"], ...]
    linear: Float[Array, "in_size out_size"]
    bias: Float[Array, " out_size"]
    activation: Callable[[Array], Array]

    def __init__(
        self,
        in_size: int,
        out_size: int,
        width_sizes: Sequence[int],
        *,
        activation: Callable[[Array], Array] = tanh,
        key: PRNGKeyArray,
    ):
        sizes = [in_size, *width_sizes]
        shapes = [*itertools.pairwise(sizes)]
        hidden_key, bias_key, readout_key, linear_key = jr.split(key, 4)
        keys = jr.split(hidden_key, len(shapes) + 1)
        normals = [jr.normal(k, s) for k, s in zip(keys, shapes, strict=False)]
        if width_sizes:
            shape = (sizes[-1], out_size)
            normals.append(_READOUT_START * jr.normal(readout_key, shape))
        self.weights = tuple(normals)
        keys = jr.split(bias_key, len(shapes) + 1)
        self.biases = tuple(
            jr.normal(k, (size,)) for k, size in zip(keys, width_sizes, strict=False)
        )
        self.linear = _READOUT_START * jr.normal(linear_key, (in_size, out_size))
        self.bias = jnp.zeros(out_size)
        self.log_scales = jnp.zeros(len(self.weights) + 1)
        self.activation = activation

    def __call__(
        self, x: Float[Array, "*lead in_size"]
    ) -> Float[Array, "*lead out_size"]:
        """Apply to an array of any leading axes."""
        scales = jnp.exp(self.log_scales)
        output = _scaled(x, self.linear, math.exp(_LINEAR_CENTRE) * scales[0])
        output += jnp.broadcast_to(_BIAS_SCALE * self.bias, output.shape)
        if not self.weights:
            return output
        *hidden, readout = self.weights
        h = x
        for number, (weight, bias) in enumerate(zip(hidden, self.biases, strict=True)):
            scale = scales[number + 1]
            h = _scaled(h, weight, scale)
            h = self.activation(h + jnp.broadcast_to(scale * bias, h.shape))
        return output + _scaled(h, readout, math.exp(_READOUT_CENTRE) * scales[-1])


def _scaled(x: Array, weight: Array, scale: Float[Array, ""]) -> Array:
    """A product with weights of one scale, in units of 1/sqrt(fan-in)."""
    return x @ (weight * (scale / math.sqrt(weight.shape[0])))
