r"""The generalised Gauss-Newton matrix of a network's training rows.

$H = \sum_i J_i^T \Lambda_i J_i$ over all N rows: $J_i$ is the Jacobian of the output
for row i by the weights, and $\Lambda_i = -\nabla_f^2 \log p(y_i | f)$ at that output.
For normal noise and for classes it does not depend on $y_i$, and $\Lambda = R R^T$ in
closed form, so that $H$ is the sum of squares of $R^T J$: never of mixed signs.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, Float, Params, PyTree
from ...likelihood import (
    AbstractLikelihood,
    Bernoulli,
    Categorical,
    Gaussian,
    fit_columns,
    num_outputs_of,
)
from ...network import Network, call_network

_BLOCK_NUMBERS = 2**24
"""Entries of the Jacobians of a block of rows, at most: 64 MB."""
_BLOCK_ROWS = 1_000


class GaussNewton(NamedTuple):
    """What the training rows say around trained weights.

    Attributes:
        curvature: H, of the weights in the order of `ravel_pytree`; its diagonal alone
            where that was asked for.
        log_likelihood: of all rows at the trained weights, nats.
        sum_of_squares: of residuals in units of the noise; 0 without normal noise.
    """

    curvature: Float[np.ndarray, "..."]
    log_likelihood: float
    sum_of_squares: float


def gauss_newton(
    network_at: Callable[[Params], Network],
    mode: Params,
    likelihood: AbstractLikelihood,
    data: tuple[PyTree, PyTree],
    *,
    state: eqx.nn.State | None,
    is_diagonal: bool,
) -> GaussNewton:
    """H, summed in double precision.

    Args:
        network_at: from weights to the network with them, as it is in prediction.
        mode: the trained weights.
        likelihood: of the targets.
        data: inputs and targets, rows first.
        state: batch statistics, or `None`.
        is_diagonal: only its diagonal.
    """
    num_rows = jax.tree.leaves(data)[0].shape[0]
    dim = sum(leaf.size for leaf in jax.tree.leaves(mode))
    num_outputs = count_outputs(network_at(mode), likelihood, data[0], state)
    size = min(num_rows, _BLOCK_ROWS, max(1, _BLOCK_NUMBERS // (num_outputs * dim)))
    curvature = np.zeros(dim if is_diagonal else (dim, dim))
    log_likelihood, squares = 0.0, 0.0
    for start in range(0, num_rows, size):
        # The last block repeats its last row, which then does not count again.
        rows = np.arange(start, start + size)
        counts = jnp.asarray(rows < num_rows, jnp.result_type(float))
        rows = np.minimum(rows, num_rows - 1)
        block = jax.tree.map(lambda leaf, rows=rows: jnp.asarray(leaf[rows]), data)
        found = _block(
            network_at, mode, likelihood, block, counts, state, is_diagonal=is_diagonal
        )
        part, log_probs, own_squares = (np.asarray(a, np.float64) for a in found)
        curvature += part if is_diagonal else part.T @ part
        log_likelihood += float(log_probs.sum())
        squares += float(own_squares)
    return GaussNewton(curvature, log_likelihood, squares)


def count_outputs(
    network: Network,
    likelihood: AbstractLikelihood,
    x: PyTree,
    state: eqx.nn.State | None,
) -> int:
    """The length of the last axis of a network's output, without computing it.

    Args:
        network: of a batch.
        likelihood: of the targets.
        x: inputs, rows first.
        state: batch statistics, or `None`.
    """
    row = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape[1:]), leaf.dtype), x
    )
    call = lambda network, row, state: call_network(network, row, state).output
    output = eqx.filter_eval_shape(call, network, row, state)
    return num_outputs_of(likelihood, output)


@eqx.filter_jit
def _block(
    network_at: Callable[[Params], Network],
    mode: Params,
    likelihood: AbstractLikelihood,
    block: tuple[PyTree, PyTree],
    counts: Float[Array, " rows"],
    state: eqx.nn.State | None,
    *,
    is_diagonal: bool,
):
    """Rows of $R^T J$, or the sum of their squares; log likelihoods; squares."""

    def one(row: PyTree[Array], count: Float[Array, ""]):
        def output_of(weights: Params) -> Float[Array, " outputs"]:
            rows = jax.tree.map(lambda leaf: leaf[None], row)
            return call_network(network_at(weights), rows, state).output[0]

        output, pull_back = jax.vjp(output_of, mode)
        root = curvature_root(likelihood, output) * count.astype(output.dtype)
        (parts,) = jax.vmap(pull_back)(root.T)
        leaves = [leaf.reshape(len(root), -1) for leaf in jax.tree.leaves(parts)]
        return output, jnp.concatenate(leaves, axis=1)

    x, y = block
    outputs, scaled = jax.vmap(one)(x, counts)
    log_probs = likelihood.log_prob(outputs, y)
    log_probs = log_probs * counts.astype(log_probs.dtype)
    squares = jnp.zeros(())
    if isinstance(likelihood, Gaussian):
        scale = jnp.broadcast_to(likelihood.scale.astype(outputs.dtype), outputs.shape)
        z = (fit_columns(y, outputs) - outputs) / scale
        squares = jnp.sum(z**2 * counts[:, None].astype(z.dtype))
    if is_diagonal:
        return jnp.sum(scaled**2, axis=(0, 1)), log_probs, squares
    return scaled.reshape(-1, scaled.shape[-1]), log_probs, squares


def curvature_root(
    likelihood: AbstractLikelihood, output: Float[Array, " outputs"]
) -> Float[Array, "outputs outputs"]:
    r"""$R$ with $R R^T = -\nabla_f^2 \log p(y | f)$.

    Args:
        likelihood: `Gaussian`, `Categorical` or `Bernoulli`.
        output: $f$ of one row.
    """
    if isinstance(likelihood, Gaussian):
        scale = jnp.broadcast_to(likelihood.scale.astype(output.dtype), output.shape)
        return jnp.diag(1 / scale)
    if isinstance(likelihood, Bernoulli):
        probs = jax.nn.sigmoid(output)
        return jnp.diag(jnp.sqrt(probs * (1 - probs)))
    probs = jax.nn.softmax(output)
    return jnp.diag(jnp.sqrt(probs)) - jnp.outer(probs, jnp.sqrt(probs))


def check_likelihood(likelihood: AbstractLikelihood) -> None:
    """Refuse a likelihood without a curvature that is the same for all targets.

    Raises:
        ValueError: naming those that have one.
    """
    if not isinstance(likelihood, Gaussian | Categorical | Bernoulli):
        raise ValueError(
            f"`fit_laplace` knows the curvature of `Gaussian`, `Categorical` and "
            f"`Bernoulli`, and not of `{type(likelihood).__name__}`, whose loss has no "
            "curvature that is positive and the same for all targets: train with one "
            "of those, or use `MeanField`, `Ensemble` or `sample`."
        )
