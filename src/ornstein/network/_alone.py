"""Whether what a network gives for a row depends on the rows beside it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._types import Array, PyTree
from ._rows import Whole, looking, may_mix

_KEPT = np.array([1, 3])  # of the five rows of a look
_OTHERS = np.array([0, 2, 4])
_LAST = np.array([5, 6, 7])  # that may stand in their place
# One program, one shape: what a row has for itself comes out in the same bits.
_SAME = 1e-5
# Another number of rows, at other places: a product of matrices is rounded in another
# way, in half precision by a hundredth. What depends on their number changes by more.
_ALIKE = 0.05

Call = Callable[[Any, PyTree, eqx.nn.State | None], PyTree]


def check_alone(
    call: Call, module: Any, x: PyTree, state: eqx.nn.State | None = None
) -> None:
    r"""Refuse a network that gives a row other numbers within a batch than alone.

    A network of one example may run on a batch, too: `x - x.mean()` of a row then is of
    all rows, and what is predicted for one depends on those that stand beside it. So a
    network that is given batches whole, and does not say that it takes them
    (`nn.WholeBatch`; all of this package do), is called on five rows: with the others
    replaced by NaN, which whatever looks at them passes on; on two of them alone, at
    other places; and, if it runs on a row without a batch, on each row by itself.

    Nothing is looked at where arrays are being traced, or are not of this process, and
    where such a call fails: what is wrong with it then shows in the batch itself.

    Args:
        call: `(module, x, state)` to outputs, by way of `call_network`. The same
            function at each look, which compiles it once.
        module: the network, or a random function around it, in inference mode.
        x: inputs, rows first, as many as there are; five of them are looked at.
        state: batch statistics, or `None`.

    Raises:
        ValueError: saying how the network is wrapped.
    """
    if not may_mix(module) or not _is_here((module, x, state)):
        return
    num_rows = jax.tree.leaves(x)[0].shape[0]
    places = np.linspace(0, num_rows - 1, 8).astype(int)
    some = jax.tree.map(lambda leaf: np.asarray(leaf[places[:5]]), x)
    try:
        whole = _whole(call, module, some, state)
    except Exception:
        # What is said of shapes is said of the rows that were given.
        with looking():
            eqx.filter_eval_shape(call, module, jax.tree.map(_shape_of, x), state)
        return
    if not whole:
        return

    def output(rows: PyTree, *, is_mapped: bool = False) -> list[np.ndarray]:
        given = _output(call, module, rows, state, is_mapped=is_mapped)
        return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(given)]

    others = jax.tree.map(lambda leaf: np.asarray(leaf[places[_LAST]]), x)
    runs_alone = any(each.runs_alone for each in whole)
    try:
        with jax.debug_nans(False), jax.debug_infs(False):
            found = output(some)
            alone = output(jax.tree.map(lambda leaf: leaf[_KEPT[::-1]], some))
            mapped = output(some, is_mapped=True) if runs_alone else found
            try:
                beside = output(jax.tree.map(_beside_nan, some, others))
            except Exception:  # it looks for NaN itself
                beside = output(jax.tree.map(_beside, some, others))
    except Exception:
        return
    kept = [leaf[_KEPT] for leaf in found]
    is_alone = (
        _are_same(kept, [leaf[_KEPT] for leaf in beside])
        and _are_alike(kept, [leaf[::-1] for leaf in alone])
        and _are_alike(found, mapped)
    )
    if not is_alone:
        raise ValueError(_mixed(whole[0]))


def _shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _mixed(whole: Whole) -> str:
    num_axes = "" if whole.row_ndim == 1 else f", num_axes={whole.row_ndim}"
    return (
        f"`{whole.name}` gives a row other numbers within a batch than alone, so that "
        "predictions would depend on the rows that stand beside each other. If it "
        "takes one example, as one with `x - x.mean()` may, write "
        f"`ornstein.nn.PerExample(network{num_axes})`, and it is given each row by "
        "itself; if it is meant so, `ornstein.nn.WholeBatch(network)`."
    )


def _is_here(tree: PyTree) -> bool:
    """Whether all arrays have values, in this process."""
    arrays = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    return not any(isinstance(leaf, Tracer) for leaf in arrays) and all(
        leaf.is_fully_addressable for leaf in arrays
    )


def _beside(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """With others in place of the rows that are not kept."""
    rows = rows.copy()
    rows[_OTHERS] = others
    return rows


def _beside_nan(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    is_number = jnp.issubdtype(rows.dtype, jnp.inexact)
    return _beside(rows, np.full_like(others, np.nan) if is_number else others)


def _are_same(these: list[np.ndarray], those: list[np.ndarray]) -> bool:
    return all(
        _are_close(this, that, _SAME * _size(this, axis=0))
        for this, that in zip(these, those, strict=True)
    )


def _are_alike(these: list[np.ndarray], those: list[np.ndarray]) -> bool:
    """Outputs of other shapes are not compared."""
    return all(
        _are_close(this, that, _ALIKE * _size(this, axis=None))
        for this, that in zip(these, those, strict=True)
        if this.shape == that.shape
    )


def _size(values: np.ndarray, axis: int | None) -> np.ndarray:
    """The largest number, or each column's; infinite ones aside."""
    finite = np.nan_to_num(np.abs(values), posinf=0.0)
    return finite.max(axis=axis, keepdims=True, initial=0.0)


def _are_close(this: np.ndarray, that: np.ndarray, tolerance: np.ndarray) -> bool:
    return np.allclose(this, that, rtol=0.0, atol=tolerance, equal_nan=True)


@eqx.filter_jit
def _whole(
    call: Call, module: Any, x: PyTree, state: eqx.nn.State | None
) -> tuple[Whole, ...]:
    """What is given the batch as it is: known when this is traced, and kept."""
    with looking() as look:
        call(module, x, state)
    return tuple(look.whole)


@eqx.filter_jit
def _output(
    call: Call, module: Any, x: PyTree, state: eqx.nn.State | None, *, is_mapped: bool
) -> PyTree[Array]:
    with looking(is_mapped=is_mapped):
        return call(module, x, state)
