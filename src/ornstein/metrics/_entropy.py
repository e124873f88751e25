"""Uncertainty, and its split into noise (aleatoric) and ignorance (epistemic)."""

import jax
import jax.numpy as jnp

from .._tree import in_single
from .._types import Array, Float
from ._arrays import AnyArray


def entropy(probs: Float[AnyArray, "*lead classes"]) -> Float[Array, "*lead"]:
    r"""$-\sum_k p_k \log p_k$, nats.

    Args:
        probs: class probabilities on the last axis.
    """
    return _entropy(in_single(probs))


@jax.jit
def _entropy(probs: Float[Array, "*lead classes"]) -> Float[Array, "*lead"]:
    return -jnp.sum(jax.scipy.special.xlogy(probs, probs), axis=-1)


def split_entropy(
    probs: Float[AnyArray, "draws rows classes"],
) -> tuple[Float[Array, " rows"], Float[Array, " rows"], Float[Array, " rows"]]:
    r"""Total, aleatoric and epistemic entropy of each row, nats.

    $H[E_\theta p] = E_\theta H[p] + I[y; \theta]$: Depeweg et al. (2018), eq. (1).

    Args:
        probs: each draw's class probabilities.
    """
    total = entropy(jnp.mean(in_single(probs), axis=0))
    aleatoric = jnp.mean(entropy(probs), axis=0)
    return total, aleatoric, jnp.maximum(total - aleatoric, 0)


def split_variance(
    means: Float[AnyArray, "draws *rows"], variances: Float[AnyArray, "draws *rows"]
) -> tuple[Float[Array, "*rows"], Float[Array, "*rows"], Float[Array, "*rows"]]:
    r"""Total, aleatoric and epistemic variance, in squared units of the targets.

    $\mathrm{Var}[y] = E_\theta \mathrm{Var}[y | \theta] + \mathrm{Var}_\theta E[y |
    \theta]$: Depeweg et al. (2018), eq. (2).

    Args:
        means: each draw's mean of the target.
        variances: each draw's variance of the target.
    """
    aleatoric = jnp.mean(in_single(variances), axis=0)
    epistemic = jnp.var(in_single(means), axis=0)
    return aleatoric + epistemic, aleatoric, epistemic
