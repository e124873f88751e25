"""A prior of each leaf's own."""

import math

import jax

from .._types import Array, Float, Params, PRNGKeyArray, PyTree
from ..nn import fan_ins
from ._base import AbstractPrior, total
from ._gaussian import GaussianPrior


class ByLeaf(AbstractPrior):
    """One prior for each leaf, or for each subtree.

    Args:
        priors: a tree of priors whose structure is the parameters', or its upper part.
    """

    priors: PyTree[AbstractPrior]

    def log_prob(self, params: Params) -> Float[Array, ""]:
        """See `AbstractPrior`."""
        return total(self._map(lambda prior, p: prior.log_prob(p), params))

    def sample(self, like: Params, *, key: PRNGKeyArray) -> Params:
        """See `AbstractPrior`."""
        priors, treedef = jax.tree.flatten(self.priors, is_leaf=_is_prior)
        keys = treedef.unflatten(jax.random.split(key, len(priors)))
        return self._map(lambda prior, p, k: prior.sample(p, key=k), like, keys)

    def cross_entropy(self, mean: Params, scale: Params) -> Float[Array, ""] | None:
        """See `AbstractPrior`."""
        parts = self._map(lambda prior, m, s: prior.cross_entropy(m, s), mean, scale)
        num_priors = len(jax.tree.leaves(self.priors, is_leaf=_is_prior))
        return total(parts) if len(jax.tree.leaves(parts)) == num_priors else None

    def check(self, params: Params) -> None:
        """See `AbstractPrior`."""
        for leaf in jax.tree.leaves(self.priors, is_leaf=_is_prior):
            if not _is_prior(leaf):
                raise TypeError(
                    f"`ByLeaf` has a leaf of type `{type(leaf).__name__}`, which is no "
                    "prior: map over the parameters alone, as in `jax.tree.map(lambda "
                    "w: GaussianPrior(0.5, mean=w), eqx.filter(network, "
                    "eqx.is_inexact_array))`."
                )
        try:
            self._map(lambda prior, p: prior.check(p), params)
        except ValueError as error:
            reason = " ".join(str(error).split())  # JAX's has many lines
            raise ValueError(
                f"The priors of `ByLeaf` do not fit the parameters, whose tree, or its "
                f"upper part, they must have: {reason}"
            ) from error

    def _map(self, fn, *trees: PyTree) -> PyTree:
        return jax.tree.map(fn, self.priors, *trees, is_leaf=_is_prior)


def fan_in_prior(network: PyTree, *, scale: float = 1.0) -> ByLeaf:
    r"""Normals of standard deviation `scale` / √fan-in for every parameter.

    The prior under which a layer's output stays of one size however wide it is.

    Args:
        network: whose parameters.
        scale: of a layer's output for inputs of size one.
    """
    return ByLeaf(
        jax.tree.map(lambda n: GaussianPrior(scale / math.sqrt(n)), fan_ins(network))
    )


def _is_prior(node: object) -> bool:
    return isinstance(node, AbstractPrior)
