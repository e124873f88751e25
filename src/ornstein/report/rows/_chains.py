"""What chains say of themselves, at outputs that no permutation of units changes."""

from typing import Any, NamedTuple

import numpy as np

from ..._types import Float
from ...functions import PosteriorSamples, diagnose_chains, is_of_batches
from ...likelihood import AbstractClassLikelihood

_NUM_ROWS = 20
_NUM_SAMPLES = 250
_NUM_TRACES = 3


class ChainRecord(NamedTuple):
    """Diagnostics of chains.

    Attributes:
        traces: of a few outputs, the least agreed on first.
        labels: what each of those is, with its R-hat.
        every: samples from one point of a trace to the next.
        r_hat: of each output at some test rows.
        ess_bulk: of each such output, independent draws for its mean.
        ess_tail: of each such output, independent draws for its outer quantiles.
        energy: of each sample; empty for kernels without one.
        by_chain: numbers of each chain by name: acceptance, divergences, E-BFMI (not
            of kernels that see batches, whose noise it would be).
        starts: where chains began.
    """

    traces: Float[np.ndarray, "traces chains samples"]
    labels: tuple[str, ...]
    every: int
    r_hat: Float[np.ndarray, " outputs"]
    ess_bulk: Float[np.ndarray, " outputs"]
    ess_tail: Float[np.ndarray, " outputs"]
    energy: Float[np.ndarray, "chains samples"]
    by_chain: dict[str, list[float]]
    starts: str


def record_chains(
    samples: PosteriorSamples, x: Any, class_names: tuple[str, ...] = ()
) -> ChainRecord:
    """Diagnostics of chains at the first test rows, and traces of what they say there.

    Args:
        samples: of chains.
        x: test inputs, rows first.
        class_names: of class probabilities.
    """
    every = max(1, samples.num_samples // _NUM_SAMPLES)
    values = samples.function_values(x[:_NUM_ROWS], every=every)
    values = np.asarray(values, np.float64)
    flat = values.reshape(*values.shape[:2], -1)
    shape, is_enough = values.shape[2:], flat.shape[1] >= 4
    none = np.zeros(0)
    found = (none, none, none)
    order = np.arange(flat.shape[2])
    if is_enough:
        found = tuple(np.asarray(part, np.float64) for part in diagnose_chains(flat))
        order = np.argsort(-np.nan_to_num(found[0], nan=-np.inf), kind="stable")
    chosen = order[:_NUM_TRACES]
    is_class = isinstance(samples.likelihood, AbstractClassLikelihood)
    labels = []
    for output in map(int, chosen):
        row, *place = map(int, np.unravel_index(output, shape))
        what = f"output {place[-1]}" if place and shape[-1] > 1 else "output"
        if is_class and place:
            named = class_names[place[-1]] if class_names else place[-1]
            what = f"probability of {named}"
        said = f", R-hat {found[0][output]:.3f}" if is_enough else ""
        labels.append(f"{what} at test row {row}{said}")
    info = {name: np.asarray(a, np.float64) for name, a in samples.info.items()}
    return ChainRecord(
        np.moveaxis(flat[:, :, chosen], -1, 0),
        tuple(labels),
        every,
        *found,
        info.get("energy", np.zeros((0, 0)))[:, every - 1 :: every],
        _by_chain(samples, info),
        samples.starts or "",
    )


def _by_chain(
    samples: PosteriorSamples, info: dict[str, np.ndarray]
) -> dict[str, list[float]]:
    found = {}
    if "acceptance_rate" in info:
        found["mean acceptance"] = info["acceptance_rate"].mean(1)
    if "is_divergent" in info:
        found["divergences"] = info["is_divergent"].sum(1)
    if "step_size" in info:
        found["last step size"] = info["step_size"][:, -1]
    if "noise_ratio" in samples.chain_info:
        found["gradient noise / injected"] = samples.chain_info["noise_ratio"]
    if "energy" in info and not is_of_batches(info) and samples.num_samples >= 4:
        found["E-BFMI"] = samples.e_bfmi()
    return {name: np.asarray(a, float).tolist() for name, a in found.items()}
