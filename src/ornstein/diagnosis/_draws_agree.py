"""Draws that are all the same function."""

import numpy as np

from .._sentence import Sentence
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence

ALIKE = 1e-4
"""Share of the uncertainty that is between draws. A posterior of p parameters on N rows
leaves about p / N: 10,000 rows for each parameter is more than networks get."""


def draws_agree(evidence: Evidence) -> CheckResult:
    """Compare the spread of draws with the predictive uncertainty."""
    can_differ = evidence.posterior.is_random and evidence.num_draws > 1
    share = _share(evidence) if can_differ else None
    if share is None:
        return NOT_CHECKED
    numbers = {"epistemic_share": share}
    if not share < ALIKE:
        return CheckResult(numbers)
    if evidence.posterior.has_stored_samples:
        advice = Sentence("The chains did not move, or too little: change {step_size}.")
    else:
        advice = (
            "Look at the posterior's scales and the KL's weight, and start from wider "
            "scales."
        )
    return CheckResult(
        numbers,
        Sentence(
            "The draws agree: {:.1g} of the predictive uncertainty is between them. "
            "This is one network, whatever it is called, and it does not know when it "
            "does not know. {}",
            share,
            advice,
        ),
    )


def _share(evidence: Evidence) -> float | None:
    summary = evidence.draws.prediction.summary
    if summary is not None and summary.aleatoric is not None:
        # NaN stays: it is no share below any number.
        between = float(np.mean(np.asarray(summary.epistemic)))
        total = between + float(np.mean(np.asarray(summary.aleatoric)))
        return between / total if total != 0 else 0.0
    return between_draws(evidence)  # without a variance: of what varies at all


def between_draws(evidence: Evidence) -> float | None:
    """Share of the outputs' variance, over draws and rows, that is between draws."""
    signals = evidence.signals
    if signals is None:
        return None
    total = float(np.mean(np.var(signals, axis=(0, 1))))
    return float(np.mean(np.var(signals, axis=0))) / total if total != 0 else 0.0
