"""Quantiles of an equal mixture of draws."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .._types import Array, Float
from ..likelihood import AbstractLocationScaleLikelihood

# Doubling from one scale: enough for any quantile that float32 can name.
_MAX_DOUBLINGS = 64
# The bracket shrinks to rounding error even where it began at 10^7 scales.
_NUM_BISECTIONS = 50


@eqx.filter_jit
def mixture_quantile(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    q: Float[Array, ""],
) -> Float[Array, "rows *times outputs"]:
    r"""The $y$ with $\tfrac{1}{S} \sum_s F(y | \theta_s) = q$, by bisection.

    It exists for every likelihood with a distribution function, whatever its moments.
    """

    def cdf(y):
        y = jnp.broadcast_to(y, outputs.shape)
        return jnp.mean(likelihood.marginals(outputs).cdf(y), axis=0)

    def widen(edge, sign):
        """From the outermost location, outwards until `edge` has passed the root."""
        scale = likelihood.scale.astype(edge.dtype)
        # A sampled scale is each draw's own: (draws, 1, outputs or 1).
        scale = jnp.max(jnp.broadcast_to(scale, outputs.shape), axis=0)

        def is_inside(carry):
            step, _, inside = carry
            return (step < _MAX_DOUBLINGS) & jnp.any(inside)

        def double(carry):
            step, width, inside = carry
            width = jnp.where(inside, 2 * width, width)
            return step + 1, width, sign * (cdf(edge + sign * width) - q) < 0

        inside = sign * (cdf(edge + sign * scale) - q) < 0
        _, width, _ = lax.while_loop(is_inside, double, (0, scale, inside))
        return edge + sign * width

    def halve(_, bracket):
        low, high = bracket
        middle = low + (high - low) / 2
        is_below = cdf(middle) < q
        return jnp.where(is_below, middle, low), jnp.where(is_below, high, middle)

    low = widen(jnp.min(outputs, axis=0), -1)
    high = widen(jnp.max(outputs, axis=0), 1)
    low, high = jax.lax.fori_loop(0, _NUM_BISECTIONS, halve, (low, high))
    return low + (high - low) / 2
