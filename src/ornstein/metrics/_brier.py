"""The Brier score."""

import jax
import jax.numpy as jnp

from .._tree import in_single
from .._types import Array, Float, Int
from ._arrays import AnyArray


def brier(
    probs: Float[AnyArray, "rows classes"], y: Int[AnyArray, " rows"]
) -> Float[Array, ""]:
    r"""Mean over rows of $\sum_k (p_k - 1[y = k])^2$.

    From 0 to 2, Brier's (1950) own form; the two-class form of scikit-learn's default
    is half of it.

    Args:
        probs: class probabilities; rows sum to 1.
        y: class numbers.
    """
    probs = in_single(probs)
    one_hot = jax.nn.one_hot(y, probs.shape[1], dtype=probs.dtype)
    return jnp.mean(jnp.sum((probs - one_hot) ** 2, axis=1))
