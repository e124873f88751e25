"""A bound so far from fitted that its KL is more than any data could pay for."""

from .._sentence import Sentence
from ._base import NOT_CHECKED, CheckResult, start_options
from ._evidence import Evidence
from ._num_data import num_data_of

TOO_MUCH = 5.0
"""Nats a row. What a posterior spends, the likelihood must earn: five nats a row are a
density 150 times that of a constant guess at every row, or 150 classes told apart
without an error. Presets of ours that learn their data spend less than one."""


def bound_underfitted(evidence: Evidence) -> CheckResult:
    """Compare the KL of what all rows share with the number of rows."""
    if not evidence.posterior.has_bound:
        return NOT_CHECKED
    terms = evidence.draws.terms
    if not terms:
        return NOT_CHECKED
    num_data, kl = num_data_of(evidence), sum(terms.values())
    numbers = {"kl_per_row": kl / num_data}
    if not kl > TOO_MUCH * num_data:
        return CheckResult(numbers)
    name = max(terms, key=lambda name: terms[name])
    said = Sentence(
        "The bound is not fitted: the KL is {:,.0f} nats for {:,.0f} rows, {:.1f} "
        "each, and most of it is that of {} ({:,.0f}). No likelihood can earn that: "
        "training has not yet moved the posterior to where the data want it. Take more "
        "steps (more epochs, or smaller batches) or a larger learning rate, start "
        "nearer to the prior{}, or sample in place of a bound.",
        kl,
        num_data,
        kl / num_data,
        _CALLED.get(name, f"`{name}`"),
        terms[name],
        start_options(terms),
    )
    return CheckResult(numbers, said)


_CALLED = {
    "kl_initial": "the start w0",
    "kl_path": "the path",
    "kl_weights": "the weights",
    "kl_nodes": "the nodes",
}
