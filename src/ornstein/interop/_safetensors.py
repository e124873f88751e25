"""Our models' arrays as safetensors, which most other programs read."""

from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save

from .._files import write_atomically
from .._types import PyTree
from ..network import batch_states
from ._weights_file import WeightsFile, find_weights

_Model = TypeVar("_Model")


def save_safetensors(
    path: str | Path, model: PyTree, *, state: eqx.nn.State | None = None
) -> None:
    """Write a model's arrays as safetensors, whole or not at all.

    Each is under its path in the model, such as `layers.0.weight`: the names that
    `ornstein.torch.RandomFunction(model).state_dict()` has. Frozen ones are among them.

    Args:
        path: of the file, by convention with the suffix `.safetensors`.
        model: any tree: a random function, or `(model, likelihood)`.
        state: batch statistics, such as `fit.state`, to be written in the place of the
            model's initial ones; without them those are written.
    """
    indices = _with_statistics(model)
    if state is not None and indices:
        learned = [state.get(index) for index in indices]
        where = lambda model: [index.init for index in _with_statistics(model)]
        model = eqx.tree_at(where, model, learned)
    write_atomically(Path(path), save(_named(model), {"format": "np"}))


def _with_statistics(model: PyTree) -> list[eqx.nn.StateIndex]:
    """Trees that mirror a network, such as means of its weights, have empty ones."""
    return [index for index in batch_states(model) if jax.tree.leaves(index.init)]


def load_safetensors(path: str | Path, like: _Model) -> _Model:
    """`like` with the arrays of a file.

    Args:
        path: as `save_safetensors`, or `save` of a `RandomFunction`, wrote it.
        like: a model of the same structure and shapes. Its types stay: numbers are
            cast to them.

    Returns:
        The model.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for a pickle, a damaged file, or tensors that do not fit: all of
            them, by name.
    """
    file = WeightsFile(find_weights(Path(path)))
    wanted = _named(like)
    lists = {
        "missing": [name for name in wanted if name not in file.shapes],
        "extra": [name for name in file.shapes if name not in wanted],
        "of another shape": [
            f"{name} {file.shapes[name]}, not {array.shape}"
            for name, array in wanted.items()
            if name in file.shapes and file.shapes[name] != array.shape
        ],
    }
    bad = [f"{kind}: {'; '.join(found)}" for kind, found in lists.items() if found]
    if bad:
        raise ValueError(
            f"{file.name} does not fit this `{type(like).__name__}`. Tensors "
            f"{'. '.join(bad)}. Build the model as it was when the file was written."
        )

    def read(path: tuple, leaf: jax.Array) -> jax.Array:
        array = file.read(_name_of(path))
        if _is_key(leaf):
            words = jnp.asarray(array)
            return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
        return jnp.asarray(array, leaf.dtype)

    arrays, rest = eqx.partition(like, eqx.is_array)
    return eqx.combine(jax.tree_util.tree_map_with_path(read, arrays), rest)


def _named(model: PyTree) -> dict[str, np.ndarray]:
    """Every array under its path; typed keys as their words."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_array))
    plain = lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf
    return {_name_of(p): np.asarray(plain(leaf), order="C") for p, leaf in leaves}


def _name_of(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
