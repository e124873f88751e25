"""Samples for ArviZ's diagnostics and plots."""

from typing import Any

import jax
import numpy as np

from .._types import PyTree
from ..functions import PosteriorSamples

_STATS = {
    "is_divergent": "diverging",
    "energy": "energy",
    "acceptance_rate": "acceptance_rate",
    "num_gradients": "n_steps",
    "step_size": "step_size",
}


def to_arviz(samples: PosteriorSamples, *, x: PyTree | None = None) -> Any:
    """Samples as ArviZ's `InferenceData`.

    Needs the extra: `pip install ornstein[arviz]`.

    Args:
        samples: what `sample` returned.
        x: a few inputs, rows first: what the networks say there is added to the
            posterior as `function`, whose R-hat means more than that of weights.

    Returns:
        An `InferenceData` with `posterior` (each parameter under its path; a sampled
        scale as `likelihood.log_scale`) and `sample_stats`: the kernel's info, under
        ArviZ's names (`diverging`, `n_steps`) where it has them.

    Raises:
        ImportError: without ArviZ.
    """
    try:
        import arviz  # extra `arviz`: seconds to import
    except ImportError as error:
        raise ImportError(
            "`to_arviz` needs ArviZ: install it with `pip install 'ornstein[arviz]'`."
        ) from error
    params, scale = samples.positions
    posterior = _by_path(params, "") | _by_path(scale, "likelihood.")
    if x is not None:
        values = jax.tree.leaves(samples.function_values(x))
        names = [f"function_{i}" for i in range(len(values))]
        names = ["function"] if len(values) == 1 else names
        posterior |= dict(zip(names, map(np.asarray, values), strict=True))
    stats = {_STATS.get(n, n): np.asarray(a) for n, a in samples.info.items()}
    return arviz.from_dict(posterior=posterior, sample_stats=stats)


def _by_path(tree: PyTree, prefix: str) -> dict[str, np.ndarray]:
    """Each leaf under a name such as `layers.0.weight`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        prefix + jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(a)
        for path, a in leaves
    }
