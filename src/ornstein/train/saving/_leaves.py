"""Arrays of a tree as numpy arrays with names, and back: what files can hold."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import PyTree


def named_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """Every array leaf under its path; typed keys as their unsigned integers."""
    return {name: _to_numpy(leaf) for name, leaf in _array_leaves(tree)}


def with_arrays(like: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    """`like` with its array leaves replaced.

    Args:
        like: a tree of the same structure, shapes and types.
        arrays: as `named_arrays` gave them.

    Raises:
        ValueError: if a leaf is missing, left over, or of another shape or type.
    """
    wanted = {name: _to_numpy(leaf) for name, leaf in _array_leaves(like)}
    for here, there, where in ((wanted, arrays, "model"), (arrays, wanted, "file")):
        if alone := sorted(here.keys() - there.keys()):
            raise ValueError(
                f"{', '.join(alone[:3])} is in the {where} alone: build the model with "
                "the hyperparameters that the file was written with"
            )
    for name, leaf in wanted.items():
        saved = arrays[name]
        if (saved.shape, saved.dtype) != (leaf.shape, leaf.dtype):
            raise ValueError(
                f"{name} is {saved.dtype}{list(saved.shape)} in the file and "
                f"{leaf.dtype}{list(leaf.shape)} in the model: build the model with "
                "the hyperparameters that the file was written with"
            )

    def replace(path, leaf):
        return _from_numpy(leaf, arrays[jax.tree_util.keystr(path)])

    dynamic, static = eqx.partition(like, eqx.is_array)
    return eqx.combine(jax.tree_util.tree_map_with_path(replace, dynamic), static)


def plain_leaves(tree: PyTree) -> dict[str, str]:
    """Every leaf that is a plain number or text, under its path, as text.

    But for `inference`, which is a mode and nothing of the model.
    """
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path)
        if isinstance(leaf, int | float | str) and not name.endswith(".inference"):
            found[name] = _as_text(leaf)
    return found


def describe(arrays: dict[str, np.ndarray]) -> list[list[Any]]:
    """Name, shape and type of every array, as JSON."""
    return [[name, list(a.shape), a.dtype.name] for name, a in arrays.items()]


def _as_text(leaf: int | float | str) -> str:
    """As Python writes it: the same for 1 and 1.0."""
    if isinstance(leaf, str):
        return repr(leaf)
    is_whole = isinstance(leaf, int) or leaf.is_integer()
    return repr(int(leaf) if is_whole else float(leaf))


def _array_leaves(tree):
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_array))
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def _is_key(leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_numpy(leaf) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _from_numpy(like, array):
    if _is_key(like):
        impl = jax.random.key_impl(like)
        return jax.random.wrap_key_data(jax.device_put(array), impl=impl)
    return array if isinstance(like, np.ndarray) else jax.device_put(array)
