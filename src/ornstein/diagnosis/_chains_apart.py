"""Chains that say different things, that diverged, or that batches have heated."""

import math

import jax
import numpy as np
from scipy.special import fdtri

from .._sentence import Choice, Sentence
from ..functions import PosteriorSamples
from ..sampling import HOT, how_hot
from ._base import CHANCE, NOT_CHECKED, CheckResult
from ._evidence import CHAIN_ROWS, Evidence

APART = 1.2
"""R-hat of outputs from which chains say different things: between them is then 0.4 of
the variance within. From 1.05 on the command says that they have not met, which longer
chains mend; these have seen other modes. Of few samples chance alone makes it: see
`_by_chance`."""

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
    if not r_hat > max(APART, _by_chance(evidence)):
        return CheckResult(numbers)
    chains = evidence.whole.model
    is_one = isinstance(chains, PosteriorSamples) and chains.num_chains == 1
    said = Sentence(
        "{} say different things of the same rows (R-hat of outputs {:.2f}, "
        "worth {:.0f} independent draws): each has seen a part of the posterior, and "
        "together they are an ensemble of such parts. Its bands may still hold what "
        "they say (look at the coverage). {}, or take a posterior with fewer ways to "
        "say the same: a narrower network or prior.",
        "The halves of the chain" if is_one else "The chains",
        r_hat,
        evidence.chain_scores["ess_bulk"],
        _LONGER,
    )
    return CheckResult(numbers, said)


def _by_chance(evidence: Evidence) -> float:
    r"""The largest R-hat of all outputs that chains in agreement have but by chance.

    Of $m$ halves of chains with $n$ independent samples each, $\hat R^2 = (n - 1 + F)
    / n$ where $F$ has the law of that name, with $m - 1$ and $m (n - 1)$ degrees of
    freedom. The largest is of each output at each row, as it is and folded. Of ranks
    R-hat has an upper limit, which is below this for two chains of fewer than ten
    samples, or one of fewer than twenty: of those nothing can be said.
    """
    chains, outputs = evidence.whole.model, evidence.draws.prediction.outputs
    if not isinstance(chains, PosteriorSamples):
        return 0.0
    num_compared = 2 * sum(
        min(CHAIN_ROWS, a.shape[1]) * math.prod(a.shape[2:])
        for a in jax.tree.leaves(outputs)
    )
    m, n = 2 * chains.num_chains, chains.num_samples // 2
    f = fdtri(m - 1, m * (n - 1), 1 - CHANCE / num_compared)
    return math.sqrt((n - 1 + f) / n)


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


def chains_heated(evidence: Evidence) -> CheckResult:
    """Hold gradient noise against injected noise."""
    ratios = evidence.chain_scores.get("noise_ratio")
    if ratios is None:
        return NOT_CHECKED
    ratio = float(np.max(ratios))
    # Infinite where a kernel injects none: it samples otherwise.
    is_hot = HOT < ratio < math.inf
    return CheckResult({"noise_ratio": ratio}, how_hot(ratio) if is_hot else None)
