r"""The noise of stochastic gradients: its covariance, and how it compares with ours.

Notation: $V = \mathrm{Cov}[\nabla \tilde U]$, the covariance of a batch's gradient of U
(eq. 31 of Jospin et al. 2022). For n of N rows drawn with replacement
$V = \frac{N^2}{n} B B^\top$, with $B B^\top$ the covariance of the gradients of single
examples; the prior is the same for all of them and does not matter.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree

from .._types import Array, Float, Params, PRNGKeyArray, Shaped
from ..potential import AbstractPotential, Potential
from ._base import AbstractMinibatchKernel, SGState


def gradient_noise_covariance(
    potential: AbstractPotential,
    position: Params,
    *,
    key: PRNGKeyArray,
    num_rows: int = 1000,
) -> Float[Array, "dim dim"]:
    """V as a matrix, its axes in the order of `ravel_pytree`.

    Args:
        potential: a `Potential`, whose single rows are looked at; of any other, batch
            gradients are.
        position: where.
        key: of the rows.
        num_rows: rows (or batches) that V is estimated from; every row, and then
            exactly, where that is at least N.

    Raises:
        ValueError: for fewer than 2 rows.
    """
    draws = _draws(potential, num_rows, key)
    flat = lambda item: ravel_pytree(draws.gradient(position, item))[0]
    rows = jax.lax.map(flat, draws.items, batch_size=min(100, len(draws.items)))
    centred = rows - jnp.mean(rows, axis=0, keepdims=True)
    return draws.factor * centred.T @ centred


def gradient_noise_variance(
    potential: AbstractPotential,
    position: Params,
    *,
    key: PRNGKeyArray,
    num_rows: int = 1000,
) -> Params:
    """The diagonal of V, with the position's structure and no more memory than that.

    Args:
        potential: see `gradient_noise_covariance`.
        position: where.
        key: of the rows.
        num_rows: see `gradient_noise_covariance`.

    Raises:
        ValueError: for fewer than 2 rows.
    """
    draws = _draws(potential, num_rows, key)

    def add(sums, item):
        # Welford's updates: sums of raw squares lose V where the mean is large.
        count, mean, squares = sums
        count += 1
        gradient = draws.gradient(position, item)
        before = jax.tree.map(jnp.subtract, gradient, mean)
        mean = jax.tree.map(lambda m, d: m + d / count.astype(d.dtype), mean, before)
        squares = jax.tree.map(
            lambda s, d, g, m: s + d * (g - m), squares, before, gradient, mean
        )
        return (count, mean, squares), None

    zeros = jax.tree.map(jnp.zeros_like, position)
    start = (jnp.zeros((), jnp.int32), zeros, zeros)
    (_, _, squares), _ = jax.lax.scan(add, start, draws.items)
    return jax.tree.map(lambda s: draws.factor * s, squares)


def noise_ratio(
    potential: AbstractPotential,
    state: SGState,
    kernel: AbstractMinibatchKernel,
    *,
    key: PRNGKeyArray,
    num_rows: int = 100,
) -> Float[Array, ""]:
    r"""Gradient noise over injected noise, in the direction where it is largest.

    For `SGLD` $\varepsilon \lambda_{\max}(V) / (4 T)$, and likewise, with its own two
    variances, for every kernel: once it is below 0.1 the chain samples rather than
    optimises, and its states may be kept (automatic burn-in; Welling & Teh 2011,
    section 4.2). Infinite for kernels that inject no noise.

    $\lambda_{\max}$ is that of the rows' Gram matrix, so that no matrix of D × D is
    made; memory is `num_rows` gradients.

    Args:
        potential: see `gradient_noise_covariance`.
        state: of the chain.
        kernel: that moves it.
        key: of the rows.
        num_rows: rows that V is estimated from. Few rows overestimate it: the safe
            side.

    Raises:
        ValueError: for fewer than 2 rows.
    """
    draws = _draws(potential, num_rows, key)
    rows = jax.lax.map(
        lambda item: draws.gradient(state.position, item),
        draws.items,
        batch_size=min(100, len(draws.items)),
    )
    weight = kernel.noise_weight(state)
    is_cold = jnp.array([jnp.isinf(w).any() for w in jax.tree.leaves(weight)]).any()
    if not jax.tree_util.all_leaves([weight]) or jnp.ndim(weight):  # one an entry
        rows = jax.tree.map(lambda g, w: g * jnp.sqrt(w)[None], rows, weight)
        weight = 1.0
    gram = jnp.zeros((len(draws.items),) * 2)
    for leaf in jax.tree.leaves(rows):
        centred = (leaf - jnp.mean(leaf, axis=0, keepdims=True)).reshape(len(leaf), -1)
        gram += (centred @ centred.T).astype(gram.dtype)
    largest = draws.factor * jnp.linalg.eigvalsh(gram)[-1]
    # Of rows that are alike it is 0, or rounds below; of infinite ones no number.
    is_quiet = largest <= 0
    ratio = jnp.where(is_quiet, 0.0, weight * largest)
    return jnp.where(is_cold & ~is_quiet, jnp.inf, ratio)


class _Draws(NamedTuple):
    r"""Gradients $g_i$ with $V = \mathrm{factor} \sum (g_i - \bar g)(\cdot)^\top$.

    Attributes:
        gradient: of a position and an item.
        items: rows or keys.
        factor: what the sum over items is multiplied by.
    """

    gradient: Callable
    items: Shaped[Array, " num_draws"]
    factor: float


def _draws(potential: AbstractPotential, num_rows: int, key: PRNGKeyArray) -> _Draws:
    if num_rows < 2:
        raise ValueError(
            f"`num_rows` must be at least 2, got {num_rows}: a covariance needs them."
        )
    if not isinstance(potential, Potential):
        gradient = lambda position, item: jax.grad(
            lambda q: potential.estimate(q, key=item)
        )(position)
        return _Draws(gradient, jr.split(key, num_rows), 1 / (num_rows - 1))
    num_there = potential.num_rows

    def row_gradient(position, row):
        return jax.tree.map(
            lambda g: g[0], potential.row_gradients(position, row[None])
        )

    scale = potential.num_data**2 / potential.batch_size
    if num_rows >= num_there:
        return _Draws(row_gradient, jnp.arange(num_there), scale / num_there)
    rows = jr.randint(key, (num_rows,), 0, num_there)
    return _Draws(row_gradient, rows, scale / (num_rows - 1))
