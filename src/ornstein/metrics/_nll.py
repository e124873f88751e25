"""Negative log likelihood of classes."""

import jax.numpy as jnp

from .._tree import in_single
from .._types import Array, Float, Int
from ._arrays import AnyArray


def nll(
    probs: Float[AnyArray, "rows classes"], y: Int[AnyArray, " rows"]
) -> Float[Array, ""]:
    """Mean negative log probability of the true class, nats.

    Infinite where a true class got probability 0: `Prediction.log_prob`, which works
    with logarithms, does not underflow.

    Args:
        probs: class probabilities; rows sum to 1.
        y: class numbers.
    """
    probs, y = in_single(probs), jnp.asarray(y)
    return -jnp.mean(jnp.log(jnp.take_along_axis(probs, y[:, None], axis=1)))
