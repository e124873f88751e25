"""What a diagnosis says, and what one check hands to it."""

import textwrap
from collections.abc import Collection
from typing import NamedTuple

from .._sentence import Choice, Sentence

_WIDTH = 88


SIGMA = Choice("`WeightPrior(sigma=...)`", "{sigma}")
"""The noise of a prior over paths of weights."""

MORE_NETWORKS = Choice(
    "average over networks (`orn.Ensemble`)", "average over networks ({model} ensemble)"
)
"""What helps points that are too sure of themselves."""

MORE_MEMBERS = Choice(
    "average over more members", "average over more members ({num_members})"
)
"""What helps an ensemble that is."""


class Finding(NamedTuple):
    """Something wrong with a posterior.

    Attributes:
        name: of the fault, such as `"draws-agree"`.
        message: what was seen, what it means, and what to do; a `Sentence` where it
            names options.
        numbers: what was seen, by name.
    """

    name: str
    message: str
    numbers: dict[str, float]


class Diagnosis(NamedTuple):
    """What `diagnose` found; its `str` is for people.

    Attributes:
        findings: the gravest first; empty where nothing is wrong that it knows of.
        numbers: all that was measured, found wrong or not.
    """

    findings: tuple[Finding, ...]
    numbers: dict[str, float]

    def __str__(self) -> str:
        """A paragraph for each finding."""
        if not self.findings:
            return "Nothing found."
        said = (f"{finding.name}: {finding.message}" for finding in self.findings)
        return "\n\n".join(textwrap.fill(text, _WIDTH) for text in said)


class CheckResult(NamedTuple):
    """What one check saw.

    Attributes:
        numbers: by name; empty where the check does not apply.
        message: what is wrong, or `None`.
    """

    numbers: dict[str, float]
    message: str | None = None


# Where q's scales start, by the part of the KL that a family has of them.
_STARTS = {
    "kl_initial": Sentence(" ({start_width})"),
    "kl_weights": Sentence(" ({init_scale})"),
}


def start_options(terms: Collection[str]) -> str:
    """The options by which scales start nearer to their prior, in brackets.

    Args:
        terms: of the KL; families without such an option have others.
    """
    return next((said for name, said in _STARTS.items() if name in terms), "")


CHANCE = 0.00135
"""How often a normal lies three standard deviations above its mean. Errors in counts of
few rows are no normals: there the tail itself is held against this."""

MATERIAL = 0.02
"""Two points of coverage or confidence, which is more than anybody acts on. With 2,000
rows it is three standard errors of a 90 % band; more rows would find smaller faults."""

LEAST_ROWS = 30
"""Of fewer rows a share says too little to be called off."""

NOT_CHECKED = CheckResult({})
"""What a check says of a model that it does not apply to."""
