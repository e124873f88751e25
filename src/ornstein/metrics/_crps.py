r"""The continuous ranked probability score.

$\mathrm{CRPS}(F, y) = \int (F(t) - 1[t \ge y])^2 \, dt$, in the units of the target;
for a certain guess it is the absolute error. Smaller is better. Gneiting & Raftery,
"Strictly proper scoring rules, prediction, and estimation" (2007), eqs. (20)-(21).
"""

import math

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from .._tree import in_single
from .._types import Array, Float
from ._arrays import AnyArray, check_like


def gaussian_crps(
    mean: Float[AnyArray, "*rows"],
    std: Float[AnyArray, "*rows"],
    y: Float[AnyArray, "*rows"],
) -> Float[Array, "*rows"]:
    r"""CRPS of normal predictions.

    $\sigma \{z (2 \Phi(z) - 1) + 2 \varphi(z) - 1 / \sqrt{\pi}\}$ with $z = (y - \mu) /
    \sigma$.

    Args:
        mean: $\mu$.
        std: $\sigma$, positive.
        y: targets, of the same shape.

    Raises:
        ValueError: for another shape.
    """
    check_like(y, mean=mean, std=std)
    std = in_single(std)
    z = (in_single(y) - in_single(mean)) / std
    bracket = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi)
    return std * bracket


def sample_crps(
    samples: Float[AnyArray, "samples *rows"], y: Float[AnyArray, "*rows"]
) -> Float[Array, "*rows"]:
    r"""CRPS of the samples' empirical distribution.

    $\tfrac{1}{S} \sum_i |x_i - y| - \tfrac{1}{2 S^2} \sum_{ij} |x_i - x_j|$, exact for
    that distribution; the double sum is one over sorted samples. For the distribution
    behind few samples it is too large, by a part of order 1 / S; the points
    $F^{-1}((i - \tfrac12) / S)$ as samples do much better.

    Args:
        samples: samples of the predictive distribution, noise included.
        y: targets, of one sample's shape.

    Raises:
        ValueError: for samples of another shape.
    """
    if np.shape(samples)[1:] != np.shape(y):
        raise ValueError(
            f"`samples` has shape {np.shape(samples)} and `y` {np.shape(y)}: give "
            "samples first, and then the shape of `y`."
        )
    # From the target: far from zero the sum over ranks would lose its digits.
    samples = jnp.sort(in_single(samples) - in_single(y)[None], axis=0)
    num_samples = samples.shape[0]
    ranks = jnp.arange(1, num_samples + 1).reshape(-1, *(1,) * (samples.ndim - 1))
    weights = (2 * ranks - num_samples - 1).astype(samples.dtype)
    spread = jnp.sum(weights * samples, axis=0) / num_samples**2
    return jnp.mean(jnp.abs(samples), axis=0) - spread
