"""Quantiles of an equal mixture of draws, and points that stand for it."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._types import Array, Float
from ..likelihood import AbstractLocationScaleLikelihood

# Doubling from one scale: enough for any quantile that float32 can name.
_MAX_DOUBLINGS = 64
# The bracket shrinks to rounding error even where it began at 10^7 scales.
_NUM_BISECTIONS = 50
_GOLDEN = (math.sqrt(5) - 1) / 2


@eqx.filter_jit
def mixture_quantile(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    q: Float[Array, "..."],
) -> Float[Array, "rows *times outputs"]:
    r"""The $y$ with $\tfrac{1}{S} \sum_s F(y | \theta_s) = q$, by bisection.

    It exists for every likelihood with a distribution function, whatever its moments.
    `q` is one level, or one for each row and output.
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


@eqx.filter_jit
def mixture_points(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    num_points: int,
) -> Float[Array, "points rows *times outputs"]:
    """Points that stand for the mixture in equal parts: quantiles of each draw.

    Each draw's levels are evenly spaced and begin elsewhere than another's, so that
    draws that agree give the quantiles of `num_points` levels and not a few of them
    over and over. No root is searched for in each row, as `mixture_quantile` does: a
    location-scale likelihood's quantiles are those of its standard form.

    Args:
        likelihood: of real targets.
        outputs: the draws' locations.
        num_points: at least as many points; a multiple of the number of draws.
    """
    num_draws, dtype = len(outputs), outputs.dtype
    each = -(-num_points // num_draws)
    starts = (np.arange(num_draws) * _GOLDEN + 0.5) % 1
    levels = (np.arange(each)[:, None] + starts) / each
    standard = eqx.tree_at(lambda it: it.log_scale, likelihood, jnp.zeros((), dtype))
    at_zero = jnp.zeros((1, levels.size, 1), dtype)
    quantiles = mixture_quantile(
        standard, at_zero, jnp.asarray(levels.reshape(-1, 1), dtype)
    )
    quantiles = quantiles.reshape(each, num_draws, *(1,) * (outputs.ndim - 1))
    scale = jnp.broadcast_to(likelihood.scale.astype(dtype), outputs.shape)
    points = outputs[None] + scale[None] * quantiles
    return points.reshape(each * num_draws, *outputs.shape[1:])
