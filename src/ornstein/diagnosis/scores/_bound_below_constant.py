"""A bound on the evidence that a constant guess beats."""

import math

import numpy as np

from ..._sentence import Choice, Sentence
from .._base import NOT_CHECKED, CheckResult, start_options
from .._evidence import Evidence
from ._constant import constant_scores

_ERRORS = 3.0
"""Standard errors of the bound, over the draws that it was estimated from."""


def bound_below_constant(evidence: Evidence) -> CheckResult:
    r"""Compare the ELBO with the evidence of a constant guess.

    That is $\ell - \tfrac{d}{2} \log N$ for the log likelihood $\ell$ of $d$ constants
    fitted to $N$ rows (Schwarz, "Estimating the dimension of a model", 1978): constants
    pay for being fitted, too. Of a fit that was trained at another KL weight than 1 the
    bound is not what was asked for, and nothing is said.
    """
    bound = evidence.bound
    weight = evidence.history.get("kl_weight")
    is_tempered = weight is not None and len(weight) > 0 and float(weight[-1]) != 1
    if bound is None or evidence.train is None or is_tempered:
        return NOT_CHECKED
    train_y = evidence.train.y
    constant = constant_scores(evidence.likelihood, train_y, train_y)
    if constant is None:
        return NOT_CHECKED
    num_data = evidence.num_data or len(train_y)
    penalty = 0.5 * constant.num_constants * math.log(num_data)
    # The rows may be a sample of those that the bound is of.
    evidence_of_constant = num_data * float(np.mean(constant.log_prob)) - penalty
    elbo, error = bound
    numbers = {"elbo": elbo, "constant_log_evidence": evidence_of_constant}
    error = error if math.isfinite(error) else 0.0
    if not elbo + _ERRORS * error < evidence_of_constant:
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "The ELBO is {:,.0f} nats for {:,} {}, and a guess that ignores the "
            "inputs has {:,.0f}: as a bound on the evidence this posterior is worth "
            "less than a constant, whatever it predicts. Take more steps ({}), a "
            "smaller network ({}), a start nearer to the prior or a prior nearer to "
            "the start{}, or sample in place of a bound.",
            elbo,
            num_data,
            evidence.rows,
            evidence_of_constant,
            Choice("`num_epochs`", "{epochs}"),
            Choice("fewer or narrower layers", "{width}"),
            start_options(evidence.draws.terms),
        ),
    )
