r"""The bound on the evidence, at KL weight 1, of what was fitted with any loss.

Of a draw $f$ the bound is $\sum_i [\log p(y_i | f) - D_i] - D$, nats: $D$ is the KL of
what all rows share, which counts once, and $D_i$ that of a row's own latents, which
scales as its likelihood does. Its mean over draws is at most $\log p(y)$.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, PRNGKeyArray, PyTree
from ..data import Series, Split, Streamed
from ..functions import Draw, KLEstimate, map_draws, total_kl, whole_rounds
from ..likelihood import AbstractLikelihood
from ..network import in_inference
from ..prediction import Fitted

_BOUND_ROWS = 10_000
"""Of larger data sets the bound is estimated from this many training rows."""

_BOUND_TIMES = 100_000
"""Of series, whose rows cost their times each, rows with as many as this in all."""

_BLOCK_ROWS = 1_000
_LEAST_BLOCKS = 10

_KL_KEYS = 32
"""Draws of each component behind the KL of a mixture of nodes."""


class _BoundParts(NamedTuple):
    """What one draw says of the bound, nats.

    Attributes:
        log_likelihood: of each row.
        shared: KLs of what all rows share: `"kl"` in all, and its terms by name.
        local: KLs of each row's own latents, by the same names.
    """

    log_likelihood: Float[Array, " rows"]
    shared: dict[str, Float[Array, ""]]
    local: dict[str, Float[Array, " rows"]]


def _bound_parts(
    draw: Draw, likelihood: AbstractLikelihood, y: PyTree[Array]
) -> _BoundParts:
    log_likelihood = likelihood.log_prob(draw.output, y)
    shared = {"kl": jnp.asarray(total_kl(draw.kl, draw.terms)), **draw.terms}
    local_terms = draw.local_terms
    local = {"kl": total_kl(draw.local_kl, local_terms), **local_terms}
    return _BoundParts(log_likelihood, shared, local)


def evidence_bound(
    fit: Fitted,
    split: Split | Streamed,
    *,
    key: PRNGKeyArray,
    num_draws: int,
    num_rows: int = _BOUND_ROWS,
) -> dict[str, float]:
    r"""The bound on the evidence of a whole data set, and its parts, in nats.

    Of more than `num_rows` rows it is estimated from so many, chosen at random. Where
    the KL of a draw may be another than KL(q || p) (the components' mean of an implicit
    network) the bound has KL(q || p), whatever the loss had.

    Args:
        fit: any with a prior behind its draws, which `Deterministic`, `MCDropout`,
            `SWAG`, `Pruned`, ensembles of these and stored samples do not have.
        split: what it was trained on; of other rows this bounds nothing.
        key: which rows (of many) and which functions.
        num_draws: functions averaged over, rounded up to a multiple of the model's
            strata: a mixture's KL is that of all of its components.
        num_rows: rows looked at, at most.

    Returns:
        `elbo` and its standard error `elbo_se` over draws (NaN of one draw; of one of
        each stratum it is no more than that) and over rows where not all were looked
        at, `kl`, and the terms of the KL by name: `kl_path`, say. Of series, KLs are
        summed over them.

    Raises:
        ValueError: for a function without a KL to a prior that anybody knows.
    """
    posterior = fit.model.posterior_parts()
    if not posterior.has_bound:
        raise ValueError(
            f"`{type(fit.model).__name__}` has no KL to a prior that anybody knows, "
            "and so no bound on the evidence: score its predictions by `evaluate`."
        )
    sums = sums_of_draws(fit, split, key=key, num_draws=num_draws, num_rows=num_rows)
    kls = sums.kls
    elbo = sums.log_likelihood.sum(0) - kls["kl"]
    error = _draws_error(elbo, sums.num_strata)
    of_rows = sums.log_likelihood - sums.local_kl
    error = math.hypot(error, _rows_error(of_rows, sums.part_seen))
    parts = {name: float(np.mean(value)) for name, value in kls.items()}
    found = {"elbo": float(elbo.mean()), "elbo_se": float(error), **parts}
    if posterior.kl_estimate is None:
        return found
    return found | _with_kl(found, posterior.kl_estimate, key=key)


class DrawSums(NamedTuple):
    """What some draws say of a whole data set, nats.

    Attributes:
        log_likelihood: by blocks of rows, each scaled to its share of the data set.
        local_kl: the KLs of rows' own latents, likewise.
        kls: in all (`"kl"`), and the terms by name.
        part_seen: of the rows; below 1 the blocks are chosen at random.
        num_strata: that the draws go round.
    """

    log_likelihood: Float[np.ndarray, "blocks draws"]
    local_kl: Float[np.ndarray, "blocks draws"]
    kls: dict[str, Float[np.ndarray, " draws"]]
    part_seen: float
    num_strata: int


def sums_of_draws(
    fit: Fitted,
    split: Split | Streamed,
    *,
    key: PRNGKeyArray,
    num_draws: int,
    num_rows: int = _BOUND_ROWS,
) -> DrawSums:
    """Log likelihoods and KLs behind `evidence_bound`, draw by draw.

    Args:
        fit: any.
        split: the data set.
        key: which rows (of many) and which functions.
        num_draws: functions, rounded up to a multiple of the model's strata but for
            stored samples.
        num_rows: rows looked at, at most.
    """
    has_samples = fit.model.posterior_parts().has_stored_samples
    num_strata = 1 if has_samples else fit.model.num_strata
    num_draws = whole_rounds(num_draws, num_strata)
    rows_key, draws_key = jax.random.split(key)
    num_data, split = len(split), split.in_memory()
    num_rows = min(len(split), num_rows)
    if isinstance(split.x, Series):
        num_rows = min(num_rows, max(1, _BOUND_TIMES // split.x.num_times))
    chosen = np.asarray(jax.random.permutation(rows_key, len(split))[:num_rows])
    if num_rows < num_data:  # blocks say how far the rows might have been others
        size = max(1, min(_BLOCK_ROWS, num_rows // _LEAST_BLOCKS))
        num_rows -= num_rows % size
    else:
        size = -(-num_rows // -(-num_rows // _BLOCK_ROWS))
    log_likelihood, local_kl, shared = [], [], {}
    own: dict[str, Any] = {}
    for begin in range(0, num_rows, size):
        rows = np.sort(chosen[begin : min(begin + size, num_rows)])
        filled = np.resize(rows, size)  # one program for blocks of all sizes
        part = split.rows(filled)
        batch = jax.tree.map(jnp.asarray, (part.x, part.y))
        is_counted = jnp.arange(size) < len(rows)
        sums = _sums_over_rows(fit, batch, is_counted, draws_key, num_draws=num_draws)
        of_block, shared, local = jax.tree.map(_as_double, sums)
        log_likelihood.append(of_block)
        local_kl.append(local["kl"])
        for name, value in local.items():
            own[name] = own.get(name, 0.0) + value
    # What each row has of its own counts as its likelihood does.
    scale = num_data / num_rows
    kls = dict(shared)
    for name, value in own.items():
        kls[name] = kls.get(name, 0.0) + value * scale
    return DrawSums(
        np.stack(log_likelihood) * scale,
        np.stack(local_kl) * scale,
        kls,
        num_rows / num_data,
        num_strata,
    )


def _as_double(a: Array) -> Float[np.ndarray, "..."]:
    return np.asarray(a, np.float64)


def log_likelihood_bought(ours: DrawSums, theirs: DrawSums) -> tuple[float, float]:
    """How much more log likelihood one function expects than another, nats.

    Args:
        ours: of the one, draw by draw.
        theirs: of the other, the same rows and as many draws.

    Returns:
        The difference, and its standard error: of paired draws, and, in quadrature,
        of the rows where not all of them were looked at.
    """
    gains = ours.log_likelihood - theirs.log_likelihood
    of_draws = _draws_error(gains.sum(0), ours.num_strata)
    error = math.hypot(of_draws, _rows_error(gains, ours.part_seen))
    return float(gains.sum(0).mean()), error


def _draws_error(of_draws: Float[np.ndarray, " draws"], num_strata: int) -> float:
    """Standard error of a mean over draws: by those of one stratum, which are alike.

    Of one draw of each it is that of draws which could be of any, which is more.
    """
    rounds = of_draws.reshape(-1, num_strata)
    if len(rounds) < 2:
        rounds = rounds.T
    if len(rounds) < 2:
        return math.nan
    return math.sqrt(rounds.var(axis=0, ddof=1).mean() / of_draws.size)


def _rows_error(
    log_likelihood: Float[np.ndarray, "blocks draws"], part_seen: float
) -> float:
    """Standard error of a sum, of the blocks of rows that might have been others."""
    num_blocks = log_likelihood.shape[0]
    if part_seen >= 1:
        return 0.0
    if num_blocks < 2:
        return math.inf
    of_block = np.var(log_likelihood.mean(1), ddof=1)
    return math.sqrt((1 - part_seen) * num_blocks * of_block)


def series_evidence_bound(
    fit: Fitted, split: Split, *, key: PRNGKeyArray, num_draws: int = 16
) -> dict[str, float]:
    """The bound on the evidence of one series, the mean over many, in nats.

    Every series has paths of its own, as in training, so that the mean over many of
    them is sharp; `evidence_bound` has the same paths for all, as in prediction. The KL
    is as the model's estimator has it, and `evidence_bound`'s the sum of its terms.

    Args:
        fit: of series, all of whose latents are those of single series.
        split: any series, and what is observed of them.
        key: of the paths.
        num_draws: paths of each series.

    Returns:
        `elbo` and `kl`.
    """
    keys = jax.random.split(key, num_draws)
    elbo, kl = _means_over_rows(fit, (split.x, split.y), keys)
    return {"elbo": float(elbo), "kl": float(kl)}


@eqx.filter_jit
def _sums_over_rows(fit, batch, is_counted, key, *, num_draws: int):
    x, y = batch
    model, state = in_inference(fit.model), fit.state

    def summed(draw: Draw):
        log_likelihood, shared, local = _bound_parts(draw, fit.likelihood, y)
        total = lambda a: jnp.sum(jnp.where(is_counted, a, 0))
        return total(log_likelihood), shared, jax.tree.map(total, local)

    return map_draws(summed, model, x, key=key, num_draws=num_draws, state=state)


@eqx.filter_jit
def _means_over_rows(fit, batch, keys):
    x, y = batch

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        draw = fit.model(x, key=key)
        log_likelihood = fit.likelihood.log_prob(draw.output, y)
        # As estimated in training: with a term in dB not the sum of `local_terms`.
        return jnp.mean(log_likelihood - draw.local_kl), jnp.mean(draw.local_kl)

    elbos, kls = jax.lax.map(one, keys)
    return jnp.mean(elbos), jnp.mean(kls)


def _with_kl(
    bound: dict[str, float], estimate: KLEstimate, *, key: PRNGKeyArray
) -> dict[str, float]:
    """What changes of a bound when KL(q || p) takes the place of a draw's KL."""
    keys = jax.random.split(jax.random.fold_in(key, _KL_KEYS), _KL_KEYS)
    of_each = eqx.filter_jit(jax.lax.map)(estimate.estimate, keys)
    kls = np.asarray(of_each, np.float64)
    kl, error = float(kls.mean()), float(kls.std(ddof=1)) / math.sqrt(_KL_KEYS)
    return {
        "elbo": bound["elbo"] + bound["kl"] - kl,
        "elbo_se": math.hypot(bound["elbo_se"], error),
        "kl": kl,
        estimate.name: kl,
        f"{estimate.name}_se": error,
        **{name: float(of(key)) for name, of in estimate.stand_ins.items()},
    }
