"""What is wrong with chains that ran to their end."""

import jax
import numpy as np

from .._types import Array, PyTree
from ..functions import PosteriorSamples, split_r_hat
from ._burn_in import BurnIn
from ._starts import FROM_ONE_POINT

_FEW_ACCEPTED = 0.01
_HIGH_R_HAT = 1.05
_ROWS = 20
"""Rows at which functions are compared between chains."""
_SAMPLES = 100
"""Samples of each chain that are compared there."""


class StuckChainError(RuntimeError):
    """No proposal was accepted: what was sampled is where the chains began."""


def is_stuck(samples: PosteriorSamples) -> bool:
    """Whether a kernel with a Metropolis test accepted next to nothing."""
    rates = samples.info.get("acceptance_rate")
    return rates is not None and float(np.mean(np.asarray(rates))) < _FEW_ACCEPTED


def judge_chains(
    samples: PosteriorSamples, x: PyTree[Array], burn_in: BurnIn | None = None
) -> list[str]:
    """A sentence for each thing that a user should know.

    Args:
        samples: all that was kept.
        x: training inputs, of which a few rows are looked at.
        burn_in: the rule that the warm-up was to end by.
    """
    notes = []
    info = {name: np.asarray(a) for name, a in samples.info.items()}
    if is_stuck(samples):
        size = f" of {np.mean(info['step_size']):.3g}" if "step_size" in info else ""
        notes.append(
            f"The step size{size} rejects everything (acceptance "
            f"{np.mean(info['acceptance_rate']):.2g}): divide it by 10, or give a "
            "longer `num_warmup` to find one."
        )
        return notes  # all else follows from it
    num_divergent = int(np.sum(info.get("is_divergent", 0)))
    if num_divergent:
        notes.append(
            f"{num_divergent} of {samples.num_strata} samples follow a divergent step: "
            "they may miss the narrow parts of the posterior; lower the step size, or "
            "raise `target_acceptance`."
        )
    if burn_in is not None:
        ratio = np.max(samples.chain_info["noise_ratio"])
        if not ratio < burn_in.threshold:
            notes.append(
                f"Gradient noise is {ratio:.3g} times the injected noise after the "
                f"warm-up, not below {burn_in.threshold}: samples were kept from "
                "`num_warmup` on, and are too wide; lower the step size, or raise the "
                "batch size."
            )
    if samples.num_samples < 4:
        return notes
    rows = jax.tree.map(lambda a: a[:_ROWS], x)
    every = max(1, samples.num_samples // _SAMPLES)
    values = samples.function_values(rows, every=every)
    values = [np.asarray(a) for a in jax.tree.leaves(values)]
    if all(np.all(np.ptp(a, axis=1) == 0) for a in values):
        notes.append(
            "The samples of each chain all predict the same: the chains did not move, "
            "and there is no posterior to average over; change the step size."
        )
        return notes
    r_hat = np.nanmax(np.concatenate([split_r_hat(a).ravel() for a in values]))
    if r_hat > _HIGH_R_HAT:
        notes.append(
            f"The chains do not agree on the training rows' outputs (R-hat "
            f"{r_hat:.3f}, above {_HIGH_R_HAT}): sample longer, or from more chains."
        )
    elif samples.num_chains > 1 and (samples.starts or "").startswith(FROM_ONE_POINT):
        notes.append(
            f"R-hat is {r_hat:.3f}, but the chains started {samples.starts}: other "
            "modes are not seen; leave out `jitter` for chains that start apart."
        )
    return notes
