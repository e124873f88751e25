"""A KL that training did not move."""

import numpy as np

from .._sentence import Choice, Sentence
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence

MOVED = 0.01
"""Smallest relative change that counts. The KL of a network that learns changes by more
in its first passes over the data."""

NO_KL = 0.01
"""Nats: by Pinsker's inequality q and p then differ by at most 0.07 in total variation,
and one draw could hardly be told to come from one or the other."""

_LEAST_EPOCHS = 3
"""Records are means over epochs; one or two say nothing about change."""


def kl_still(evidence: Evidence) -> CheckResult:
    """Look at the recorded KL over training."""
    name = evidence.posterior.kl_record
    values = None if name is None else evidence.history.get(name)
    if values is None or len(values) < _LEAST_EPOCHS:
        return NOT_CHECKED
    least, most = float(np.min(values)), float(np.max(values))
    size = max(abs(least), abs(most))
    change = (most - least) / size if size else 0.0
    numbers = {f"{name}_change": change, f"{name}_max": size}
    if size < NO_KL:
        seen = f"The KL stayed below {size:.1g} nats, at the prior,"
    elif change < MOVED:
        seen = f"The KL stayed at {size:.4g} nats to {change:.1g} of itself"
    else:
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "{} over {} epochs: training has not moved the posterior. {} a larger "
            "learning rate, a smaller KL weight, or a warm-up to it.",
            seen,
            len(values),
            Choice(
                "Check that its parameters are trained (`model.labels()`), and try",
                "Try",
            ),
        ),
    )
