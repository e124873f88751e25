"""A reversible solve whose second state has left the first."""

import jax
import numpy as np

from ._base import NOT_CHECKED, Checked
from ._case import Case

APART = 1.0
"""Of |y − ŷ| in units of the inputs, as which hidden units start. The two are solutions
of one equation; once they are that far apart, what comes out is the parasitic mode."""


def reversible_gap(case: Case) -> Checked:
    """Compare the largest gap at a solve's end with the size of the inputs."""
    report = case.drawn.report
    if report is None or not float(report.reversible_gap):
        return NOT_CHECKED
    arrays = [np.asarray(a, np.float64) for a in jax.tree.leaves(case.x)]
    size = float(np.sqrt(np.mean([np.mean(a**2) for a in arrays])))
    gap = float(report.reversible_gap)
    relative = gap / size if size > 0 else gap
    numbers = {"reversible_gap": relative}
    if not relative > APART:
        return Checked(numbers)
    return Checked(
        numbers,
        f"At the end of a solve, the two states of the reversible solver are {gap:.2g} "
        f"apart, {relative:.2g} times the size of the inputs: it is not stable here, "
        "and its result is not the equation's. Lower the prior's `rate` (rate × depth "
        "near 1), the drift's scale, or the step, or take another solver.",
    )
