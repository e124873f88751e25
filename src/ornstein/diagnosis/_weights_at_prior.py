"""Weights that the data never moved from their prior."""

from .._sentence import Choice, Sentence
from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence
from ._num_data import num_data_of

MOST = 0.5
"""Of the weights. With more than half of them at the prior, a network of half the size
would have said the same, with less noise from what it never learned."""


def weights_at_prior(evidence: Evidence) -> CheckResult:
    """Count the weights whose own KL is next to nothing, where they outnumber rows.

    Trippe & Turner, "Overpruning in variational Bayesian neural networks" (2018): a
    posterior of independent weights that has more of them than the data feed returns
    them to their prior, whose noise it then must drown.
    """
    share = evidence.posterior.share_at_prior
    if share is None:
        return NOT_CHECKED
    (at_prior, num_random), num_data = share(), num_data_of(evidence)
    numbers = {"share_at_prior": at_prior}
    if not (at_prior > MOST and num_random > num_data):
        return CheckResult(numbers)
    return CheckResult(
        numbers,
        Sentence(
            "{:.0%} of {:,} random weights are where their prior has them, with a KL "
            "below 0.01 nats each: {:,.0f} rows do not feed so many. Take a smaller "
            "network ({}) or a narrower prior ({}).",
            at_prior,
            num_random,
            num_data,
            Choice("fewer or narrower layers", "{width}"),
            Choice("a smaller `scale`", "{weight_scale}"),
        ),
    )
