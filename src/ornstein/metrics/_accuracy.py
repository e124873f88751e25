"""Accuracy, and accuracy among the best few."""

import jax.numpy as jnp

from .._types import Array, Float, Int
from ._arrays import AnyArray


def accuracy(
    probs: Float[AnyArray, "rows classes"], y: Int[AnyArray, " rows"]
) -> Float[Array, ""]:
    """The share of rows whose most probable class is right.

    A row with a probability that is no number has none, and counts as wrong.

    Args:
        probs: class probabilities, or logits.
        y: class numbers.
    """
    return top_k_accuracy(probs, y, k=1)


def top_k_accuracy(
    probs: Float[AnyArray, "rows classes"], y: Int[AnyArray, " rows"], *, k: int
) -> Float[Array, ""]:
    """The share of rows whose class is among the `k` most probable.

    Of equal probabilities the lower class number comes first, as in `argmax`. A row
    with a probability that is no number, or of a class that is not there, counts as
    wrong.

    Args:
        probs: class probabilities, or logits.
        y: class numbers.
        k: how many guesses count, from 1 to the number of classes.
    """
    probs, y = jnp.asarray(probs), jnp.asarray(y)
    num_classes = probs.shape[1]
    if not 1 <= k <= num_classes:
        raise ValueError(f"`k` must lie from 1 to {num_classes} classes, got {k}.")
    own = jnp.take_along_axis(probs, y[:, None], axis=1)
    is_earlier = jnp.arange(num_classes)[None] < y[:, None]
    num_better = jnp.sum((probs > own) | ((probs == own) & is_earlier), axis=1)
    is_judged = ~jnp.isnan(probs).any(axis=1) & (0 <= y) & (y < num_classes)
    return jnp.mean((num_better < k) & is_judged)
