"""A test likelihood that a constant guess beats."""

import math

import numpy as np

from ..._sentence import Choice, Sentence
from ...metrics import mean_and_error
from .._base import NOT_CHECKED, CheckResult
from .._evidence import Evidence
from ._constant import constant_scores, of_varying_columns

_ERRORS = 3.0
"""Standard errors, over rows, of the difference on the same rows."""

_LEAST_ROWS = 10
"""Fewer rows do not know the error of their own mean."""


def worse_than_constant(evidence: Evidence) -> CheckResult:
    """Compare the NLL with that of a guess from the training targets alone.

    The difference is taken row by row, and so is its standard error. Where the training
    targets are not known, or a column of them is constant, nothing is said; of series
    such columns are left out.
    """
    if evidence.train is None:
        return NOT_CHECKED
    (prediction, y), train_y = evidence.scored, evidence.train.y
    y = of_varying_columns(train_y, y)
    constant = constant_scores(evidence.likelihood, train_y, y)
    if constant is None or prediction.num_rows < _LEAST_ROWS:
        return NOT_CHECKED
    log_prob, num_units = (np.asarray(a, np.float64) for a in prediction.row_scores(y))
    lost, error = mean_and_error(constant.log_prob - log_prob, num_units)
    nll = -float(log_prob.sum() / num_units.sum())
    numbers = {"nll_of_constant": nll - lost, "nll_over_constant": lost}
    if not (math.isfinite(error) and lost > _ERRORS * error):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "The NLL is {:.3g} nats on {:,} {}, and a guess that ignores the inputs "
            "has {:.3g}, {:.2g} ± {:.1g} less: what was learned is worse than nothing, "
            "or surer of itself than it may be. {}",
            nll,
            prediction.num_rows,
            evidence.rows,
            nll - lost,
            lost,
            error,
            _what_to_do(evidence),
        ),
    )


def _what_to_do(evidence: Evidence) -> Sentence:
    if evidence.posterior.has_stored_samples:
        return Sentence(
            "Look at the chains first (R-hat, divergences), then run longer ones ({}), "
            "narrow the prior ({}), or learn the noise ({learn_scale}).",
            Choice("`num_warmup`, `num_samples`", "`ornstein sample {num_warmup} ...`"),
            Choice("a smaller `scale`", "`ornstein sample {prior_scale} ...`"),
        )
    return Sentence(
        "If training rows are predicted well, take a smaller network ({}) or fewer "
        "steps ({}); if not, more steps or another {learning_rate}; for numbers, learn "
        "the noise ({learn_scale}).",
        Choice("fewer or narrower layers", "{width}"),
        Choice("`num_epochs`", "{epochs}"),
    )
