"""Trees of parameters: no flat vector is ever made of large ones."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._normals import standard_normal
from ._types import Array, Params, PRNGKeyArray, PyTree

_SMALL = 2**14
"""Entries up to which arrays are packed: copies of so many cost nothing."""


def is_at(tree: PyTree, where: Callable[[Any], PyTree]) -> PyTree[bool]:
    """For each leaf of a tree, whether it is an array at a place that `where` gives.

    An array may stand at several places: a prior that is centred on a network's weights
    holds the very arrays that its posterior begins with. A place is told by the array
    that is found there, so `where` is shown copies of all but the first of equal ones.

    Args:
        tree: any tree.
        where: the tree to one of its subtrees, or to any tree of them.

    Raises:
        ValueError: if `where` gives an array that is no leaf of the tree, or asks for
            what the tree does not have.
    """
    leaves, treedef = jax.tree.flatten(tree)
    places: dict[int, int] = {}
    shown = []
    for number, leaf in enumerate(leaves):
        if eqx.is_array(leaf):
            if id(leaf) in places:
                leaf = (jnp if isinstance(leaf, jax.Array) else np).array(leaf)
            places[id(leaf)] = number
        shown.append(leaf)
    whole = jax.tree.unflatten(treedef, shown)
    try:
        given = jax.tree.leaves(where(whole))
    except (AttributeError, IndexError, KeyError) as error:
        raise ValueError(_absent(whole, error)) from error
    ids = {id(leaf) for leaf in given if eqx.is_array(leaf)}
    if ids - places.keys():
        raise ValueError(
            f"`where` gave an array that is no part of the {type(tree).__name__} that "
            "it was shown, such as entries of an array or what a property computes: "
            "give fields, as in `lambda net: net.layers[-1]`."
        )
    chosen = {places[found] for found in ids}
    numbers = jax.tree.unflatten(treedef, range(len(leaves)))
    return jax.tree.map(lambda number: number in chosen, numbers)


def all_finite(tree: PyTree) -> bool:
    """Whether no number of a tree is NaN or infinite.

    Of arrays in the host's memory NumPy says so, where a program would compile for a
    second to run once; of others a program for all leaves.
    """
    groups: dict[Any, list[Any]] = {}  # a program has arrays of the same devices
    for leaf in filter(eqx.is_inexact_array, jax.tree.leaves(tree)):
        where = leaf.devices() if isinstance(leaf, jax.Array) else frozenset()
        if len(where) > 1 or any(device.platform != "cpu" for device in where):
            groups.setdefault(frozenset(where), []).append(leaf)
        elif not np.all(np.isfinite(leaf)):
            return False
    return all(bool(_all_finite(group)) for group in groups.values())


@jax.jit
def _all_finite(arrays: list[Array]) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in arrays]))


def in_single(array: Any) -> Array:
    """An array of JAX's, of half precision in single: counts and sums need more."""
    array = jnp.asarray(array)
    is_half = eqx.is_inexact_array(array) and jnp.finfo(array.dtype).bits < 32
    return array.astype(jnp.float32) if is_half else array


def on_device(tree: PyTree) -> PyTree:
    """Arrays of NumPy's as JAX's, in memory of their own, by no program at all."""
    put = lambda a: (
        a if isinstance(a, jax.Array) else jax.device_put(a, may_alias=False)
    )
    return jax.tree.map(put, tree)


def copied(tree: PyTree) -> PyTree:
    """The same arrays in memory of their own, each where it is, by no program at all.

    With types of their own: a weak one would have a loop traced twice.
    """

    def copy(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if getattr(leaf, "weak_type", False):  # which keys have not
            leaf = jax.lax.convert_element_type(leaf, leaf.dtype)
        return jax.device_put(leaf, may_alias=False)

    return jax.tree.map(copy, tree)


def _absent(tree: PyTree, error: Exception) -> str:
    """What is said of a `where` that finds nothing."""
    fields = dataclasses.fields(tree) if dataclasses.is_dataclass(tree) else ()
    names = [field.name for field in fields]
    there = f", which has {', '.join(names)}" if names else ""
    what = f"`where` is shown a {type(tree).__name__}{there}, and fails on it ({error})"
    if "module" in names:  # an adapter's
        return f"{what}: begin with what it wraps, as in `lambda net: net.module.…`."
    return f"{what}: give fields, as in `lambda net: net.layers[-1]`."


def pack(tree: Params) -> Params:
    """The same numbers in fewer arrays: the small ones of a type end to end in one.

    For arithmetic that treats all entries alike: each array costs a loop of its own in
    the compiled program for every sum over it, and the time to compile that.
    """
    leaves = jax.tree.leaves(tree)
    join = lambda parts: jnp.concatenate([part.ravel() for part in parts])
    groups = _groups(leaves)
    return [
        leaves[g[0]] if len(g) == 1 else join([leaves[n] for n in g]) for g in groups
    ]


def unpack(packed: Params, like: Params) -> Params:
    """What `pack` was given, a tree like `like`."""
    leaves, treedef = jax.tree.flatten(like)
    found: dict[int, Array] = {}
    for group, array in zip(_groups(leaves), packed, strict=True):
        ends = np.cumsum([leaves[n].size for n in group])
        parts = jnp.split(array.ravel(), ends[:-1])
        found |= {
            n: p.reshape(leaves[n].shape) for n, p in zip(group, parts, strict=True)
        }
    return jax.tree.unflatten(treedef, [found[n] for n in range(len(leaves))])


def as_types(tree: PyTree, like: PyTree) -> PyTree:
    """The arrays of a tree in the types of those of another."""
    return jax.tree.map(lambda a, b: jnp.asarray(a, b.dtype), tree, like)


def normal_like(
    tree: Params, *, key: PRNGKeyArray, is_broadcast: bool = False
) -> Params:
    """Independent standard normals with the structure, shapes and types of `tree`.

    Drawn packed: each draw is a loop of its own in the compiled program, and takes a
    fifth of a second to compile.

    Args:
        tree: of arrays.
        key: randomness.
        is_broadcast: whether a number meets many others in the same program: see
            `standard_normal`.
    """
    shapes = jax.eval_shape(pack, tree)
    keys = jax.random.split(key, len(shapes))
    drawn = [
        standard_normal(k, a.shape, a.dtype, is_broadcast=is_broadcast)
        for k, a in zip(keys, shapes, strict=True)
    ]
    return unpack(drawn, tree)


def _groups(leaves: Sequence[Array]) -> list[list[int]]:
    """The numbers of the leaves that share an array, in order."""
    groups: dict[Any, list[int]] = {}
    for number, leaf in enumerate(leaves):
        # As JAX has it: NumPy's float64 is its float32.
        dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
        name = dtype if leaf.size <= _SMALL else number
        groups.setdefault(name, []).append(number)
    return list(groups.values())
