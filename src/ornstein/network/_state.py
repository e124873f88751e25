"""Batch statistics: where a network keeps them, and what it starts with."""

from typing import TypeVar

import equinox as eqx
import jax

from .._types import PyTree

_Module = TypeVar("_Module")


def batch_states(module: PyTree) -> list[eqx.nn.StateIndex]:
    """Where a module keeps batch statistics (`nn.BatchNorm` and the like)."""
    is_state = lambda node: isinstance(node, eqx.nn.StateIndex)
    return [n for n in jax.tree.leaves(module, is_leaf=is_state) if is_state(n)]


def has_batch_state(module: PyTree) -> bool:
    """Whether a module keeps batch statistics (`nn.BatchNorm` and the like)."""
    return bool(batch_states(module))


def with_named_state(module: _Module) -> _Module:
    """The module with batch statistics that are found by their place in it.

    By default Equinox finds them by an object made with the layer, so that no two
    networks are one program, and their state can't be printed. Its `make_with_state`
    names them too, but takes their first values out of the module.
    """
    if not has_batch_state(module):
        return module
    flat, treedef = jax.tree_util.tree_flatten_with_path(module, is_leaf=_is_index)
    new = {}  # by the old: a layer that stands in two places keeps one state
    nodes = []
    for path, node in flat:
        if _is_index(node) and not isinstance(node.marker, str):
            if node.marker not in new:
                new[node.marker] = eqx.nn.StateIndex(node.init)
                name = jax.tree_util.keystr(path)
                object.__setattr__(new[node.marker], "marker", name)
            node = new[node.marker]
        nodes.append(node)
    return jax.tree.unflatten(treedef, nodes)


def in_inference(model: _Module) -> _Module:
    """`eqx.nn.inference_mode`, of random functions too.

    Equinox's refuses a tree of some of a network's leaves (the means of `MeanField`,
    the samples of a chain), whose `inference` fields are `None`.

    Args:
        model: any tree.
    """
    has_mode = lambda node: getattr(node, "inference", None) is not None

    def modes(model: _Module) -> tuple:
        nodes = jax.tree.leaves(model, is_leaf=has_mode)
        return tuple(node.inference for node in nodes if has_mode(node))

    return eqx.tree_at(modes, model, replace_fn=lambda _: True)


def initial_state(module: PyTree) -> eqx.nn.State | None:
    """The batch statistics that a module starts with; `None` if it keeps none.

    Raises:
        ValueError: if the module gave them away (`eqx.nn.make_with_state` did).
    """
    if not has_batch_state(module):
        return None
    try:
        return eqx.nn.State(module)
    except ValueError as error:
        raise ValueError(
            f"`{type(module).__name__}` keeps batch statistics, whose first values "
            "`eqx.nn.make_with_state` took out of it: pass its state as `state=`."
        ) from error


def _is_index(node: object) -> bool:
    return isinstance(node, eqx.nn.StateIndex)
