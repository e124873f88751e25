"""A 90 % band that holds every target."""

from .._sentence import Sentence
from ..data import Series
from ..likelihood import AbstractLocationScaleLikelihood, of_one_value
from ._base import CHANCE, NOT_CHECKED, SIGMA, CheckResult
from ._coverage import Coverage, series_coverage
from ._evidence import Evidence

_LEVEL = 0.9
ALL = 0.99
"""Share of the targets in the band, from which it holds them all but for outliers."""


def holds_all(found: Coverage) -> bool:
    """Whether a 90 % band holds every target, which chance does not explain.

    Args:
        found: of that band.
    """
    is_wide = found.share >= ALL and found.share > found.expected
    return is_wide and found.by_chance < CHANCE


def band_holds_all(evidence: Evidence) -> CheckResult:
    """Count the targets in the 90 % interval; of series, every observed value.

    Too many are held if that is so by chance in less than 1 in 740 data sets: rows are
    held together where draws differ, and so are the values of a series (see
    `coverages_of` and `series_coverage`).
    """
    if not isinstance(
        of_one_value(evidence.likelihood), AbstractLocationScaleLikelihood
    ):
        return NOT_CHECKED
    prediction, y = evidence.scored
    if isinstance(y, Series):
        found = series_coverage(prediction, y, _LEVEL)
    else:
        found = evidence.coverages[_LEVEL]
    numbers = {"coverage_90": found.share}
    if not holds_all(found):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "The 90 % band holds {:.1%} of {} targets: it is far too wide, and says "
            "little of where they are. Learn the likelihood's scale ({learn_scale}) or "
            "give a smaller one, train longer, or give the prior less noise ({}): a "
            "band is as wide as what was not fitted.",
            found.share,
            found.num_targets,
            SIGMA,
        ),
    )
