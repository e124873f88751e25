"""Bands that hold fewer targets, or more, than they say."""

from typing import Literal, TypeAlias

from ..._sentence import Choice, Sentence
from ...likelihood import AbstractLocationScaleLikelihood
from .._band_holds_all import holds_all
from .._base import CHANCE, LEAST_ROWS, MATERIAL, NOT_CHECKED, CheckResult
from .._evidence import LEVELS, Evidence

_ONE_SIDED = 1.0
"""Standard errors from which a band leans to one side, beside another that is off."""

_Fault: TypeAlias = Literal["narrow", "wide", "shape"]
_CALLED: dict[_Fault, str] = {
    "narrow": "too narrow",
    "wide": "too wide",
    "shape": "too wide in one place and too narrow in another",
}


def coverage_off(evidence: Evidence) -> CheckResult:
    """Count the targets in the 50, 90 and 95 % bands.

    A band is off if its share is more than two points from what a right posterior's
    would hold, and if one of three would be so by chance in less than 1 in 740 data
    sets (see `coverages_of`). It is off for up to 1 in 100 right posteriors of 32
    draws: their variance is that of few.
    Columns of one row count as one. Of series nothing is said, nor of a 90 % band that
    holds all, which is another finding.
    """
    likelihood = evidence.likelihood
    if not isinstance(likelihood, AbstractLocationScaleLikelihood):
        return NOT_CHECKED
    prediction, _ = evidence.scored
    if prediction.num_rows < LEAST_ROWS:
        return NOT_CHECKED
    numbers, off, sides = {}, [], set()
    bands = evidence.coverages
    for level, (share, expected, error, by_chance, _) in bands.items():
        name = f"coverage_{100 * level:g}"
        numbers |= {name: share, f"{name}_if_right": expected, f"{name}_se": error}
        z = (share - expected) / error
        if by_chance < CHANCE / len(LEVELS) and abs(share - expected) > MATERIAL:
            off.append(z)
        if abs(z) > _ONE_SIDED:
            sides.add(z > 0)
    is_said = holds_all(bands[0.9])  # by `band-holds-all`
    if not off or (is_said and sides == {True}):
        return CheckResult(numbers)
    what: _Fault = "narrow" if min(off) < 0 else "wide"
    what = "shape" if len(sides) > 1 else what
    return CheckResult(
        numbers,
        Sentence(
            "The 50, 90 and 95 % bands hold {:.0%}, {:.0%} and {:.0%} of {:,} targets, "
            "where a right posterior's hold {:.0%}, {:.0%} and {:.0%}, give or take "
            "{:.1%}, {:.1%} and {:.1%}: they are {}. {}",
            *(numbers[f"coverage_{100 * level:g}"] for level in LEVELS),
            prediction.num_rows,
            *(numbers[f"coverage_{100 * level:g}_if_right"] for level in LEVELS),
            *(numbers[f"coverage_{100 * level:g}_se"] for level in LEVELS),
            _CALLED[what],
            _what_to_do(evidence, likelihood, what),
        ),
    )


def _what_to_do(
    evidence: Evidence, likelihood: AbstractLocationScaleLikelihood, what: _Fault
) -> Sentence:
    posterior = evidence.posterior
    is_learned = likelihood.learn_scale or posterior.has_stored_samples
    first = "" if is_learned else Sentence("Learn the noise ({learn_scale}). ")
    if what == "shape":
        return Sentence(
            "{}Targets miss the mean by little in most rows and by much in some, which "
            "no one noise does: give them heavier tails ({}), or a transform of the "
            "target, such as its logarithm.",
            first,
            Choice("`StudentT`", "{likelihood} student-t"),
        )
    if what == "wide":
        again = Choice("train longer (`num_epochs`)", "train longer ({epochs})")
        if posterior.has_stored_samples:
            again = Choice(
                "run longer chains (`num_warmup`)",
                "run longer chains (`ornstein sample {num_warmup} ...`)",
            )
        return Sentence(
            "{}A band is as wide as what was not fitted: {}, or give the prior less "
            "noise.",
            first,
            again,
        )
    if posterior.has_stored_samples:
        advice = Sentence(
            "The chains fit noise, or agree where they should not: run more of them "
            "({}), take a smaller network ({}) or a narrower prior ({}), or give the "
            "targets heavier tails ({}).",
            Choice("`num_chains`", "`ornstein sample {num_chains} ...`"),
            Choice("fewer or narrower layers", "`ornstein sample {width} ...`"),
            Choice("a smaller `scale`", "`ornstein sample {prior_scale} ...`"),
            Choice("`StudentT`", "{likelihood} student-t"),
        )
    elif posterior.has_bound:
        advice = Sentence(
            "The posterior is surer than the data let it be, as factorised ones are: "
            "take another {seed} to see whether it stays, then sample ({}) or {}.",
            Choice("`orn.sample`", "{model} chains"),
            evidence.more_networks,
        )
    else:
        advice = Sentence(
            "Training rows are fitted closer than others can be: take fewer steps "
            "({}) or a smaller network ({}), {}, or sample ({}).",
            Choice("`num_epochs`", "{epochs}"),
            Choice("fewer or narrower layers", "{width}"),
            evidence.more_networks,
            Choice("`orn.sample`", "{model} chains"),
        )
    return Sentence("{}{}", first, advice)
