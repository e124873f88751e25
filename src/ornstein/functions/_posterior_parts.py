"""What a posterior is made of: only its family knows, and audits and diagnoses ask."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._types import Array, Float, Int, PRNGKeyArray, PyTree


class KLEstimate(NamedTuple):
    r"""KL(q || p) by Monte Carlo, where a loss may have another in its place.

    Attributes:
        name: in results, such as `"kl_mixture"`.
        estimate: takes a key, and is unbiased, nats.
        stand_ins: by name, what a loss may have had in its place: take a key, nats.
    """

    name: str
    estimate: Callable[[PRNGKeyArray], Float[Array, ""]]
    stand_ins: Mapping[str, Callable[[PRNGKeyArray], Float[Array, ""]]]


def _nothing(parts: Collection[str], key: PRNGKeyArray) -> Any:
    del key
    raise ValueError(f"There is nothing to put back to a prior, such as {parts}.")


@dataclasses.dataclass(frozen=True)
class PosteriorParts:
    """What `AbstractRandomFunction.posterior_parts` returns.

    `PosteriorParts()` is what a family says that has none of this: a random function
    that is scored by its predictions, and by the KL of its draws.

    Attributes:
        is_random: whether two of its draws can differ.
        has_bound: whether the KL of its draws makes a bound on the evidence.
        notes: sentences about what that bound is, for results.
        kl_estimate: KL(q || p), where the KL of its draws may be another's.
        kl_record: the record of training that shows whether its KL ever moved, such as
            `"kl"` or `"kl_path"`; `None` without a KL that could.
        noise_scales: called for the scales of its noise by name, each in units of the
            prior's or of what it is added to; 1 / 1,000 is none.
        share_at_prior: called for the share of its random weights that are where the
            prior has them, each with a KL below 1 / 100 nats, and for the number of
            these weights; `None` where weights have no KL of their own.
        noise_share: called with inputs and a key: how much of the spread of its prior's
            paths noise makes, in the dimension that has most; `None` without such
            paths.
        has_noisy_path: whether weights follow noisy paths over depth, whose KL is the
            term `"kl_path"`.
        starts_at_points: whether all those paths start at points, which cost nothing.
        parts: what the posterior is made of, each with a prior to put it back to:
            `"start"`, `"path"`, `"nodes"`, `"weights"`. Empty for a family that claims
            no posterior, or whose prior nobody knows.
        at_prior: called with some of `parts` and a key: the same function with q of
            those parts put back to p. Other parts keep their draws.
        held: from what `at_prior` gave for all parts to the arrays that stand for p: a
            twin that is trained with q = p leaves them alone.
        without_noise: called for the same function with all its noise at the mean, and
            without a KL.
        noise_free_twin: called for what is trained beside it, without its noise and at
            the same prior: its weights as points (`MAP`), a `LatentODE` of a latent
            SDE. `None` for what `without_noise` gives, trained as points are: where
            the weights have no prior, or the noise is not theirs.
        ablations: the same function without a part of its posterior, by that part's
            name. What this costs on held-out rows is what the part does.
        start_size: the root mean square of what its solves start from; `None` where
            that is the input.
        num_parameters: of one of its draws, for a family of which nothing is trained;
            `None` for what `labels` tells.
        has_stored_samples: whether its strata are samples of chains, any first few of
            which are a fair share of all, and not components to be compared.
        dependent_draws: called with a number of draws of stored samples: the block of
            each, such as its chain; draws of one block may depend on each other, and
            blocks do not. `None` for draws that are all independent.
        chain_scores: called with a few inputs: what its chains say of themselves.
    """

    is_random: bool = True
    has_bound: bool = True
    notes: tuple[str, ...] = ()
    kl_estimate: KLEstimate | None = None
    kl_record: str | None = None
    noise_scales: Callable[[], dict[str, float]] = dict
    share_at_prior: Callable[[], tuple[float, int]] | None = None
    noise_share: Callable[[PyTree[Array], PRNGKeyArray], float] | None = None
    has_noisy_path: bool = False
    starts_at_points: bool = False
    parts: tuple[str, ...] = ()
    at_prior: Callable[[Collection[str], PRNGKeyArray], Any] = _nothing
    held: Callable[[Any], PyTree] = lambda function: ()
    without_noise: Callable[[], Any] | None = None
    noise_free_twin: Callable[[], Any] | None = None
    ablations: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    start_size: float | None = None
    num_parameters: int | None = None
    has_stored_samples: bool = False
    dependent_draws: Callable[[int], Int[np.ndarray, " draws"]] | None = None
    chain_scores: Callable[[PyTree[Array]], dict[str, Any]] | None = None
