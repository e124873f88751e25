"""Normal priors leaf by leaf, and their scales by empirical Bayes."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Params, PyTree
from ._base import AbstractPrior, total
from ._by_leaf import ByLeaf
from ._gaussian import GaussianPrior


def normal_leaves(prior: AbstractPrior, params: Params) -> PyTree[GaussianPrior]:
    """The normal prior of every leaf.

    Args:
        prior: `GaussianPrior`, or `ByLeaf` of such.
        params: whose leaves.

    Returns:
        a tree with the structure of `params`, and a prior in place of each leaf.

    Raises:
        TypeError: for a prior that is not normal.
    """
    if isinstance(prior, GaussianPrior):
        return jax.tree.map(lambda leaf: prior, params)
    return _by_leaf(normal_leaves, prior, params)


def with_fitted_scales(
    prior: AbstractPrior, mean: Params, scale: Params
) -> AbstractPrior:
    r"""The same normal prior with the scales under which $E_q \log p(w)$ is largest.

    $s^2 = \frac1n \sum (\mu - \mu_0)^2 + \sigma^2$ over the n weights that share a
    scale: all those under one `GaussianPrior`.

    Args:
        prior: `GaussianPrior` of one scale, or `ByLeaf` of such.
        mean: $\mu$ of q.
        scale: $\sigma$ of q.

    Raises:
        TypeError: for a prior that is not normal.
        ValueError: for a scale that is an array: each weight would have its own.
    """
    if not isinstance(prior, GaussianPrior):
        return ByLeaf(_by_leaf(with_fitted_scales, prior, mean, scale))
    if prior.scale.ndim:
        raise ValueError(
            f"A prior whose scale is an array of shape {prior.scale.shape} has one for "
            "each weight, which cannot be fitted to that weight alone: give "
            "`GaussianPrior` one number, or `ByLeaf` one for each leaf."
        )

    def squares(mu, sigma):
        return jnp.sum((mu - prior.mean.astype(mu.dtype)) ** 2 + sigma**2)

    count = sum(leaf.size for leaf in jax.tree.leaves(mean))
    if count == 0:  # of points alone: there is nothing to fit it to
        return prior
    square = total(jax.tree.map(squares, mean, scale)) / count
    fitted = jnp.sqrt(square).astype(prior.scale.dtype)
    return eqx.tree_at(lambda p: p.scale, prior, fitted)


def _by_leaf(fn, prior: AbstractPrior, *trees: Params):
    if not isinstance(prior, ByLeaf):
        raise TypeError(
            f"`{type(prior).__name__}` is not a normal prior: give `GaussianPrior`, "
            "`ByLeaf` of them, or `fan_in_prior(network)`."
        )
    is_prior = lambda node: isinstance(node, AbstractPrior)
    return jax.tree.map(fn, prior.priors, *trees, is_leaf=is_prior)
