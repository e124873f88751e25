"""What is refused for its type alone, in a sentence."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def check_kind(name: str, value: object, kind: type, remedy: str) -> None:
    """Refuse what is not of a class, in a sentence.

    Args:
        name: of the argument.
        value: what was given for it.
        kind: what it should be.
        remedy: what to write.

    Raises:
        TypeError: if it is of another.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        given = f"the class {value.__name__}" if isinstance(value, type) else None
        raise TypeError(
            f"`{name}` must be {article} `{kind.__name__}`, got "
            f"{given or type(value).__name__}: write {remedy}."
        )


def check_key(key: Any) -> None:
    """Refuse what is no key of randomness, such as a seed.

    Raises:
        TypeError: if it is none.
    """
    dtype = getattr(key, "dtype", None)
    if dtype is None or not (
        jnp.issubdtype(dtype, jax.dtypes.prng_key) or dtype == jnp.uint32
    ):
        seed = key if isinstance(key, int) else 0
        raise TypeError(
            f"`key` must be a key, got {type(key).__name__}: write "
            f"key=jax.random.key({seed})."
        )


def check_arrays(name: str, tree: Any) -> None:
    """Refuse tables, and numbers that are in lists.

    Args:
        name: of the argument.
        tree: arrays, or a tree of them.

    Raises:
        TypeError: if a leaf is no array.
    """
    for leaf in jax.tree.leaves(tree):
        if not _is_array(leaf):
            kind = type(leaf if hasattr(leaf, "columns") else tree).__name__
            raise TypeError(
                f"`{name}` must be an array, rows first, got {kind}: write "
                f"numpy.asarray({name.rpartition('.')[2]}, 'float32') (a table with "
                "text or gaps is encoded by orn.data.load)."
            )


def _is_array(leaf: Any) -> bool:
    """NumPy's or JAX's: PyTorch's have types of their own."""
    dtype = getattr(leaf, "dtype", None)
    is_array = isinstance(leaf, jax.Array) or isinstance(dtype, np.dtype)
    return is_array and hasattr(leaf, "shape")
