"""A training that stopped while its bound still rose."""

import math

import numpy as np

from .._sentence import Choice, Sentence
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence

_PART = 0.25
"""Of the epochs, the last, in which a bound that is fitted moves by noise alone."""

_LEAST_EPOCHS = 8
"""In that part: a line through fewer says little of the noise around it."""

_ERRORS = 3.0

STILL = 0.05
"""Nats a row gained in that part. As much again, or more, lies ahead; less is what
another seed of the training makes."""

SHARE = 0.05
"""Of all that training gained: a fit that came 20 times as far has come to rest."""


def still_rising(evidence: Evidence) -> CheckResult:
    r"""Fit a line to the last quarter of the recorded bound.

    Of the loss as it was minimised, and only where its KL weight did not change there,
    and where validation rows, if there are any, were not better off before.
    Residuals of neighbouring epochs depend on each other: with their correlation
    $\rho$, the variance of the slope is $(1 + \rho) / (1 - \rho)$ times that of
    independent ones.
    """
    if not evidence.posterior.has_bound:
        return NOT_CHECKED
    loss = np.asarray(evidence.history.get("loss", ()), np.float64)
    last = max(_LEAST_EPOCHS, round(_PART * loss.size))
    weight = np.asarray(evidence.history.get("kl_weight", np.ones(loss.size)))
    if loss.size < 2 * last or not np.all(np.isfinite(loss)):
        return NOT_CHECKED
    if _is_best_before_end(evidence.history.get("val_nll")):
        return NOT_CHECKED
    if weight.shape != loss.shape or np.ptp(weight[-last:]) > 0:
        return NOT_CHECKED
    rise, error = _rise(-loss[-last:])
    at_weight = loss[weight == weight[-1]]
    gained = float(np.max(at_weight) - np.min(at_weight))
    numbers = {"bound_rise": rise, "bound_rise_se": error}
    if not (rise > _ERRORS * error and rise > STILL and rise > SHARE * gained):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "Training stopped while the bound still rose: by {:.2g} ± {:.1g} nats a "
            "row over the last {} of {} epochs. Take more of them ({}), smaller "
            "batches ({batch_size}), or a larger {learning_rate}.",
            rise,
            error,
            last,
            loss.size,
            Choice("`num_epochs`", "{epochs}"),
        ),
    )


def _is_best_before_end(val_nll: np.ndarray | None) -> bool:
    known = np.asarray(() if val_nll is None else val_nll, np.float64)
    known = known[np.isfinite(known)]
    return known.size > 0 and int(np.argmin(known)) < known.size - 1


def _rise(values: np.ndarray) -> tuple[float, float]:
    """Of a line through values, from first to last, and its standard error."""
    num = values.size
    t = np.arange(num) - (num - 1) / 2
    slope = float(t @ values / (t @ t))
    rest = values - values.mean() - slope * t
    variance = float(rest @ rest) / (num - 2)
    size = float(rest @ rest)
    rho = float(rest[1:] @ rest[:-1]) / size if size > 0 else 0.0
    rho = min(max(rho + (2 + 4 * rho) / num, 0.0), 0.9)  # of a line, it is too low
    error = math.sqrt(variance / float(t @ t) * (1 + rho) / (1 - rho))
    return slope * (num - 1), error * (num - 1)
