"""Draws that are all the same function."""

import numpy as np

from ..functions import SDEBNN, Deterministic
from ._base import NOT_CHECKED, Checked
from ._evidence import Case

ALIKE = 1e-4
"""Share of the uncertainty that is between draws. A posterior of p parameters on N rows
leaves about p / N: 10,000 rows for each parameter is more than networks get."""


def draws_agree(case: Case) -> Checked:
    """Compare the spread of draws with the predictive uncertainty."""
    share = _share(case) if _is_random(case) else None
    if share is None:
        return NOT_CHECKED
    numbers = {"epistemic_share": share}
    if not share < ALIKE:
        return Checked(numbers)
    return Checked(
        numbers,
        f"The draws agree: {share:.1g} of the predictive uncertainty is between them. "
        "This is one network, whatever it is called, and it does not know when it does "
        "not know. Look at the posterior's scales and the KL's weight, and start from "
        "wider scales.",
    )


def _is_random(case: Case) -> bool:
    if isinstance(case.model, SDEBNN):
        return bool(case.noisy_blocks) and case.num_draws > 1
    return not isinstance(case.model, Deterministic) and case.num_draws > 1


def _share(case: Case) -> float | None:
    summary = case.drawn.prediction.summary
    if summary is not None and summary.aleatoric is not None:
        # NaN stays: it is no share below any number.
        between = float(np.mean(np.asarray(summary.epistemic)))
        total = between + float(np.mean(np.asarray(summary.aleatoric)))
        return between / total if total != 0 else 0.0
    return between_draws(case)  # without a variance: of what varies at all


def between_draws(case: Case) -> float | None:
    """Share of the outputs' variance, over draws and rows, that is between draws."""
    signals = case.signals
    if signals is None:
        return None
    total = float(np.mean(np.var(signals, axis=(0, 1))))
    return float(np.mean(np.var(signals, axis=0))) / total if total != 0 else 0.0
