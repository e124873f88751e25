"""Accuracy and calibration error as sums, which batches can add up."""

import jax
import jax.numpy as jnp
import numpy as np

from ..._tree import in_single
from ..._types import Array, Float, Shaped

NUM_BINS = 15


def calibration_sums(
    probs: Float[Array, "rows outputs"], y: Shaped[Array, "rows ..."]
) -> Float[Array, "3 bins"]:
    """Counts, hits and summed confidences in equal-width bins of confidence.

    Args:
        probs: class probabilities, or with targets of the same shape the
            probabilities of independent yes-or-no targets.
        y: class numbers, or yes-or-no targets.
    """
    probs = in_single(probs)
    if y.size == probs.size and not (y.ndim == 1 and probs.shape[-1] > 1):
        confidence = jnp.maximum(probs, 1 - probs).ravel()
        hits = ((probs > 0.5) == (y.reshape(probs.shape) > 0.5)).ravel()
    else:
        confidence = jnp.max(probs, axis=-1)
        hits = jnp.argmax(probs, axis=-1) == y
    edges = jnp.arange(1, NUM_BINS) / NUM_BINS
    bins = jnp.searchsorted(edges, confidence, side="left")  # bins are (low, high]
    members = jax.nn.one_hot(bins, NUM_BINS, dtype=probs.dtype)
    values = jnp.stack(
        [jnp.ones_like(confidence), hits.astype(probs.dtype), confidence]
    )
    return values @ members


def accuracy_and_ece(sums: Float[np.ndarray, "3 bins"]) -> dict[str, float]:
    """Accuracy and expected calibration error from `calibration_sums`."""
    counts, hits, confidences = sums
    total = counts.sum()
    return {
        "accuracy": float(hits.sum() / total),
        "ece": float(np.abs(hits - confidences).sum() / total),
    }
