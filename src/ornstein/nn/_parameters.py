"""What can be said of any module's parameters."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import PyTree, RealScalar

_Module = TypeVar("_Module")


def num_parameters(module: PyTree) -> int:
    """How many floating-point numbers a module holds, batch statistics left out.

    Args:
        module: any tree. From `eqx.filter_eval_shape` it costs no memory.
    """
    leaves = jax.tree.leaves(module, is_leaf=_is_state_index)
    return sum(leaf.size for leaf in leaves if _is_inexact(leaf))


def scale_parameters(module: _Module, scale: float) -> _Module:
    """The module with every parameter times `scale`; at 0, a layer is the zero map."""
    is_own = lambda leaf: not _is_state_index(leaf) and eqx.is_inexact_array(leaf)
    own, rest = eqx.partition(module, is_own, is_leaf=_is_state_index)
    return eqx.combine(_times(own, scale), rest, is_leaf=_is_state_index)


@jax.jit
def _times(tree: PyTree, scale: RealScalar) -> PyTree:
    return jax.tree.map(lambda leaf: leaf * scale, tree)


def fan_ins(module: PyTree) -> PyTree[int | None]:
    """For every parameter, how many inputs meet in one output; `None` for other leaves.

    Batch statistics are no parameters.

    A module with a `fan_in` (our layers, `Concat`, `ConcatCoord`) answers for all that
    it holds, its bias too. Elsewhere a matrix or kernel is taken to be Equinox's, out
    features first, and anything smaller (a gate, a bias, a β) to have one input.
    """

    def of_leaf(leaf) -> int | None:
        if not eqx.is_inexact_array(leaf):
            return None
        return leaf.size // leaf.shape[0] if leaf.ndim > 1 else 1

    def of_node(node):
        if _is_state_index(node):
            return jax.tree.map(lambda _: None, node)
        if not _knows_fan_in(node):
            return of_leaf(node)
        return jax.tree.map(
            lambda leaf: node.fan_in if eqx.is_inexact_array(leaf) else None, node
        )

    return jax.tree.map(of_node, module, is_leaf=_is_special)


def _knows_fan_in(node: object) -> bool:
    return isinstance(node, eqx.Module) and hasattr(node, "fan_in")


def _is_special(node: object) -> bool:
    return _knows_fan_in(node) or _is_state_index(node)


def _is_state_index(node: object) -> bool:
    return isinstance(node, eqx.nn.StateIndex)


def _is_inexact(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct) and (
        jnp.issubdtype(leaf.dtype, jnp.inexact)
    )
