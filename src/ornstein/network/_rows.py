"""Whether a network takes a batch or one example, seen from shapes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from ..nn import ChannelsFirst, Flattened, PerExample, PerRow, WholeBatch
from ._module import OF_ONE_VECTOR, Network
from ._report import SolveReport
from ._state import has_batch_state

PROBE_ROWS = 1_009
"""A prime, so that no layer has that size, nor a reshaped batch that many rows."""

_OVER_ROWS = (PerExample, ChannelsFirst, WholeBatch, *OF_ONE_VECTOR)
# Of anything; Equinox's other layers take one example of one shape, and no batch.
_WRAPPERS = (partial, jax.tree_util.Partial, eqx.nn.Sequential, eqx.nn.Lambda)


class NetworkOutput(NamedTuple):
    """What a network gives for a batch.

    Attributes:
        output: the likelihood's parameters for each row.
        state: batch statistics for the next call, or `None`.
        report: of the differential equations that it solved, or `None`.
    """

    output: PyTree[Float[Array, "batch ..."]]
    state: eqx.nn.State | None
    report: SolveReport | None


class Whole(NamedTuple):
    """A network that was given a batch as it is, and may mix the rows.

    Attributes:
        name: of its class.
        row_ndim: how many axes a row has.
        runs_alone: whether it runs on a row without a batch, too.
    """

    name: str
    row_ndim: int
    runs_alone: bool


@dataclass
class Look:
    """What `call_network` says of the networks that it meets, while one looks.

    Attributes:
        is_mapped: whether those that run on a row alone are mapped over rows.
        whole: what was given a batch as it is.
    """

    is_mapped: bool = False
    whole: list[Whole] = field(default_factory=list)


_LOOK: ContextVar[Look | None] = ContextVar("look", default=None)


@contextmanager
def looking(*, is_mapped: bool = False) -> Iterator[Look]:
    """See which networks a computation gives whole batches, as it is traced.

    Args:
        is_mapped: give them rows, where they take these.
    """
    token = _LOOK.set(Look(is_mapped))
    try:
        found = _LOOK.get()
        assert found is not None
        yield found
    finally:
        _LOOK.reset(token)


def is_looking() -> bool:
    """Whether somebody does."""
    return _LOOK.get() is not None


def apply(
    network: Network, x: PyTree[Array], state: eqx.nn.State | None
) -> NetworkOutput:
    """Call a network, whatever it takes and gives beside the rows.

    Args:
        network: of a batch.
        x: the batch.
        state: batch statistics, or `None`.
    """
    if has_batch_state(network):
        return NetworkOutput(*network(x, state), report=None)
    solve = getattr(network, "solve", None)
    if solve is None:
        return NetworkOutput(network(x), state, None)
    output, report = solve(x)
    return NetworkOutput(output, state, report)


def rows_of(network: Network, x: Any, state: eqx.nn.State | None) -> Network | None:
    """The network as it takes a batch: itself, or mapped over the rows.

    Seen from shapes alone, of a number of rows that is no size of a layer: a matrix of
    weights may fit as many rows as it has columns.

    Args:
        network: any.
        x: the batch.
        state: batch statistics, or `None`.

    Returns:
        `None` if it takes neither batches nor rows.
    """
    look = _LOOK.get()
    if takes_batches(network) or getattr(x, "ndim", 0) == 0:
        if look is not None and may_mix(network):
            look.whole.append(Whole(name_of(network), _row_ndim(x), runs_alone=False))
        return network
    mapped = PerExample(network, num_axes=x.ndim - 1)
    if _gives_rows(network, x, state):
        if look is None:
            return network
        runs_alone = _gives_rows(mapped, x, state, 2)
        look.whole.append(Whole(name_of(network), x.ndim - 1, runs_alone))
        return mapped if look.is_mapped and runs_alone else network
    return mapped if _gives_rows(mapped, x, state, 2) else None


def takes_batches(network: Network) -> bool:
    """Whether a network says that it takes batches, rows first: this package's do.

    Args:
        network: any; `nn.Flattened` says what that says which it gives vectors to.
    """
    while isinstance(network, Flattened):
        network = network.network
    return _package(type(network)) == _package(Look)


def may_mix(module: PyTree) -> bool:
    """Whether a tree has parts that nobody has said to keep rows apart.

    Args:
        module: a network, or a random function.
    """

    def is_foreign(node: Any) -> bool:
        is_function = hasattr(node, "num_strata")  # which says what it draws
        if isinstance(node, _OVER_ROWS) or is_function or not callable(node):
            return False
        if isinstance(node, _WRAPPERS):
            return True
        # Of a copy of a module Equinox keeps names, too, which may be `None`.
        is_named = hasattr(node, "__qualname__") and not isinstance(node, eqx.Module)
        of: Any = node if is_named else type(node)
        is_layer = (getattr(of, "__module__", None) or "").startswith("equinox.nn.")
        return not is_layer and _package(of) not in (_package(Look), "jax", "jaxlib")

    is_end = lambda node: isinstance(node, _OVER_ROWS) or is_foreign(node)
    return any(map(is_foreign, jax.tree.leaves(module, is_leaf=is_end)))


def name_of(network: Network) -> str:
    """The class of a network, as its author knows it.

    Args:
        network: perhaps in an adapter.
    """
    return type(without_adapters(network)).__name__


def without_adapters(network: Network) -> Network:
    """What an adapter of `nn` was made around.

    Args:
        network: perhaps in an adapter.
    """
    while True:
        if isinstance(network, PerExample | ChannelsFirst):
            network = network.module
        elif isinstance(network, Flattened | WholeBatch):
            network = network.network
        else:
            return network


def output_of(
    network: Network, x: Array, state: eqx.nn.State | None
) -> PyTree[jax.ShapeDtypeStruct]:
    """The shapes that a network gives for `PROBE_ROWS` rows.

    Args:
        network: of a batch.
        x: a batch of others.
        state: batch statistics, or `None`.
    """
    is_per_row = lambda node: isinstance(node, PerRow)

    def output(network: Network, x: Array, state: eqx.nn.State | None) -> PyTree:
        def repeated(node: Any) -> Any:
            if not is_per_row(node):
                return node
            rows = jnp.arange(PROBE_ROWS) % node.value.shape[0]
            return PerRow(node.value[rows])

        network = jax.tree.map(repeated, network, is_leaf=is_per_row)
        return apply(network, x, state).output

    rows = jax.ShapeDtypeStruct((PROBE_ROWS, *x.shape[1:]), x.dtype)
    return eqx.filter_eval_shape(output, network, rows, state)


def _gives_rows(
    network: Network, x: Array, state: eqx.nn.State | None, least_ndim: int = 1
) -> bool:
    """Whether as many rows come out as go in."""
    try:
        found = output_of(network, x, state)
    except Exception:
        return False
    return all(
        leaf.ndim >= least_ndim and leaf.shape[0] == PROBE_ROWS
        for leaf in jax.tree.leaves(found)
    )


def _row_ndim(x: PyTree[Array]) -> int:
    return max(leaf.ndim for leaf in jax.tree.leaves(x)) - 1


def _package(of: Any) -> str:
    return (getattr(of, "__module__", None) or "").partition(".")[0]
