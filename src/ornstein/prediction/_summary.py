"""What of a prediction needs no draws once it is computed."""

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLikelihood,
    AbstractLocationScaleLikelihood,
    of_one_value,
)


class Summary(eqx.Module):
    r"""Means over draws $\theta_1, \dots, \theta_S$ of a prediction.

    Attributes:
        mean: class probabilities (rows, classes), averaged over draws, or the
            predictive mean (rows, outputs).
        aleatoric: what would remain with $\theta$ known. For classes the mean entropy
            $E_\theta H[y | \theta]$ of each row, nats; else the mean variance
            $E_\theta \mathrm{Var}[y | \theta]$ of each target, squared units.
        epistemic: what $\theta$ adds. For classes the mutual information
            $H[y] - E_\theta H[y | \theta]$, nats; else $\mathrm{Var}_\theta E[y |
            \theta]$, squared units. `None`, as `aleatoric`, without a variance.
    """

    mean: Float[Array, "rows *times outputs"]
    aleatoric: Float[Array, "..."] | None
    epistemic: Float[Array, "..."] | None


@eqx.filter_jit
def summarise(
    likelihood: AbstractLikelihood, outputs: PyTree[Float[Array, "draws rows ..."]]
) -> Summary | None:
    """The summary of these draws; `None` where not even a mean exists."""
    likelihood = of_one_value(likelihood)
    if isinstance(likelihood, AbstractClassLikelihood):
        probs = likelihood.probs(outputs)
        mean = jnp.mean(probs, axis=0)
        aleatoric = jnp.mean(likelihood.entropy(probs), axis=0)
        # Not negative, by Jensen; rounding may say otherwise.
        epistemic = jnp.maximum(likelihood.entropy(mean) - aleatoric, 0)
        return Summary(mean, aleatoric, epistemic)
    if isinstance(likelihood, AbstractLocationScaleLikelihood):
        if likelihood.tail_index <= 1:
            return None
        means = likelihood.marginals(outputs).mean
        if likelihood.tail_index <= 2:
            return Summary(jnp.mean(means, axis=0), None, None)
        variances = likelihood.marginals(outputs).variance
        return Summary(
            jnp.mean(means, axis=0), jnp.mean(variances, axis=0), jnp.var(means, axis=0)
        )
    return None
