r"""The share of targets in bands, and how far chance takes it.

If the posterior is right, the truth of all rows is one more draw of it, which the bands
were made without: rows are held or missed together where draws differ, and a mixture of
few draws is too narrow for another one. Both are in the law of simulated data sets,
each of whose truths is a draw $k$ of the S, held against the mixture of all others,

    F_-k = (S F - F_k) / (S - 1).

The share then lies between 0 and 1, has the mean and variance of these, and a long tail
on the side where there is room: that of the beta distribution which has both, or of
independent rows (the exact binomial tail, which few rows ask for) if it is more. Draws
that helped to make the bands would be held too often, and all alike.

A series has a path of its own, and no draw is the truth of two. Its $w_i$ values can be
held or missed together: the variance is at most
a (1 - a) sum_i w_i^2 / (sum_i w_i)^2.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import bdtr, bdtrc, betainc, betaincc, ndtr

from .._tree import in_single
from .._types import Array, Float, Int, PRNGKeyArray, Shaped
from ..data import Series
from ..likelihood import AbstractLocationScaleLikelihood, of_one_value
from ..prediction import Prediction

_NUM_SIMULATED = 128
"""Data sets, at least, and truths, at most: their variance is known to an eighth."""

_LEAST_VARIANCE = 1e-12


class Coverage(NamedTuple):
    """How many targets bands hold.

    Attributes:
        share: of the targets; of series, of all observed values.
        expected: its mean if the posterior is right: less than the level where bands
            are those of few draws.
        error: its standard error then.
        by_chance: how often it is then as far out.
        num_targets: values that the share is of.
    """

    share: float
    expected: float
    error: float
    by_chance: float
    num_targets: int


def coverages_of(
    prediction: Prediction, y: Array, levels: tuple[float, ...]
) -> list[Coverage]:
    """Count the targets in bands of several levels, for little more than one costs.

    Columns of a row may depend on each other: they tell no more than one.

    Args:
        prediction: of real targets that are no `Series`, with its draws.
        y: the targets.
        levels: probabilities of the bands.
    """
    num_rows, found = prediction.num_rows, []
    for level, law in zip(levels, _laws(prediction, levels), strict=True):
        inside = _is_inside(y, *prediction.interval(level))
        share, variance = float(np.mean(inside)), max(law.variance, _LEAST_VARIANCE)
        as_far = np.sign(share - law.mean) * (law.simulated - share) >= 0
        by_chance = max(
            float(np.mean(as_far)) if law.simulated.size else 0.0,
            _beta_tail(share, law.mean, variance, num_rows),
            _binomial_tail(share, law.mean, num_rows),
        )
        error = math.sqrt(variance)
        found.append(Coverage(share, law.mean, error, by_chance, inside.size))
    return found


def series_coverage(prediction: Prediction, y: Series, level: float) -> Coverage:
    """Count the observed values in bands.

    Args:
        prediction: of series, with its draws.
        y: their values, of which there are some.
        level: probability of the bands.
    """
    likelihood, mask = of_one_value(prediction.likelihood), np.asarray(y.mask)
    times = mask.any(axis=-1)  # others may be many
    outputs = jax.tree.map(lambda a: a[:, times], prediction.outputs)
    lower, upper = Prediction(outputs, likelihood).interval(level)
    inside = _is_inside(np.asarray(y.values)[times], lower, upper)[mask[times]]
    weights, share = mask.sum(axis=(1, 2)), float(np.mean(inside))
    spread = math.sqrt(level * (1 - level))
    error = spread * float(np.linalg.norm(weights)) / inside.size
    by_chance = float(ndtr(-abs(share - level) / error))
    return Coverage(share, level, error, by_chance, inside.size)


class _Law(NamedTuple):
    """Of a share if the posterior is right; `simulated` is empty of a single draw."""

    mean: float
    variance: float
    simulated: Float[np.ndarray, " sets"]


def _laws(prediction: Prediction, levels: tuple[float, ...]) -> list[_Law]:
    num_draws = len(jax.tree.leaves(prediction.outputs)[0])
    if num_draws == 1:  # of which rows are independent
        num_rows, none = prediction.num_rows, np.zeros(0)
        return [_Law(a, a * (1 - a) / num_rows, none) for a in levels]
    factor = num_draws / (num_draws - 1)
    return [
        _Law(float(shares.mean()), factor * float(shares.var()), shares)
        for shares in _simulated(prediction, levels)
    ]


def _simulated(
    prediction: Prediction, levels: tuple[float, ...]
) -> Float[np.ndarray, "levels sets"]:
    """Shares of data sets whose truth is a draw that the bands were made without."""
    likelihood, outputs = prediction.likelihood, in_single(prediction.outputs)
    assert isinstance(likelihood, AbstractLocationScaleLikelihood)
    assert isinstance(outputs, jax.Array)
    num_draws = len(outputs)
    num_truths = min(num_draws, _NUM_SIMULATED)
    truths = jnp.asarray(np.arange(num_truths) * num_draws // num_truths)
    keys = jax.random.split(jax.random.key(0), -(-_NUM_SIMULATED // num_truths))
    of = jnp.asarray(levels, outputs.dtype)
    shares = [_shares(likelihood, outputs, truths, of, key) for key in keys]
    return np.concatenate([np.asarray(a, np.float64) for a in shares]).T


@eqx.filter_jit
def _shares(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows outputs"],
    truths: Int[Array, " sets"],
    levels: Float[Array, " levels"],
    key: PRNGKeyArray,
) -> Float[Array, "sets levels"]:
    law = likelihood.marginals(outputs)

    def share(of: tuple[Int[Array, ""], Float[Array, "rows outputs"]]) -> Array:
        truth, y = of
        cdf = jnp.asarray(law.cdf(jnp.broadcast_to(y, outputs.shape)))
        without = (jnp.sum(cdf, axis=0) - cdf[truth]) / (len(outputs) - 1)
        off_centre = jnp.abs(without - 0.5)
        is_held = off_centre[None] <= levels.reshape(-1, 1, 1) / 2
        return jnp.mean(is_held, axis=(1, 2))

    targets = jnp.asarray(law.sample(key))[truths]
    return jax.lax.map(share, (truths, targets))


def _beta_tail(share: float, mean: float, variance: float, num_rows: int) -> float:
    """How often a share of this mean and variance is as far out, to half a row."""
    half = 0.5 / num_rows
    mean = min(max(mean, half), 1 - half)
    count = max(mean * (1 - mean) / variance - 1, _LEAST_VARIANCE)
    a, b = mean * count, (1 - mean) * count
    if share < mean:
        return float(betainc(a, b, min(share + half, 1.0)))
    return float(betaincc(a, b, max(share - half, 0.0)))


def _binomial_tail(share: float, mean: float, rows: int) -> float:
    """How often so few of independent rows are held, or so many."""
    held = share * rows  # whole, of one column
    held = round(held) if math.isclose(held, round(held), abs_tol=1e-6) else held
    if share < mean:
        return float(bdtr(math.floor(held), rows, mean))
    return float(bdtrc(math.ceil(held) - 1, rows, mean))


def _is_inside(
    y: Shaped[Array | np.ndarray, "..."],
    lower: Float[Array, "rows outputs"],
    upper: Float[Array, "rows outputs"],
) -> np.ndarray:
    columns = np.asarray(y, np.float64).reshape(lower.shape)
    return (np.asarray(lower) <= columns) & (columns <= np.asarray(upper))
