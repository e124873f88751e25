"""What lies on several devices or in several processes, put together."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ._types import PyTree

_BYTES_AT_ONCE = 2**28


def gathered(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """The arrays of a tree, whole, on this process's first device."""
    if mesh is None:
        return tree
    place = lambda was, host: (
        jax.device_put(host)
        if isinstance(was, jax.Array) and isinstance(host, np.ndarray)
        else host
    )
    return jax.tree.map(place, tree, on_host(tree, mesh))


def on_host(tree: PyTree, mesh: Mesh | None) -> PyTree:
    """The arrays of a tree, whole, as NumPy's: no device ever has all of them.

    Typed keys are small, and stay on a device.
    """
    if mesh is None:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    apart = [i for i, leaf in enumerate(leaves) if _is_apart(leaf)]
    for some in _in_parts(apart, lambda i: leaves[i].nbytes):
        # In one program where that is all, which is compiled once.
        whole = _made_whole(mesh)([leaves[i] for i in some])
        for i, leaf in zip(some, whole, strict=True):
            leaves[i] = _of_this_process(leaf)
    return jax.tree.unflatten(structure, map(_of_this_process, leaves))


def _is_apart(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and not (
        leaf.is_fully_addressable or leaf.is_fully_replicated
    )


def _in_parts(indices: list[int], num_bytes: Callable[[int], int]) -> list[list[int]]:
    """Neighbours that have few bytes together, or one alone."""
    parts: list[list[int]] = []
    room = 0
    for i in indices:
        room -= num_bytes(i)
        if room < 0:
            parts.append([])
            room = _BYTES_AT_ONCE - num_bytes(i)
        parts[-1].append(i)
    return parts


def _of_this_process(leaf: Any) -> Any:
    """A copy of what this process's devices have whole, one of them or together."""
    if not isinstance(leaf, jax.Array):
        return leaf
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    data = jax.random.key_data(leaf) if is_key else leaf
    if not data.is_fully_addressable:
        data = data.addressable_data(0)
    array = np.array(data)  # no view: the next step may be given the array's memory
    if is_key:
        impl = jax.random.key_impl(leaf)
        return jax.random.wrap_key_data(jax.device_put(array), impl=impl)
    return array


@functools.cache
def _made_whole(mesh: Mesh) -> Callable[[PyTree], PyTree]:
    """Every array on every device."""
    return jax.jit(
        lambda tree: tree, out_shardings=NamedSharding(mesh, PartitionSpec())
    )
