"""A reversible solve whose second state has left the first."""

import jax
import numpy as np

from .._sentence import Sentence
from ..data import Series
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence

APART = 1.0
"""Of |y − ŷ| in units of what solves start from. The two are solutions of one equation;
once they are that far apart, what comes out is the parasitic mode."""


def reversible_gap(evidence: Evidence) -> CheckResult:
    """Compare the largest gap at a solve's end with the size of its start."""
    report = evidence.draws.report
    if report is None or not float(report.reversible_gap):
        return NOT_CHECKED
    size, gap = _start_size(evidence), float(report.reversible_gap)
    relative = gap / size if size > 0 else gap
    numbers = {"reversible_gap": relative}
    if not relative > APART:
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "At the end of a solve, the two states of the reversible solver are {:.2g} "
            "apart, {:.2g} times the size of what it started from: it is not stable "
            "here, and its result is not the equation's. Lower the prior's {rate} "
            "(rate × depth near 1), the drift's scale, or the step, or take another "
            "solver.",
            gap,
            relative,
        ),
    )


def _start_size(evidence: Evidence) -> float:
    """The root mean square of the inputs, as which hidden units start, or of p(z₀)."""
    if evidence.posterior.start_size is not None:
        return evidence.posterior.start_size
    if isinstance(evidence.x, Series):  # neither a clock nor a mask is a size
        seen = np.asarray(evidence.x.values, np.float64)[np.asarray(evidence.x.mask)]
        squares = [seen**2]
    else:
        squares = [np.asarray(a, np.float64) ** 2 for a in jax.tree.leaves(evidence.x)]
    return float(np.sqrt(np.mean([np.mean(square) for square in squares])))
