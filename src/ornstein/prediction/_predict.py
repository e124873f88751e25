"""Draws of a fitted random function on new rows."""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from .._gather import gathered
from .._kinds import check_arrays, check_key
from .._memory import room_for
from .._mesh import (
    DRAWS,
    ROWS,
    check_divides,
    check_same,
    checked_mesh,
    everywhere,
    fingerprint,
    num_along,
    put_rows,
    rows_in_parts,
    without,
)
from .._sentence import Choice, Sentence
from .._types import Array, PRNGKeyArray, PyTree
from ..functions import AbstractRandomFunction, check_rows_alone, map_draws
from ..likelihood import AbstractLikelihood, of_unweighted
from ..network import in_inference
from ._fitted import Fitted, FittedByDraw, check_fitted
from ._prediction import Prediction
from ._summary import Summary, summarise

# Rows in a block, unless the caller says: activations of 1,000 images fit anywhere.
_BATCH_SIZE = 1_000
# Fewer are padded to these: a network's time for them is below a call's.
_FEW_ROWS = 64
# Draws side by side on an accelerator, unless the caller says.
_DRAWS_AT_ONCE = 8
_SPARING = Sentence(
    "{}",
    Choice(
        "lower `draws_at_once` (to 1), `batch_size` or `num_draws`, or set "
        "`keep_draws=False`",
        "ask for fewer {draws} (of `train` and `sample` {test_draws}), or give fewer "
        "rows at a time",
    ),
)


def predict(
    fit: Fitted,
    x: PyTree,
    *,
    key: PRNGKeyArray,
    num_draws: int = 32,
    draws_at_once: int | None = None,
    batch_size: int | None = None,
    keep_draws: bool = True,
    pad_rows: bool = True,
    mesh: Mesh | None = None,
) -> Prediction:
    """The posterior predictive distribution of each row of `x`.

    Draw i is `fit.model(block, key=key, index=i)`: one function for all rows, so that
    neither the blocks nor the other rows change what a row gets; batch statistics are
    those of training, and `eqx.nn.inference_mode` is on. A model with strata
    (ensemble members, stored samples) uses stratum i mod `num_strata`; give `num_draws`
    as a multiple of it, or the first strata count once more than the others.

    Args:
        fit: what `fit` or `sample` returned.
        x: inputs, rows first; an array or a tree of arrays.
        key: which functions are drawn.
        num_draws: how many.
        draws_at_once: draws computed side by side. By default 1 on a CPU (`lax.map`:
            a `vmap` over kernels is several times slower there) and 8 elsewhere.
        batch_size: the largest block of rows; 1,000 by default.
        keep_draws: `False` keeps means over draws and frees each block's draws, for
            data whose draws do not fit in memory.
        pad_rows: compute blocks of a few sizes alone, so that other numbers of rows
            compile nothing: up to 64 compile once (images: 1, up to 8, up to 64), twice
            as many once more, and so on up to `batch_size`. A row's numbers are then
            the same bits in any request of the same size. `False` computes equal blocks
            with less than one row too many in each.
        mesh: several devices, as in `jax.make_mesh((2, 4), ("data", "draws"))`: `data`
            shares the rows of a block, `draws` the draws. The numbers are those of one
            device but for rounding.

    Returns:
        A `Prediction`.

    Raises:
        MemoryError: if there is no room for a block, naming what needs less.
        ValueError: for no rows, leaves of different lengths, NaN or infinity in `x`, a
            count below 1, `keep_draws=False` with a likelihood without moments, or a
            network of one's own that mixes rows.
    """
    check_fitted(fit)
    check_key(key)
    if hasattr(x, "x") and hasattr(x, "y"):
        raise TypeError(
            f"`x` must be inputs alone, got {type(x).__name__}: write `data.test.x`."
        )
    check_arrays("x", x)
    num_rows = _check_rows(x)
    if draws_at_once is None:
        draws_at_once = 1 if jax.default_backend() == "cpu" else _DRAWS_AT_ONCE
    batch_size = _BATCH_SIZE if batch_size is None else batch_size
    for name, count in [
        ("num_draws", num_draws),
        ("draws_at_once", draws_at_once),
        ("batch_size", batch_size),
    ]:
        if count < 1:
            raise ValueError(f"`{name}` must be at least 1, got {count}.")
    if isinstance(fit, FittedByDraw):
        fit = fit.for_draws(num_draws)
    is_given, mesh = mesh is not None, checked_mesh(mesh, (DRAWS, *ROWS), "predict")
    if is_given:
        check_divides(mesh, (DRAWS,), "num_draws", num_draws)
    elif num_draws % num_along(mesh, (DRAWS,)):
        mesh = without(mesh, DRAWS)
    said = lambda: {"x": fingerprint(x), "key": fingerprint(key)}
    check_same(mesh, "predict", said)
    model, likelihood = in_inference(fit.model), of_unweighted(fit.likelihood)
    check_rows_alone(model, x, fit.state)

    fixed = everywhere((model, fit.state, likelihood, key), mesh)
    blocks, start = [], 0
    for size in _block_sizes(
        num_rows,
        batch_size,
        pad_rows=pad_rows and not _is_flat(x),
        is_vectors=_is_vectors(x),
        multiple=num_along(mesh, ROWS),
    ):
        # Padding repeats the last row: real values keep adaptive solvers at ease.
        rows = np.minimum(np.arange(start, start + size), num_rows - 1)
        start += size
        with room_for("the predictions", _SPARING):
            block = _predict_block(
                *fixed,
                put_rows(jax.tree.map(lambda leaf, rows=rows: leaf[rows], x), mesh),
                mesh,
                num_draws=num_draws,
                draws_at_once=min(draws_at_once, num_draws),
                keep_draws=keep_draws,
            )
        blocks.append(gathered(block, mesh))

    outputs, summaries = zip(*blocks, strict=True)
    join = lambda axis, *leaves: _joined(leaves, num_rows, axis)
    return Prediction(
        jax.tree.map(partial(join, 1), *outputs) if keep_draws else None,
        likelihood,
        summary=jax.tree.map(partial(join, 0), *summaries),
    )


