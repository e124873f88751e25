"""Chains that say different things, or that stepped past where they cannot go."""

from .._sentence import Choice, Sentence
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence

APART = 1.2
"""R-hat of outputs from which chains say different things: between them is then 0.4 of
the variance within. From 1.05 on the command says that they have not met, which longer
chains mend; these have seen other modes."""

DIVERGENT = 0.01
"""Share of the samples that follow a divergent step. One may be chance; of a hundredth
each few dozen samples have one, and where it went none is kept."""

_LONGER = Choice(
    "Sample longer (`num_warmup`, `num_samples`), from optimised members (`starts`)",
    "Sample longer ({num_warmup}, {num_samples}), from trained members ({start_from})",
)


def chains_apart(evidence: Evidence) -> CheckResult:
    """Look at R-hat of a few rows' outputs."""
    r_hat = evidence.chain_scores.get("r_hat")
    if r_hat is None:
        return NOT_CHECKED
    numbers = {"r_hat": r_hat}
    if not r_hat > APART:
        return CheckResult(numbers)
    said = Sentence(
        "The chains say different things of the same rows (R-hat of outputs {:.2f}, "
        "worth {:.0f} independent draws): each has seen a part of the posterior, and "
        "together they are an ensemble of such parts. Its bands may still hold what "
        "they say (look at the coverage). {}, or take a posterior with fewer ways to "
        "say the same: a narrower network or prior.",
        r_hat,
        evidence.chain_scores["ess_bulk"],
        _LONGER,
    )
    return CheckResult(numbers, said)


def chains_divergent(evidence: Evidence) -> CheckResult:
    """Count the samples after a divergent step."""
    num_divergent = evidence.chain_scores.get("num_divergent")
    if num_divergent is None:
        return NOT_CHECKED
    num_samples = evidence.whole.model.num_strata
    numbers = {"divergent_share": num_divergent / num_samples}
    if not num_divergent > DIVERGENT * num_samples:
        return CheckResult(numbers)
    said = Sentence(
        "{} of {} samples follow a divergent step: the chains turn back where the "
        "posterior is narrow, and what lies there is missing. {}.",
        num_divergent,
        num_samples,
        Choice(
            "Lower the step size to a tenth, warm up longer, or raise "
            "`target_acceptance`",
            "Give a tenth of {step_size}, and a longer {num_warmup}",
        ),
    )
    return CheckResult(numbers, said)
