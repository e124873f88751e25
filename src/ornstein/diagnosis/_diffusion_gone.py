"""A posterior whose scales have shrunk to nothing."""

from .._sentence import Choice, Sentence
from ._base import SIGMA, CheckResult, start_options
from ._evidence import Evidence

GONE = 1e-3
"""In units of the prior's scale, or of the weights': noise of a thousandth moves the
output of a layer by a thousandth of its size, which nothing downstream tells from
rounding in training."""


def diffusion_gone(evidence: Evidence) -> CheckResult:
    """Compare the scales of the noise with what it is added to."""
    share = evidence.posterior.noise_share
    if share is not None:
        return _of_path(share(evidence.x, evidence.key))
    numbers = evidence.posterior.noise_scales()
    gone = {name: value for name, value in numbers.items() if value < GONE}
    if not gone:
        return CheckResult(numbers)
    has_path = evidence.posterior.has_noisy_path
    seen = " and ".join(f"{name} {value:.1g}" for name, value in gone.items())
    return CheckResult(
        numbers,
        Sentence(
            "The randomness is gone: {}, where 1 is the size of the prior's or of the "
            "weights' own. Draws are then one network; give a larger scale{}{}, or "
            "train with a KL weight of 1, which holds it up.",
            seen,
            Sentence(" of the prior ({})", SIGMA) if has_path else "",
            start_options(evidence.draws.terms),
        ),
    )


def _of_path(share: float) -> CheckResult:
    if not share < GONE:
        return CheckResult({"noise_share": share})
    return CheckResult(
        {"noise_share": share},
        Sentence(
            "The diffusion is gone: noise makes at most {:.1g} of the spread of the "
            "prior's paths. They are those of an ordinary differential equation; give "
            "{}.",
            share,
            Choice(
                "`NetDiffusion` a higher lower bound or a fixed `ConstantDiffusion`, "
                "or start from more noise",
                "{latent_noise} fixed with a larger {sigma}, or start from more noise",
            ),
        ),
    )
