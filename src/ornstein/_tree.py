"""Trees of parameters, leaf by leaf: no flat vector is ever made of them."""

import jax

from ._types import Params, PRNGKeyArray


def normal_like(tree: Params, *, key: PRNGKeyArray) -> Params:
    """Independent standard normals with the structure, shapes and types of `tree`.

    Drawn by threefry's older form, which turns one hash into two words where the newer
    one keeps a single word of each: a third less time for what is over half of a step
    of SGLD. What it gives up is cutting a *single* array's draw over several devices.
    """
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    with jax.threefry_partitionable(False):
        drawn = [
            jax.random.normal(leaf_key, leaf.shape, leaf.dtype)
            for leaf, leaf_key in zip(leaves, keys, strict=True)
        ]
    return jax.tree.unflatten(treedef, drawn)
