"""What a diagnosis says, and what one check hands to it."""

import textwrap
from typing import NamedTuple

from .._sentence import Choice

_WIDTH = 88


SIGMA = Choice("`WeightPrior(sigma=...)`", "{sigma}")
"""The noise of a prior over paths of weights."""


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


NOT_CHECKED = CheckResult({})
"""What a check says of a model that it does not apply to."""
