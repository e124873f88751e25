r"""A guess that looks at no input: what any fit must do better than.

Of classes it is their frequencies in training, with one row more of each, so that none
is impossible (Laplace's rule); of numbers a Gaussian with each column's mean and
standard deviation there. Of a column that is constant there, a Gaussian has a density
without bound, with which nothing can be compared.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from ..._types import Array, Bool, Float, PyTree, Shaped
from ...data import Series
from ...likelihood import (
    AbstractLikelihood,
    AbstractLocationScaleLikelihood,
    Bernoulli,
    Categorical,
    of_one_value,
)

Rows: TypeAlias = Shaped[Array | np.ndarray, "..."]

_ROUNDING = float(np.finfo(np.float32).eps)
"""Of a column's largest value: one that deviates by less is constant."""


class ConstantScores(NamedTuple):
    """What the constant guess says of some targets.

    Attributes:
        log_prob: of each row, nats; of a series the sum over observed values.
        num_constants: that were taken from the training targets.
    """

    log_prob: Float[np.ndarray, " rows"]
    num_constants: int


def constant_scores(
    likelihood: AbstractLikelihood, train_y: PyTree[Rows], y: PyTree[Rows]
) -> ConstantScores | None:
    """Score targets by the constant guess.

    Args:
        likelihood: of the fit, which says what its targets are.
        train_y: targets that the constants are taken from.
        y: targets to score.

    Returns:
        `None` for a likelihood of one's own, whose constant guess nobody knows, and
        for numbers with a column that is constant in training.
    """
    if isinstance(likelihood, Categorical):
        return _of_classes(np.asarray(train_y), np.asarray(y))
    if isinstance(likelihood, Bernoulli):
        return _of_yes_or_no(np.asarray(train_y), np.asarray(y))
    if isinstance(of_one_value(likelihood), AbstractLocationScaleLikelihood):
        return _of_numbers(*_columns(train_y), *_columns(y))
    return None


def of_varying_columns(train_y: PyTree[Rows], y: PyTree[Rows]) -> PyTree[Rows]:
    """The targets; of series only the columns that vary in training are there.

    Args:
        train_y: targets that the constants are taken from.
        y: targets to score.
    """
    if not isinstance(y, Series):
        return y
    varies = ~_is_constant(*_columns(train_y))
    return Series(y.ts, y.values, np.asarray(y.mask) & varies)


def _of_classes(train_y: np.ndarray, y: np.ndarray) -> ConstantScores:
    num_classes = int(max(train_y.max(), y.max())) + 1
    counts = np.bincount(train_y, minlength=num_classes) + 1.0
    return ConstantScores(np.log(counts / counts.sum())[y], num_classes - 1)


def _of_yes_or_no(train_y: np.ndarray, y: np.ndarray) -> ConstantScores:
    train_y, y = (a.reshape(a.shape[0], -1).astype(float) for a in (train_y, y))
    share = (train_y.sum(0) + 1) / (train_y.shape[0] + 2)
    log_prob = y * np.log(share) + (1 - y) * np.log(1 - share)
    return ConstantScores(log_prob.sum(1), y.shape[1])


def _of_numbers(
    train_y: Float[np.ndarray, "..."],
    is_known: np.ndarray,
    y: Float[np.ndarray, "..."],
    is_asked: np.ndarray,
) -> ConstantScores | None:
    is_constant = _is_constant(train_y, is_known)
    if np.any(is_asked & is_constant) or not np.any(is_asked):
        return None
    columns = train_y.shape[-1]
    known = [train_y[..., j][is_known[..., j]] for j in range(columns)]
    mean = np.array([of.mean() if of.size else 0.0 for of in known])
    deviation = np.array([of.std() if of.size else 1.0 for of in known])
    deviation = np.where(is_constant, 1.0, deviation)  # of columns not asked for
    log_prob = -0.5 * ((y - mean) / deviation) ** 2
    log_prob -= np.log(deviation) + 0.5 * math.log(2 * math.pi)
    log_prob = np.where(is_asked, log_prob, 0.0)
    return ConstantScores(log_prob.reshape(y.shape[0], -1).sum(1), 2 * columns)


def _is_constant(
    y: Float[np.ndarray, "..."], is_known: np.ndarray
) -> Bool[np.ndarray, " columns"]:
    """Of each column whether it has values, which all are the same but for rounding."""
    known = [y[..., j][is_known[..., j]] for j in range(y.shape[-1])]
    same = [of.size and of.std() <= _ROUNDING * np.abs(of).max() for of in known]
    return np.array(same, bool)


def _columns(y: PyTree[Rows]) -> tuple[Float[np.ndarray, "..."], np.ndarray]:
    """Values with their columns last, and which of them are there."""
    if isinstance(y, Series):
        mask = np.asarray(y.mask)
        return np.where(mask, np.asarray(y.values, np.float64), 0.0), mask
    values = np.asarray(y, np.float64)
    values = values.reshape(values.shape[0], -1)
    return values, np.ones(values.shape, bool)