@eqx.filter_jit
def _predict_block(
    model: AbstractRandomFunction,
    state: eqx.nn.State | None,
    likelihood: AbstractLikelihood,
    key: PRNGKeyArray,
    x: PyTree,
    mesh: Mesh | None,
    *,
    num_draws: int,
    draws_at_once: int,
    keep_draws: bool,
) -> tuple[PyTree | None, Summary | None]:
    with rows_in_parts(mesh):
        outputs = map_draws(
            lambda draw: draw.output,
            model,
            x,
            key=key,
            num_draws=num_draws,
            state=state,
            draws_at_once=draws_at_once,
            mesh=mesh,
        )
    summary = summarise(likelihood, outputs)
    if summary is None and not keep_draws:
        raise ValueError(
            f"`{type(likelihood).__name__}` has no mean, and `keep_draws=False` keeps "
            "nothing else: call `predict` with `keep_draws=True`."
        )
    return outputs if keep_draws else None, summary


def pad_few(x: PyTree) -> PyTree:
    """Rows, with the last again up to one of the few sizes of `pad_rows=True`.

    So that whatever is computed of a prediction has one of a few shapes, too.

    Args:
        x: inputs, rows first; more than fit into a block are left as they are.
    """
    num_rows = _check_rows(x)
    if num_rows > _BATCH_SIZE or _is_flat(x):
        return x
    size = _padded(num_rows, _BATCH_SIZE, is_vectors=_is_vectors(x))
    rows = np.minimum(np.arange(size), num_rows - 1)
    return jax.tree.map(lambda leaf: leaf[rows], x)


def _block_sizes(
    num_rows: int,
    batch_size: int,
    *,
    pad_rows: bool,
    is_vectors: bool,
    multiple: int,
) -> list[int]:
    """The rows of each block, those of the last with its padding."""
    up = lambda size: -(-size // multiple) * multiple
    if not pad_rows:
        num_blocks = -(-num_rows // batch_size)
        size = up(-(-num_rows // num_blocks))
        return [size] * -(-num_rows // size)
    num_full, rest = divmod(num_rows, up(batch_size))
    sizes = [up(batch_size)] * num_full
    if rest:
        sizes.append(up(_padded(rest, up(batch_size), is_vectors=is_vectors)))
    return sizes


def _joined(blocks: Sequence[Array], num_rows: int, axis: int) -> Array:
    """The first rows of blocks, one after the other."""
    if [device.platform for device in blocks[0].devices()] == ["cpu"]:
        # By NumPy: JAX would compile the cut for each number of rows.
        arrays = [np.asarray(a) for a in blocks]
        whole = np.concatenate(arrays, axis) if len(arrays) > 1 else arrays[0]
        return jax.device_put(whole[(slice(None),) * axis + (slice(num_rows),)])
    return lax.slice_in_dim(jnp.concatenate(blocks, axis), 0, num_rows, axis=axis)


def _padded(num_rows: int, batch_size: int, *, is_vectors: bool) -> int:
    """The least of a few sizes that holds these rows."""
    sizes = [_FEW_ROWS] if is_vectors else [1, 8, _FEW_ROWS]
    while sizes[-1] < batch_size:
        sizes.append(2 * sizes[-1])
    return min(next(size for size in sizes if size >= num_rows), batch_size)


def _is_vectors(x: PyTree) -> bool:
    return all(leaf.ndim == 2 for leaf in jax.tree.leaves(x))


def _is_flat(x: PyTree) -> bool:
    """Whether it may be one row without its axis, to be met as long as it is."""
    return all(leaf.ndim == 1 for leaf in jax.tree.leaves(x))


def _check_rows(x: PyTree) -> int:
    lengths = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(x)}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"`x` has {sorted(lengths)} rows, but every leaf needs the same number, at "
            "least 1: give rows first, x[None] for a single example."
        )
    for leaf in jax.tree.leaves(x):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not np.all(np.isfinite(leaf)):
            raise ValueError(
                f"`x` has {np.sum(~np.isfinite(leaf))} NaN or infinite values, but all "
                "must be finite: drop those rows or fill them in."
            )
    return lengths.pop()
