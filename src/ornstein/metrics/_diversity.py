"""How much the members of an ensemble, or components of a mixture, differ."""

import jax
import jax.numpy as jnp

from .._tree import in_single
from .._types import Array, Float
from ._arrays import AnyArray


def disagreement(probs: Float[AnyArray, "members rows classes"]) -> Float[Array, ""]:
    """The share of rows on which two members guess different classes.

    Averaged over pairs of members: Fort, Hu & Lakshminarayanan (2019), section 4.

    Args:
        probs: each member's class probabilities, or logits.
    """
    num_members, _, num_classes = _check(probs)
    guesses = jnp.argmax(jnp.asarray(probs), axis=-1)
    counts = jnp.sum(jax.nn.one_hot(guesses, num_classes), axis=0)
    num_agreeing = jnp.sum(counts * (counts - 1), axis=-1)
    return 1 - jnp.mean(num_agreeing) / (num_members * (num_members - 1))


def pairwise_kl(probs: Float[AnyArray, "members rows classes"]) -> Float[Array, ""]:
    r"""The mean of $KL(p_i \| p_j)$ over rows and ordered pairs of members, nats.

    Half of the symmetric KL, averaged over pairs. A probability of 0 counts as the
    smallest normal number, so that the result is finite.

    Args:
        probs: each member's class probabilities.
    """
    num_members, _, _ = _check(probs)
    probs = in_single(probs)
    log_probs = jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))
    # The mean over the others of log p_i - log p_j, from the mean over all.
    gap = log_probs - jnp.mean(log_probs, axis=0, keepdims=True)
    by_row = jnp.sum(probs * gap, axis=-1) * (num_members / (num_members - 1))
    return jnp.mean(by_row)


def _check(probs: Float[AnyArray, "members rows classes"]) -> tuple[int, int, int]:
    num_members, num_rows, num_classes = probs.shape
    if num_members < 2:
        raise ValueError(
            f"Diversity is between members, and there are {num_members}: give the "
            "probabilities of two or more."
        )
    return num_members, num_rows, num_classes
