r"""The share of targets in bands, and how far chance takes it.

Notation: a band of level $a$ for row $i$ of $n$ holds the target with probability
$c_{ki}$ if draw $k$ of the posterior is the truth; the mean of $c_{ki}$ over draws is
$a$. If the posterior is right, one draw is the truth for all rows, and the share of
targets that are held has the variance

    V = Var_k(mean_i c_ki) + mean_k sum_i c_ki (1 - c_ki) / n^2.

For a single draw, or where draws agree, V is the binomial a (1 - a) / n. Where they do
not, rows are held or missed together, and binomial errors would be false alarms. The
share is then far from normal, too, and its tail is the mean over draws of each one's.

A series has a path of its own, and no draw is the truth of two. Its $w_i$ values can be
held or missed together: V is at most a (1 - a) sum_i w_i^2 / (sum_i w_i)^2.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from .._types import Array, Float, PyTree, Shaped
from ..data import Series
from ..likelihood import AbstractLocationScaleLikelihood, of_one_value
from ..prediction import Prediction

_LEAST_VARIANCE = 1e-12


class Coverage(NamedTuple):
    """How many targets bands hold.

    Attributes:
        share: of the targets; of series, of all observed values.
        error: its standard error if the bands are right, the root of V.
        by_chance: how often right bands have a share as far out.
        num_targets: values that the share is of.
    """

    share: float
    error: float
    by_chance: float
    num_targets: int


def coverage_of(prediction: Prediction, y: PyTree[Array], level: float) -> Coverage:
    """Count the targets in the bands.

    Columns of a row may depend on each other: they tell no more than one.

    Args:
        prediction: of real targets, with its draws.
        y: the targets; a `Series` has some.
        level: probability of the bands.
    """
    if isinstance(y, Series):
        return _of_series(prediction, y, level)
    likelihood, outputs = prediction.likelihood, prediction.outputs
    assert isinstance(likelihood, AbstractLocationScaleLikelihood)
    assert isinstance(outputs, jax.Array)
    lower, upper = prediction.interval(level)
    inside = _is_inside(y, lower, upper)
    held = np.asarray(_held_by_draw(likelihood, outputs, lower, upper), np.float64)
    share, of_draws = float(np.mean(inside)), held.mean(axis=(1, 2))
    within = np.mean(held * (1 - held), axis=(1, 2)) / inside.shape[0]
    error = math.sqrt(np.var(of_draws) + within.mean())
    away = (share - of_draws) * np.sign(share - level)
    beyond = ndtr(-away / np.sqrt(np.maximum(within, _LEAST_VARIANCE)))
    return Coverage(share, error, float(beyond.mean()), inside.size)


def _of_series(prediction: Prediction, y: Series, level: float) -> Coverage:
    likelihood, mask = of_one_value(prediction.likelihood), np.asarray(y.mask)
    times = mask.any(axis=-1)  # others may be many
    outputs = jax.tree.map(lambda a: a[:, times], prediction.outputs)
    lower, upper = Prediction(outputs, likelihood).interval(level)
    inside = _is_inside(np.asarray(y.values)[times], lower, upper)[mask[times]]
    weights, share = mask.sum(axis=(1, 2)), float(np.mean(inside))
    spread = math.sqrt(level * (1 - level))
    error = spread * float(np.linalg.norm(weights)) / inside.size
    by_chance = float(ndtr(-abs(share - level) / error))
    return Coverage(share, error, by_chance, inside.size)


def _is_inside(
    y: Shaped[Array | np.ndarray, "..."],
    lower: Float[Array, "rows outputs"],
    upper: Float[Array, "rows outputs"],
) -> np.ndarray:
    columns = np.asarray(y, np.float64).reshape(lower.shape)
    return (np.asarray(lower) <= columns) & (columns <= np.asarray(upper))


@eqx.filter_jit
def _held_by_draw(
    likelihood: AbstractLocationScaleLikelihood,
    outputs: Float[Array, "draws rows outputs"],
    lower: Float[Array, "rows outputs"],
    upper: Float[Array, "rows outputs"],
) -> Float[Array, "draws rows outputs"]:
    cdf = likelihood.marginals(outputs).cdf
    at = lambda edge: jnp.asarray(cdf(jnp.broadcast_to(edge, outputs.shape)))
    return jax.nn.relu(at(upper) - at(lower))
