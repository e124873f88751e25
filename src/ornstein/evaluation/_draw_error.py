r"""How far draws alone move a difference of NLL: a jackknife over draws.

A predictive density is a mean over draws, $\hat p_i = \frac{1}{S} \sum_s p(y_i | f_s)$,
and its logarithm another one for other draws, which no error over rows sees: all rows
have met the same. Leave blocks of draws out one by one, on both sides at once, and let
$d_b$ be the mean difference over rows without block b of B. Then

$$\mathrm{se}^2 = \frac{B - 1}{B} \sum_b (d_b - \bar d)^2.$$

Leaving the same draws out on both sides serves sides that share their noise, of whose
difference most goes away, and sides that do not.

The logarithm of a mean over few draws is too low, by about $\mathrm{Var}(p) / 2 S p^2$:
the wider a side's draws, the worse it looks. With d of all draws, the jackknife's
estimate of that is $(B - 1)(\bar d - d)$.

References:
    Quenouille (1956), "Notes on Bias in Estimation"; Efron & Stein (1981), "The
    Jackknife Estimate of Variance". Where a single draw
    carries a row, the delta method's error is too small by factors (it saturates at 1
    nat); what remains without that draw is not.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from .._types import Float, Int, PyTree
from ..data import Series
from ..functions import AbstractRandomFunction
from ..likelihood import Targets, unit_log_prob
from ..prediction import Prediction

_MOST_BLOCKS = 32
"""More draws than these are left out several at a time: 31 degrees of freedom do."""

_LEAST_ROUNDS = 4


class DrawError(NamedTuple):
    """What a finite number of draws does to a difference of NLL, nats a row.

    Attributes:
        se: its standard error over draws; infinite where a single block is all.
        bias: how far it is off in the mean; 0 where that is not known.
    """

    se: float
    bias: float


def draw_blocks(
    model: AbstractRandomFunction, num_draws: int
) -> list[Int[np.ndarray, " draws"]]:
    """Which draws may be left out together, as independent of the others.

    Draws of samples repeat where there are fewer samples, and samples of a chain
    depend on each other: each sample by itself is one answer, and each block of
    samples that its family knows of another. Draws of strata (members, components) go
    round: a whole round is like any other. All else draws independently.

    Args:
        model: a random function.
        num_draws: of it.

    Returns:
        Block numbers of the draws, once for each answer.
    """
    posterior, draws = model.posterior_parts(), np.arange(num_draws)
    if posterior.dependent_draws is not None:
        return [draws % model.num_strata, posterior.dependent_draws(num_draws)]
    if num_draws // model.num_strata >= _LEAST_ROUNDS:
        draws = draws // model.num_strata
    return [draws]


def draw_error(
    prediction: Prediction,
    other: Prediction,
    y: PyTree[Targets],
    blocks: Iterable[Int[np.ndarray, " draws"]],
) -> DrawError:
    """Error and bias over draws of `nll_gain`, nats a row (or value of series).

    Args:
        prediction: of the rows.
        other: of the same rows, by as many draws.
        y: their targets.
        blocks: which draws are left out together; the largest error counts.
    """
    sides = [_unit_log_prob(side, y) for side in (prediction, other)]
    num_units = sides[0][0].size
    if isinstance(y, Series):
        num_units = int(np.sum(np.asarray(y.mask)))
    return max(_jackknife(sides, numbers, num_units) for numbers in blocks)  # by error


def _unit_log_prob(
    prediction: Prediction, y: PyTree[Targets]
) -> Float[np.ndarray, "draws units"]:
    """Log densities of each draw; 0 for all of them where nothing was observed."""
    log_probs = jax.jit(unit_log_prob)(prediction.likelihood, prediction.outputs, y)
    flat = np.asarray(log_probs, np.float64)
    return flat.reshape(flat.shape[0], -1)


def _jackknife(
    sides: list[Float[np.ndarray, "draws units"]],
    numbers: Int[np.ndarray, " draws"],
    num_units: int,
) -> DrawError:
    blocks = np.unique(numbers, return_inverse=True)[1] % _MOST_BLOCKS
    num_blocks = int(blocks.max()) + 1
    if num_blocks < 2:
        return DrawError(math.inf, 0.0)

    def total(log_probs: Float[np.ndarray, "draws units"]) -> float:
        return float(np.sum(np.logaddexp.reduce(log_probs) - math.log(len(log_probs))))

    without = [blocks != block for block in range(num_blocks)]
    with np.errstate(invalid="ignore"):  # densities of 0 on both sides
        left = np.array([total(sides[0][w]) - total(sides[1][w]) for w in without])
        squares = np.sum((left - left.mean()) ** 2)
        bias = left.mean() - (total(sides[0]) - total(sides[1]))
    error = math.sqrt((num_blocks - 1) / num_blocks * squares) / num_units
    if not math.isfinite(error):
        return DrawError(math.inf, 0.0)
    return DrawError(error, float((num_blocks - 1) * bias / num_units))
