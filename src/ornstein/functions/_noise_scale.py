"""How large a posterior's noise is, in units in which 1 / 1,000 is none."""

import jax
import numpy as np

from .._types import PyTree


def median_entry(tree: PyTree) -> float:
    """The median over all numbers of a tree."""
    leaves = [np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return float(np.median(np.concatenate(leaves)))


def median_ratio(scale: PyTree, unit: PyTree) -> float:
    """The median over leaves of one leaf's median scale in its own unit."""
    pairs = zip(jax.tree.leaves(scale), jax.tree.leaves(unit), strict=True)
    return float(np.median([np.median(s) / np.median(u) for s, u in pairs]))
