"""What is wrong with chains that ran to their end."""

import jax
import numpy as np

from .._sentence import Choice, Sentence
from .._types import Array, PyTree
from ..functions import PosteriorSamples, split_r_hat
from ._burn_in import BurnIn
from ._noise_limit import HOT, how_hot
from ._starts import FROM_ONE_POINT

_FEW_ACCEPTED = 0.01
_HIGH_R_HAT = 1.05
_ROWS = 20
"""Rows at which functions are compared between chains."""
_SAMPLES = 100
"""Samples of each chain that are compared there."""

_PART_BYTES = 2**20
"""Of samples that are looked at together."""


class StuckChainError(RuntimeError):
    """No proposal was accepted: what was sampled is where the chains began."""


def is_stuck(samples: PosteriorSamples) -> bool:
    """Whether nothing was accepted, no chain moved, or one sample's steps diverged."""
    rates = samples.info.get("acceptance_rate")
    if rates is not None and float(np.mean(np.asarray(rates))) < _FEW_ACCEPTED:
        return True
    if samples.num_samples == 1:
        return bool(np.all(samples.info.get("is_divergent", False)))
    # Chains that are thinned may have a divergence in each sample's steps, and move.
    arrays = map(np.asarray, jax.tree.leaves(samples.positions))
    return not any(map(_has_moved, arrays))


def _has_moved(samples: np.ndarray) -> bool:
    """Whether a sample differs from its chain's first: a part of them at a time.

    Samples may be on disk, and more than memory has room for.
    """
    sample_bytes = max(1, samples[:, 0].nbytes)
    num = max(1, _PART_BYTES // sample_bytes)
    parts = (samples[:, i : i + num] for i in range(0, samples.shape[1], num))
    return any(np.any(part != samples[:, :1]) for part in parts)


def _how_stuck(info: dict[str, np.ndarray]) -> str:
    """Too large a step, or too small a one."""
    size = f" of {np.mean(info['step_size']):.3g}" if "step_size" in info else ""
    if "acceptance_rate" in info:
        return Sentence(
            "The step size{} rejects everything (acceptance {:.2g}): divide it by "
            "10, or give a longer {num_warmup} to find one.",
            size,
            np.mean(info["acceptance_rate"]),
        )
    if np.all(info.get("is_divergent", False)):
        return Sentence(
            "Every step diverged: the step size{} is too large; divide {step_size} by "
            "10, or give a longer {num_warmup} to find one.",
            size,
        )
    return Sentence(
        "The chains did not move: the step size{} is too small, and there is no "
        "posterior to average over; give {step_size} ten times as large.",
        size,
    )


def judge_chains(
    samples: PosteriorSamples,
    x: PyTree[Array],
    burn_in: BurnIn | None = None,
    *,
    has_trajectories: bool = False,
) -> list[str]:
    """A sentence for each thing that a user should know; options in it are spelt.

    Args:
        samples: all that was kept.
        x: training inputs, of which a few rows are looked at.
        burn_in: the rule that the warm-up was to end by.
        has_trajectories: whether the kernel moves by trajectories of a given length.
    """
    notes = []
    info = {name: np.asarray(a) for name, a in samples.info.items()}
    if is_stuck(samples):
        return [_how_stuck(info)]  # all else follows from it
    num_divergent = int(np.sum(info.get("is_divergent", 0)))
    if num_divergent:
        notes.append(
            Sentence(
                "{} of {} samples follow a divergent step: they may miss the narrow "
                "parts of the posterior; {}.",
                num_divergent,
                samples.num_strata,
                Choice(
                    "lower the step size, or raise `target_acceptance`",
                    "lower {step_size}, or give a longer {num_warmup}",
                ),
            )
        )
    if burn_in is not None:
        ratio = np.max(samples.chain_info["noise_ratio"])
        if not ratio < burn_in.threshold:
            notes.append(
                Sentence(
                    "Gradient noise is {:.3g} times the injected noise after the "
                    "warm-up, not below {}: samples were kept from {num_warmup} on, "
                    "and are too wide; lower the step size, or raise the batch size.",
                    ratio,
                    burn_in.threshold,
                )
            )
    ratios = samples.chain_info.get("noise_ratio")
    if burn_in is None and ratios is not None and HOT < np.max(ratios) < np.inf:
        notes.append(how_hot(float(np.max(ratios))))
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
            Sentence(
                "The chains do not agree on the training rows' outputs (R-hat {:.3f}, "
                "above {}): {} longer ({}{num_warmup}, {num_samples} or {thin}), or "
                "from more chains ({num_chains}).",
                r_hat,
                _HIGH_R_HAT,
                Choice("sample", "`ornstein sample` with the same {data}, but"),
                Sentence("first {num_integration_steps}, then ")
                if has_trajectories
                else "",
            )
        )
    elif samples.num_chains > 1 and (samples.starts or "").startswith(FROM_ONE_POINT):
        notes.append(
            Sentence(
                "R-hat is {:.3f}, but the chains started {}: other modes are not "
                "seen; leave out {} for chains that start apart.",
                r_hat,
                samples.starts,
                Choice(
                    "`jitter`" if " within " in (samples.starts or "") else "`starts`",
                    "{start_from}",
                ),
            )
        )
    return notes
