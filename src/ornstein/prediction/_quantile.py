"""Quantiles of an equal mixture of draws, and points that stand for it."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._types import Array, Float
from ..likelihood import AbstractLocationScaleLikelihood

# Doubling from one scale: enough for any quantile that float32 can name.
_MAX_DOUBLINGS = 64
_MAX_STEPS = 100
_GOLDEN = (math.sqrt(5) - 1) / 2


@eqx.filter_jit
def mixture_quantile(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    q: Float[Array, "..."],
) -> Float[Array, "rows *times outputs"]:
    r"""The $y$ with $\tfrac{1}{S} \sum_s F(y | \theta_s) = q$, by bracketing.

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

    low = widen(jnp.min(outputs, axis=0), -1)
    high = widen(jnp.max(outputs, axis=0), 1)
    return _root(lambda y: cdf(y) - q, low, high)


class _Bracket(NamedTuple):
    """Of `_root`: the root lies between `a` and `b`; `c` was given up last."""

    a: Array
    b: Array
    c: Array
    f_a: Array
    f_b: Array
    f_c: Array
    part: Array
    is_done: Array


def _root(
    f: Callable[[Array], Array], low: Float[Array, "..."], high: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Where `f` is 0, by Chandrupatla's method, to rounding error.

    Inverse quadratic interpolation where it can be trusted, and else halves: a dozen
    evaluations where bisection takes 25 to 50. An element that is done stays as it is,
    so that none depends on its neighbours.

    Source: Chandrupatla, "A new hybrid quadratic/bisection algorithm", 1997.
    """
    eps, tiny = jnp.finfo(low.dtype).eps, jnp.finfo(low.dtype).tiny

    def step(carry):
        number, old = carry
        a, b, f_a, f_b = old.a, old.b, old.f_a, old.f_b
        at = a + old.part * (b - a)
        f_at = f(at)
        is_same = jnp.sign(f_at) == jnp.sign(f_a)
        c, f_c = jnp.where(is_same, a, b), jnp.where(is_same, f_a, f_b)
        b, f_b = jnp.where(is_same, b, a), jnp.where(is_same, f_b, f_a)
        a, f_a = at, f_at
        near = jnp.where(jnp.abs(f_a) < jnp.abs(f_b), a, b)
        least = (2 * eps * jnp.abs(near) + tiny) / jnp.abs(b - a)
        xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
        is_smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        part = f_a / (f_b - f_a) * f_c / (f_b - f_c)
        part += (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        part = jnp.clip(jnp.where(is_smooth, part, 0.5), least, 1 - least)
        is_done = (f_a == 0) | ~(least < 0.5)
        new = _Bracket(a, b, c, f_a, f_b, f_c, part, is_done)
        keep = lambda was, is_: jnp.where(old.is_done, was, is_)
        return number + 1, jax.tree.map(keep, old, new)

    def goes_on(carry):
        number, bracket = carry
        return (number < _MAX_STEPS) & ~jnp.all(bracket.is_done)

    half, none = jnp.full_like(low, 0.5), jnp.zeros(low.shape, bool)
    f_low, f_high = f(low), f(high)
    start = _Bracket(low, high, high, f_low, f_high, f_high, half, none)
    _, end = lax.while_loop(goes_on, step, (0, start))
    return jnp.where(jnp.abs(end.f_a) < jnp.abs(end.f_b), end.a, end.b)


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
