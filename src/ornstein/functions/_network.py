"""Plain networks, as the random functions built around them see them."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax

from .._types import Array, Float, PyTree
from ..nn import PerExample

Network: TypeAlias = Callable[..., PyTree[Float[Array, "batch ..."]]]
"""A module from a batch (rows first) to the likelihood's parameters of each row."""

_OF_ONE_VECTOR = (eqx.nn.MLP, eqx.nn.Linear)


def as_network(module: Network) -> Network:
    """The module, made to take a batch where it is known to take one example.

    Args:
        module: any callable; `eqx.nn.MLP` and `eqx.nn.Linear` are wrapped in
            `PerExample`, others are taken as they are.

    Raises:
        TypeError: if it cannot be called.
    """
    if not callable(module):
        raise TypeError(
            f"A network must be callable, got {type(module).__name__}: give a module "
            "that maps a batch of inputs, rows first, to outputs."
        )
    return PerExample(module) if isinstance(module, _OF_ONE_VECTOR) else module


def call_network(
    network: Network, x: PyTree[Array]
) -> PyTree[Float[Array, "batch ..."]]:
    """Apply a network to a batch.

    Raises:
        ValueError: if it cannot take one, or loses rows.
    """
    try:
        output = network(x)
    except (TypeError, ValueError) as error:
        shapes = [leaf.shape for leaf in jax.tree.leaves(x)]
        raise ValueError(
            f"`{type(network).__name__}` failed on a batch of shape "
            f"{shapes[0] if len(shapes) == 1 else shapes} ({error}): networks take "
            "rows first; wrap one of a single example in `ornstein.nn.PerExample`, or "
            "`ChannelsFirst` for images."
        ) from error
    num_rows = jax.tree.leaves(x)[0].shape[0]
    for leaf in jax.tree.leaves(output):
        if leaf.ndim == 0 or leaf.shape[0] != num_rows:
            raise ValueError(
                f"`{type(network).__name__}` returned shape {leaf.shape} for "
                f"{num_rows} rows, but each row needs its own output: wrap a network "
                "of a single example in `ornstein.nn.PerExample`."
            )
    return output


def has_batch_state(module: PyTree) -> bool:
    """Whether a module keeps batch statistics (`eqx.nn.BatchNorm` and the like)."""
    is_index = lambda node: isinstance(node, eqx.nn.StateIndex)
    return any(map(is_index, jax.tree.leaves(module, is_leaf=is_index)))


def split_where(
    network: PyTree, where: Callable[[Any], PyTree] | None
) -> tuple[PyTree, PyTree]:
    """The floating-point arrays chosen by `where`, and the rest; `None` elsewhere.

    Args:
        network: any tree.
        where: the network to one of its subtrees, or to a tuple of them.
    """
    if where is None:
        return eqx.partition(network, eqx.is_inexact_array)
    chosen = {id(leaf) for leaf in jax.tree.leaves(where(network))}
    is_chosen = lambda leaf: eqx.is_inexact_array(leaf) and id(leaf) in chosen
    return eqx.partition(network, jax.tree.map(is_chosen, network))
