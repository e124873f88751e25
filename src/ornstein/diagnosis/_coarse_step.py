"""Steps so long that the prediction depends on them."""

import math

import numpy as np

from .._sentence import Choice, Sentence
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLocationScaleLikelihood,
    Bernoulli,
)
from ..prediction import Prediction
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence
from ._halve import halved, has_fixed_steps

MOVES = 0.05
"""Total variation, the mean over rows: five points of probability, or an eighth of a
normal's standard deviation. Another eight draws change predictions by as much."""


def coarse_step(evidence: Evidence) -> CheckResult:
    """Halve the steps on the same paths: does the prediction move?

    For steps of `Fixed` alone: adaptive ones answer for themselves.
    """
    if not has_fixed_steps(evidence.model):
        return NOT_CHECKED
    finer = evidence.draw(halved(evidence.model)).prediction
    change = _distance(evidence.draws.prediction, finer)
    if change is None:
        return NOT_CHECKED
    numbers = {"change_by_half_step": change}
    if not change > MOVES:
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "Half the step on the same paths moves the prediction by {:.2g} in total "
            "variation: the result is the solver's as much as the model's. Halve {dt} "
            "until it stays ({} tries it without training), and train with that.",
            change,
            Choice(
                "`with_solver(model, stepsize=Fixed(...))`",
                "`ornstein evaluate RUN {dt} ...`",
            ),
        ),
    )


def _distance(one: Prediction, other: Prediction) -> float | None:
    r"""Total variation of two predictions, the mean over rows (and columns).

    Of real targets as if both were normal and equally wide: $2 \Phi(\delta / 2) - 1$
    for means (or medians) $\delta$ standard deviations apart.
    """
    if isinstance(one.likelihood, AbstractClassLikelihood):
        apart = np.abs(np.asarray(one.probs) - np.asarray(other.probs))
        if isinstance(one.likelihood, Bernoulli):  # whose "no" has no column
            return float(np.mean(apart))
        return float(0.5 * np.mean(np.sum(apart, axis=-1)))
    if not isinstance(one.likelihood, AbstractLocationScaleLikelihood):
        return None
    if one.summary is not None and one.summary.aleatoric is not None:
        apart, scale = one.mean - other.mean, np.sqrt(np.asarray(one.variance))
    else:
        lower, upper = one.interval(math.erf(math.sqrt(0.5)))
        apart, scale = one.median - other.median, np.asarray(upper - lower) / 2
    delta = np.ravel(np.abs(np.asarray(apart)) / scale)
    return float(np.mean([math.erf(d / (2 * math.sqrt(2))) for d in delta]))
