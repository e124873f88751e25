"""Quantiles of an equal mixture of draws, and points that stand for it."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._types import Array, Float, Int
from ..likelihood import AbstractLocationScaleLikelihood

_MAX_STEPS = 100
_BLOCK_ROWS = 1024
"""Whose draws a processor's cache holds; each block ends with its own slowest row."""
_GOLDEN = (math.sqrt(5) - 1) / 2


def least_level(dtype: jnp.dtype) -> float:
    """The least level, and the greatest's distance from 1, that is no rounding error.

    Distribution functions near 1 are off by half an `eps`, an eighth of this. Of fewer
    digits than single precision has, they are worked out in that.

    Args:
        dtype: of the draws' outputs.
    """
    return 4 * float(min(jnp.finfo(dtype).eps, jnp.finfo(jnp.float32).eps))


@eqx.filter_jit
def mixture_quantile(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    q: Float[Array, "..."],
) -> Float[Array, "rows *times outputs"]:
    r"""The $y$ with $\tfrac{1}{S} \sum_s F(y | \theta_s) = q$, by bracketing.

    It exists for every likelihood with a distribution function, whatever its moments.
    It lies between the least and the largest of the draws' own quantiles, which are
    those of the standard form, moved and scaled: the bracket is as narrow as draws
    agree. `q` is one level, or one for each row and output.
    """
    shape = outputs.shape[1:]
    q = q if q.ndim else q.reshape((1,) * len(shape))
    zero = jnp.zeros((1, *q.shape), outputs.dtype)
    standard = _root_between(_standard(likelihood, q.dtype), zero, q, zero)
    num_rows = shape[0]
    if not isinstance(num_rows, int) or num_rows <= _BLOCK_ROWS:
        return _root_between(likelihood, outputs, q, standard[None])
    whole = (jnp.broadcast_to(q, shape), jnp.broadcast_to(standard, shape)[None])

    def block(start: Int[Array, ""]) -> Float[Array, "rows *times outputs"]:
        rows = lambda a, axis: lax.dynamic_slice_in_dim(a, start, _BLOCK_ROWS, axis)
        return _root_between(
            likelihood, rows(outputs, 1), rows(whole[0], 0), rows(whole[1], 1)
        )

    starts = np.arange(0, num_rows, _BLOCK_ROWS)
    last = num_rows - _BLOCK_ROWS  # which begins among rows of the block before
    found = lax.map(block, jnp.asarray(np.minimum(starts, last)))
    first = found[:-1].reshape(-1, *shape[1:])
    return jnp.concatenate([first, found[-1, starts[-1] - last :]])


def _standard(
    likelihood: AbstractLocationScaleLikelihood, dtype: jnp.dtype
) -> AbstractLocationScaleLikelihood:
    """The same family with scale 1."""
    return eqx.tree_at(lambda it: it.log_scale, likelihood, jnp.zeros((), dtype))


def _root_between(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows *times outputs"],
    q: Float[Array, "..."],
    standard: Float[Array, "1 ..."],
) -> Float[Array, "rows *times outputs"]:
    """Where the mixture's distribution function is `q`.

    Args:
        likelihood: of real targets.
        outputs: the draws' locations.
        q: levels.
        standard: quantiles of them of the standard form, or a guess.
    """
    # A sampled scale is each draw's own: (draws, 1, outputs or 1).
    scale = jnp.broadcast_to(likelihood.scale.astype(outputs.dtype), outputs.shape)
    own, scale = outputs + scale * standard, jnp.max(scale, axis=0)
    lowest, highest, info = own.min(axis=0), own.max(axis=0), jnp.finfo(own.dtype)
    # From the root of `eps` to nearly that of the greatest number: beyond, squares or
    # their inverses are rounded to infinity or 0, and tails end.
    most_doublings = (int(info.maxexp) + int(info.nmant)) // 2 - 4

    def from_level(y):
        y = jnp.broadcast_to(y, outputs.shape)
        return jnp.mean(likelihood.marginals(outputs).cdf(y), axis=0) - q

    def widen(edge, sign):
        """From an outermost quantile, outwards until `edge` has passed the root."""

        def is_inside(carry):
            step, _, f = carry
            return (step < most_doublings) & jnp.any(sign * f < 0)

        def double(carry):
            step, width, f = carry
            width = jnp.where(sign * f < 0, 2 * width, width)
            return step + 1, width, from_level(edge + sign * width)

        width = math.sqrt(info.eps) * scale
        start = (0, width, from_level(edge + sign * width))
        _, width, f = lax.while_loop(is_inside, double, start)
        return edge + sign * width, f

    low, high = widen(lowest, -1), widen(highest, 1)
    root = _root(from_level, low, high, scale)
    # What is too far for these numbers, be it for draws alone, is infinitely far.
    root = jnp.where(low[1] > 0, -jnp.inf, jnp.where(high[1] < 0, jnp.inf, root))
    return jnp.where(jnp.isinf(lowest), lowest, root)


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
    f: Callable[[Array], Array],
    low: tuple[Float[Array, "..."], Float[Array, "..."]],
    high: tuple[Float[Array, "..."], Float[Array, "..."]],
    scale: Float[Array, "..."],
) -> Float[Array, "..."]:
    """Where `f` is 0, by Chandrupatla's method, to rounding error.

    Inverse quadratic interpolation where it can be trusted, and else halves: a few
    evaluations where bisection takes 25 to 50. An element that is done stays as it is,
    so that none depends on its neighbours.

    Args:
        f: rises.
        low: where it is not above 0, and what it is there.
        high: where it is not below 0, and what it is there.
        scale: over which it rises; what is far below it is rounding error.

    Source: Chandrupatla, "A new hybrid quadratic/bisection algorithm", 1997.
    """
    eps = jnp.finfo(scale.dtype).eps

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
        least = 2 * eps * (jnp.abs(near) + scale) / jnp.abs(b - a)
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

    half, none = jnp.full_like(low[0], 0.5), jnp.zeros(low[0].shape, bool)
    start = _Bracket(low[0], high[0], high[0], low[1], high[1], high[1], half, none)
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
    q = jnp.asarray(levels.reshape(-1, 1), dtype)
    zero = jnp.zeros((1, *q.shape), dtype)
    quantiles = _root_between(_standard(likelihood, dtype), zero, q, zero)
    quantiles = quantiles.reshape(each, num_draws, *(1,) * (outputs.ndim - 1))
    scale = jnp.broadcast_to(likelihood.scale.astype(dtype), outputs.shape)
    points = outputs[None] + scale[None] * quantiles
    return points.reshape(each * num_draws, *outputs.shape[1:])
