"""Plain networks, as the random functions built around them see them."""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax

from .._tree import is_at
from .._types import Array, Float, Params, PyTree
from ..nn import PerExample
from ._state import batch_states, has_batch_state, with_named_state

Network: TypeAlias = Callable[..., PyTree[Float[Array, "batch ..."]]]
"""A module from a batch (rows first) to the likelihood's parameters of each row."""

OF_ONE_VECTOR = (eqx.nn.MLP, eqx.nn.Linear)
"""Equinox's networks that take one vector, and never a batch."""


def as_network(module: Network) -> Network:
    """The module, made to take a batch where it is known to take one example.

    Args:
        module: any callable; `eqx.nn.MLP` and `eqx.nn.Linear` are wrapped in
            `PerExample`, others are taken as they are.

    Raises:
        TypeError: if it cannot be called, is a class, or a random function already.
    """
    if hasattr(module, "num_strata"):
        raise TypeError(
            f"A network is needed, got the random function `{type(module).__name__}`: "
            "give the network that it is made of."
        )
    if isinstance(module, type):
        raise TypeError(
            f"A network is needed, got the class {module.__name__}: make one, as in "
            f"{module.__name__}(..., key=jax.random.key(0))."
        )
    if not callable(module):
        raise TypeError(
            f"A network must be callable, got {type(module).__name__}: give a module "
            "that maps a batch of inputs, rows first, to outputs."
        )
    module = PerExample(module) if isinstance(module, OF_ONE_VECTOR) else module
    return with_named_state(module)


def unwrapped(network: Network) -> Network:
    """The module that `as_network` was given, where it made it take a batch.

    Args:
        network: what `as_network` returned, or another.
    """
    is_wrapped = isinstance(network, PerExample) and network.num_axes == 1
    if is_wrapped and isinstance(network.module, OF_ONE_VECTOR):
        return network.module
    return network


def without_batch_state(module: Network) -> Network:
    """A network as `as_network` makes it, if it keeps no batch statistics."""
    network = as_network(module)
    if has_batch_state(network):
        raise ValueError(
            "The network keeps batch statistics (batch normalisation), so that its "
            "output for a row depends on the other rows: use `nn.FilterResponseNorm`, "
            "`eqx.nn.GroupNorm` or `LayerNorm` instead."
        )
    return network


def check_parameters(params: PyTree, purpose: str) -> None:
    """Refuse a network without parameters.

    Args:
        params: those that were found, or a tree with them.
        purpose: what they are for, and which they are, as in "to train
            (floating-point arrays)".

    Raises:
        ValueError: naming the usual cause.
    """
    if not any(map(eqx.is_inexact_array, jax.tree.leaves(params))):
        raise ValueError(
            f"The network has no parameters {purpose}: give one with weights. A "
            "function around a network, such as jax.vmap(network), hides them: give "
            "the network itself, which is mapped over rows."
        )


def split_where(
    network: PyTree, where: Callable[[Any], PyTree] | None
) -> tuple[PyTree, PyTree]:
    """The floating-point arrays chosen by `where`, and the rest; `None` elsewhere.

    Args:
        network: any tree.
        where: the network to one of its subtrees, or to a tuple of them. It chooses
            places: an array that stands elsewhere too is not chosen there.
    """
    # Batch statistics are no parameters.
    is_state = is_at(network, batch_states)
    is_chosen = jax.tree.map(
        lambda leaf, chosen, state: eqx.is_inexact_array(leaf) and chosen and not state,
        network,
        is_at(network, (lambda whole: whole) if where is None else where),
        is_state,
    )
    return eqx.partition(network, is_chosen)


def parameter_parts(network: Network) -> dict[str, Callable[[Any], PyTree]]:
    """What a network's parameters are for: where each part of them is, by its name.

    A network that tells them apart has a method of this name, such as one in whitened
    coordinates, with its `"start"`, `"path"` and `"points"`. Any other has one part,
    `"weights"`.

    Args:
        network: as it was before `as_network`.
    """
    own = getattr(network, "parameter_parts", None)
    return {"weights": lambda whole: whole} if own is None else own()


def parameter_masks(network: Network, params: Params) -> dict[str, PyTree[bool]]:
    """For each part of a network's parameters, which leaves of `params` it has.

    Args:
        network: as it was before `as_network`.
        params: some of its arrays, with `None` in place of the others.

    Returns:
        Trees like `params`, by the part's name: parts without any of them left out.
        What no part has is `"weights"`.
    """
    is_none = lambda node: node is None
    left, masks = jax.tree.map(lambda leaf: True, params), {}
    for name, where in parameter_parts(network).items():
        mask = jax.tree.map(
            lambda leaf, is_there: None if leaf is None else is_there,
            params,
            is_at(network, where),
            is_leaf=is_none,
        )
        mask = jax.tree.map(operator.and_, mask, left)
        left = jax.tree.map(operator.xor, left, mask)
        if any(jax.tree.leaves(mask)):
            masks[name] = mask
    if any(jax.tree.leaves(left)):
        masks["weights"] = left
    return masks
