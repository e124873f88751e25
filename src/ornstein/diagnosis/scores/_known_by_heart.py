"""Training rows that are known by heart: more parameters than rows can feed."""

import math

import numpy as np

from ..._sentence import Choice, Sentence
from ...functions import Pruned
from ...metrics import mean_and_error
from .._base import LEAST_ROWS, NOT_CHECKED, CheckResult
from .._evidence import Evidence
from ._constant import constant_scores, of_varying_columns

LOST = 0.25
"""Share of what was gained on training rows, over a constant guess, that is not there
on others. Fits of ours that suit their data lose less than a fifth."""

_ERRORS = 3.0


def known_by_heart(evidence: Evidence) -> CheckResult:
    r"""Compare training rows with the others, where nothing but data held the fit.

    For points, dropout, SWAG and ensembles of them, with more parameters than rows: a
    posterior at its prior has parameters to spare, and pays for none. The gap $g$ of
    the two NLLs must be three standard errors (of both means of rows) wide, and more
    than a quarter of what the fit gained in training over a constant guess.
    """
    posterior, train = evidence.posterior, evidence.train
    is_held = posterior.has_bound or posterior.has_stored_samples
    is_held |= isinstance(evidence.model.member(0), Pruned)  # trained as a posterior
    if train is None or is_held or evidence.scored[0].num_rows < LEAST_ROWS:
        return NOT_CHECKED
    prediction, y = evidence.scored
    seen, seen_y = evidence.scored_in_training
    y, seen_y = (of_varying_columns(train.y, each) for each in (y, seen_y))
    constant = constant_scores(evidence.likelihood, train.y, seen_y)
    num_parameters = evidence.num_parameters
    is_asked = constant_scores(evidence.likelihood, train.y, y) is not None
    if constant is None or not is_asked or num_parameters <= len(train):
        return NOT_CHECKED
    score = lambda p, y: [np.asarray(a, np.float64) for a in p.row_scores(y)]
    log_prob, num_units = score(seen, seen_y)
    fitted, fitted_se = mean_and_error(log_prob, num_units)
    others, others_se = mean_and_error(*score(prediction, y))
    guessed, _ = mean_and_error(constant.log_prob, num_units)
    gap, error, gained = fitted - others, math.hypot(fitted_se, others_se), fitted
    gained -= guessed
    numbers = {"nll_of_training": -fitted, "nll_gap": gap, "nll_gap_se": error}
    if not (gap > _ERRORS * error and gap > LOST * gained > 0):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "Training rows are known by heart: their NLL is {:.3g}, that of other rows "
            "{:.3g}, {:.2g} ± {:.1g} more, and {:.0%} of what was gained over a "
            "constant guess is lost on them. {:,} parameters are more than {:,} rows "
            "can feed: take a smaller network ({}), more {weight_decay}, fewer steps "
            "({}), or a posterior in place of points ({}).",
            -fitted,
            -others,
            gap,
            error,
            min(1.0, gap / gained),
            num_parameters,
            len(train),
            Choice("fewer or narrower layers", "{width}"),
            Choice("`num_epochs`, or `EarlyStopping`", "{epochs}, {patience}"),
            Choice("`orn.Ensemble`, `orn.sample`", "{model} ensemble or chains"),
        ),
    )
