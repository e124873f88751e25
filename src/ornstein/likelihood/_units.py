r"""What a negative log likelihood is a mean over: rows, or the values of series.

Of a path from $S$ draws, $\frac{1}{S} \sum_s p(y | z_s)$ is a sum of products over
hundreds of values, and so the density under the best draw: it ranks a constant above
the true law. Value by value it is an average that a few dozen draws know.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from ._base import AbstractLikelihood
from ._over_time import OverTime
from ._targets import Targets


class RowScores(NamedTuple):
    """Log predictive densities of the rows.

    Attributes:
        log_prob: of each row, nats: the sum of what its units have.
        num_units: how many those are: observed values of a series, else 1.
    """

    log_prob: Float[Array, " rows"]
    num_units: Float[Array, " rows"]


def unit_log_prob(
    likelihood: AbstractLikelihood, output: PyTree[Array], y: PyTree[Targets]
) -> Float[Array, "..."]:
    """Log density, nats, of every value of series and of every row of other targets.

    Args:
        likelihood: of the targets.
        output: its parameters; draws may come before rows.
        y: the targets.
    """
    if isinstance(likelihood, OverTime):
        return likelihood.value_log_prob(output, y)
    return likelihood.log_prob(output, y)


def mixture_log_prob(
    log_probs: Float[Array, "draws *units"],
) -> Float[Array, "*units"]:
    r"""$\log \frac{1}{S} \sum_s p_s$ of each unit by itself, nats.

    Args:
        log_probs: of each draw, as `unit_log_prob` gives them.
    """
    return jax.nn.logsumexp(log_probs, axis=0) - math.log(log_probs.shape[0])


def row_scores(
    likelihood: AbstractLikelihood, log_probs: Float[Array, "draws ..."], y: PyTree
) -> RowScores:
    """Average the densities of each unit over draws, and add up each row's.

    Args:
        likelihood: of the targets.
        log_probs: of each draw, as `unit_log_prob` gives them.
        y: the targets.
    """
    mixed = mixture_log_prob(log_probs)
    if not isinstance(likelihood, OverTime):
        return RowScores(mixed, jnp.ones_like(mixed))
    observed = jnp.asarray(y.mask)
    total = jnp.sum(jnp.where(observed, mixed, 0), axis=(-2, -1))
    return RowScores(total, jnp.sum(observed, axis=(-2, -1)).astype(total.dtype))
