"""Batch statistics of given weights: one pass over the data."""

from itertools import islice
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, PRNGKeyArray, PyTree, RealScalar
from ..functions import AbstractRandomFunction
from ..network import has_batch_state, initial_state
from ..nn import BatchNorm
from ._shuffle import batch_indices


def recompute_statistics(
    model: AbstractRandomFunction,
    x: PyTree,
    *,
    key: PRNGKeyArray,
    state: eqx.nn.State | None = None,
    batch_size: int = 128,
    max_batches: int | None = None,
) -> eqx.nn.State | None:
    """Batch statistics for weights that training did not end with.

    Those of `nn.BatchNorm` become the mean of the batches' own, as in PyTorch's
    `update_bn`; those of `eqx.nn.BatchNorm` go on as its running averages do.

    Args:
        model: as it is in training. Norms that are in inference mode (those of a
            network given as `eqx.nn.inference_mode(network)`) keep their statistics.
        x: training inputs, rows first, in any order: batches are shuffled, as those of
            training are. Rows that don't fill a batch are left out.
        key: of the shuffle and of the draws.
        state: what to start from; by default what the model was made with.
        batch_size: rows in a batch; clipped to the data.
        max_batches: after so many it stops; `None` for all.

    Returns:
        The state, or `None` for a model without batch statistics.

    References:
        Izmailov et al. (2018), "Averaging Weights Leads to Wider Optima and Better
        Generalization", section 3.2.
    """
    if not has_batch_state(model):
        return None
    state = initial_state(model) if state is None else state
    if not _has_renewed(model):
        return state
    num_rows = jax.tree.leaves(x)[0].shape[0]
    batch_size = min(batch_size, num_rows)
    batches = batch_indices(num_rows, batch_size, key=key, start=0)
    num_batches = num_rows // batch_size
    if max_batches is not None:
        num_batches = min(num_batches, max_batches)
    for i, rows in enumerate(islice(batches, num_batches)):
        batch = jax.tree.map(lambda a, rows=rows: jnp.asarray(a[rows]), x)
        batch_key = jax.random.fold_in(key, i)
        share = jnp.asarray(i / (i + 1))  # of what was met before: a mean of all
        state = _next_state(model, batch, state, share, key=batch_key)
    return state


def _has_renewed(model: AbstractRandomFunction) -> bool:
    """Whether there are statistics that training renews."""

    def is_still(node: Any) -> bool:
        is_norm = isinstance(node, BatchNorm | eqx.nn.BatchNorm)
        # `None` where only some leaves are (the means of `MeanField`).
        return is_norm and (node.inference is None or node.inference)

    left = jax.tree.map(
        lambda node: None if is_still(node) else node, model, is_leaf=is_still
    )
    return has_batch_state(left)


@eqx.filter_jit
def _next_state(
    model: AbstractRandomFunction,
    x: PyTree[Array],
    state: eqx.nn.State | None,
    momentum: RealScalar,
    *,
    key: PRNGKeyArray,
) -> eqx.nn.State | None:
    # Where only some leaves are (the means of `MeanField`), there is no momentum.
    is_norm = lambda node: isinstance(node, BatchNorm) and node.momentum is not None

    def with_momentum(node):
        if not is_norm(node):
            return node
        return eqx.tree_at(lambda norm: norm.momentum, node, momentum)

    model = jax.tree.map(with_momentum, model, is_leaf=is_norm)
    return model(x, key=key, index=None, state=state).state
