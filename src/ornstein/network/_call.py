"""How any network is called."""

import equinox as eqx
import jax

from .._types import Array, PyTree
from ._failure import explain, explain_chance, scalar_rows
from ._module import Network
from ._rows import (
    NetworkOutput,
    apply,
    is_looking,
    name_of,
    rows_of,
    takes_batches,
)
from ._state import has_batch_state


def call_network(
    network: Network, x: PyTree[Array], state: eqx.nn.State | None = None
) -> NetworkOutput:
    """Apply a network to a batch, with its batch statistics if it keeps any.

    A network of a single example, as Equinox's own are, is mapped over the rows: which
    it is, is seen from the shapes that it takes and gives. One that solves differential
    equations has a method `solve`, from a batch to its output and a `SolveReport`.

    A network of one example may run on a batch, too, and mix its rows; what shows that
    are numbers, which `check_alone` looks at.

    Args:
        network: any.
        x: the batch.
        state: batch statistics, or `None`.

    Raises:
        ValueError: if the batch has not the shape that it takes, or it loses rows, or
            keeps batch statistics and is given none. Its other errors pass, with a note
            of where they were raised.
    """
    if has_batch_state(network) and state is None:
        raise ValueError(
            f"`{name_of(network)}` keeps batch statistics and was given none: "
            "pass `state=fit.state`, or `state=eqx.nn.State(model)` of the random "
            "function for a new one."
        )
    taken = rows_of(network, x, state)
    try:
        called = apply(network if taken is None else taken, x, state)
    except Exception as error:
        if taken is not None and not isinstance(error, TypeError | ValueError):
            raise
        found = explain(network, x, state, error)
        if found is error:
            raise
        raise found from error
    num_rows = jax.tree.leaves(x)[0].shape[0]
    for leaf in jax.tree.leaves(called.output):
        is_one_array = hasattr(x, "ndim")  # several are given whole
        if leaf.ndim == 0 and is_one_array and not takes_batches(network):
            raise ValueError(scalar_rows(name_of(network)))
        if leaf.ndim == 0 or leaf.shape[0] != num_rows:
            raise ValueError(
                f"`{name_of(network)}` returned shape {leaf.shape} for "
                f"{num_rows} rows, but each row needs its own output: give rows first, "
                "x[None] for a single example."
            )
    if taken is None and is_looking():
        by_chance = explain_chance(network, x, state)
        if by_chance is not None:
            raise ValueError(by_chance)
    return called
