"""A 90 % band that holds every target."""

import math

import jax
import numpy as np

from .._sentence import Sentence
from ..data import Series
from ..likelihood import AbstractLocationScaleLikelihood, of_one_value
from ..prediction import Prediction
from ._base import NOT_CHECKED, SIGMA, CheckResult
from ._evidence import Evidence

_LEVEL = 0.9
ALL = 0.99
"""Share of the targets in the band, from which it holds them all but for outliers."""

_ERRORS = 3.0
"""Standard errors above 90 %, of rows by chance: all of 81, at least."""


def band_holds_all(evidence: Evidence) -> CheckResult:
    """Count the targets in the 90 % interval; of series, every observed value."""
    likelihood = of_one_value(evidence.likelihood)
    if not isinstance(likelihood, AbstractLocationScaleLikelihood):
        return NOT_CHECKED
    (prediction, y), seen = evidence.scored, None
    if isinstance(y, Series):  # each time at which anything is observed is a row
        prediction, y = evidence.draws.prediction, evidence.y
        mask = np.asarray(y.mask)
        times = mask.any(axis=-1)
        outputs = jax.tree.map(lambda a: a[:, times], prediction.outputs)
        prediction = Prediction(outputs, likelihood)
        y, seen = np.asarray(y.values)[times], mask[times]
    lower, upper = (np.asarray(a) for a in prediction.interval(_LEVEL))
    columns = np.asarray(y, np.float64).reshape(lower.shape)
    inside = (lower <= columns) & (columns <= upper)
    if seen is not None:
        inside = inside[seen]
    coverage = float(np.mean(inside))
    numbers = {"coverage_90": coverage}
    error = math.sqrt(_LEVEL * (1 - _LEVEL) / inside.shape[0])
    if not (coverage >= ALL and coverage - _LEVEL > _ERRORS * error):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "The 90 % band holds {:.1%} of {} targets: it is far too wide, and says "
            "little of where they are. Learn the likelihood's scale ({learn_scale}) or "
            "give a smaller one, train longer, or give the prior less noise ({}): a "
            "band is as wide as what was not fitted.",
            coverage,
            inside.size,
            SIGMA,
        ),
    )
