r"""A $\sigma$ so large that the path, and not the input, decides the output."""

from .._sentence import Sentence
from ._base import NOT_CHECKED, SIGMA, CheckResult
from ._draws_agree import between_draws
from ._evidence import SOME_SKILL, Evidence

MOSTLY_NOISE = 0.5
"""Share of the outputs' variance that is between draws. Above it, which path was drawn
says more about an output than the input does."""


def noise_drowns_drift(evidence: Evidence) -> CheckResult:
    """Split the outputs' variance in draws and inputs, where the fit is poor.

    Both are needed: far from data draws of a good posterior differ much, and there are
    data of which nothing can be learned. (The twin without noise is no witness: the
    same parameters without noise do as badly where training met noise alone.)
    """
    share = between_draws(evidence) if evidence.posterior.has_noisy_path else None
    if share is None:
        return NOT_CHECKED
    numbers = {"between_draws": share, "skill": evidence.skill}
    if not (share > MOSTLY_NOISE and evidence.skill < SOME_SKILL):
        return CheckResult(numbers)
    worth = "worse than" if evidence.skill < 0 else "hardly better than"
    return CheckResult(
        numbers,
        Sentence(
            "The noise drowns the drift: {:.0%} of the outputs' variance is between "
            "draws, and the prediction is {} a constant guess. Make {} smaller; a "
            "tenth of it is a start.",
            share,
            worth,
            SIGMA,
        ),
    )
