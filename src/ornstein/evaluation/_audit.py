"""What a finished run is worth: scores, the bound, and what the posterior does."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import metrics
from .._sentence import Sentence
from .._types import PRNGKeyArray
from ..data import Data, Series, Split
from ..functions import (
    FROZEN,
    SDEBNN,
    AbstractRandomFunction,
    ImplicitBNN,
    LatentSDE,
    MixtureMeanKL,
    MonteCarloKL,
    without_drift,
)
from ..likelihood import AbstractClassLikelihood, AbstractLikelihood
from ..network import in_inference
from ..prediction import Fitted, Prediction, predict
from ..train import NonFiniteError
from ._evaluate import component_diversity, evaluate

_BOUND_ROWS = 10_000
"""Of larger data sets the bound is estimated from this many training rows."""

_BOUND_TIMES = 100_000
"""Of series, whose rows cost their times each, rows with as many as this in all."""

_BLOCK_ROWS = 1_000

_KL_KEYS = 32
"""Draws of each component behind the KL of a mixture of nodes."""

NO_PATH_KL: dict[str, Any] = {"kl_path": None, "kl_initial": None}
"""What a result says of a method whose weights move along no path."""


class Judged(NamedTuple):
    """A model and likelihood, ready for `predict`.

    Attributes:
        model: the random function.
        likelihood: of the targets.
        state: batch statistics, or `None`.
    """

    model: AbstractRandomFunction
    likelihood: AbstractLikelihood
    state: eqx.nn.State | None = None


def judge(
    fit: Fitted,
    data: Data,
    *,
    num_draws: int,
    test_key: PRNGKeyArray,
    bound_key: PRNGKeyArray,
) -> tuple[dict[str, Any], Prediction]:
    """Everything a result reports of a fit, and its prediction of the test rows.

    For strata (components, members) of classes also `component_diversity`. For an
    implicit network `kl` is `kl_mixture`, the mixture's own, with which `elbo` is a
    bound on the evidence whatever the loss had; `kl_nodes` is that of the components'
    mean, with which it would be none.

    `without_drift` has the scores with the drift network zeroed, with the same draws;
    `drift_gain` is by how many nats a row that worsens the NLL, with its standard error
    over rows, and says whether the posterior of the path does anything.

    Of a latent SDE `noise_share` is how much of the spread of its prior's paths noise
    makes, in the dimension that has most; kl, kl_path and kl_initial are summed over
    the training series.

    Args:
        fit: a fit.
        data: what it was trained on.
        num_draws: functions averaged over.
        test_key: which functions.
        bound_key: which functions for the bound.

    Raises:
        NonFiniteError: if a prediction is not a number.
    """
    prediction = predict(fit, data.test.x, key=test_key, num_draws=num_draws)
    refuse_non_finite_predictions(prediction)
    scores: dict[str, Any] = {"num_parameters": num_trained(fit)}
    scores |= evaluate(prediction, data.test.y)
    scores |= NO_PATH_KL
    scores |= bound(fit, data.train, key=bound_key, num_draws=num_draws)
    scores |= in_target_units(scores, data)
    if num_draws % fit.model.num_strata == 0 and fit.model.num_strata > 1:
        if isinstance(fit.likelihood, AbstractClassLikelihood):
            scores |= component_diversity(prediction, fit.model.num_strata)
    if isinstance(fit.model, ImplicitBNN):
        scores |= _with_mixture_kl(scores, fit.model, key=bound_key)
    if isinstance(fit.model, LatentSDE):
        ts, noise_key = data.train.x.ts[0], jax.random.fold_in(bound_key, 1)
        share = fit.model.noise_share(ts, key=noise_key)
        scores["noise_share"] = float(jnp.max(share))
    if isinstance(fit.model, SDEBNN):
        zeroed = Judged(without_drift(fit.model), fit.likelihood, fit.state)
        other = predict(zeroed, data.test.x, key=test_key, num_draws=num_draws)
        scores["without_drift"] = evaluate(other, data.test.y)
        scores |= gain("drift_gain", prediction, other, data.test)
    return scores, prediction


def refuse_non_finite_predictions(prediction: Prediction) -> None:
    """Refuse predictions that are not numbers: scores of them would say nothing.

    Raises:
        NonFiniteError: saying so.
    """
    arrays = jax.tree.leaves((prediction.outputs, prediction.summary))
    if not all(bool(jnp.isfinite(array).all()) for array in arrays):
        raise NonFiniteError(
            Sentence(
                "Some predictions are NaN or infinite: the training diverged, its "
                "weights are damaged, or the solver's steps are too long; train "
                "again, with a lower learning rate, or give a smaller {dt}."
            )
        )


def gain(
    name: str, ours: Prediction, other: Prediction, split: Split
) -> dict[str, float]:
    """By how many nats `nll` is lower for `ours`, and the standard error over rows."""
    (log_prob, num_units), (others, _) = (p.row_scores(split.y) for p in (ours, other))
    mean, error = metrics.mean_and_error(log_prob - others, num_units)
    return {name: mean, f"{name}_se": error}


def num_trained(fit: Fitted) -> int:
    """How many numbers training moved."""
    modules = (fit.model, fit.likelihood)
    labels = (fit.model.labels(), fit.likelihood.labels())
    count = lambda leaf, label: 0 if label == FROZEN else leaf.size
    return sum(jax.tree.leaves(jax.tree.map(count, modules, labels)))


def bound(
    fit: Fitted, split: Split, *, key: PRNGKeyArray, num_draws: int
) -> dict[str, float]:
    """The bound on the evidence at KL weight 1, and its parts, in nats per data set.

    Args:
        fit: a fit.
        split: its training rows.
        key: which rows (of many) and which functions.
        num_draws: functions averaged over.
    """
    rows_key, draws_key = jax.random.split(key)
    num_data = len(split)
    num_rows = min(num_data, _BOUND_ROWS)
    if isinstance(split.x, Series):
        num_rows = min(num_rows, max(1, _BOUND_TIMES // split.x.num_times))
    chosen = np.asarray(jax.random.permutation(rows_key, num_data)[:num_rows])
    size = min(num_rows, _BLOCK_ROWS)
    total, shared = np.zeros(num_draws), {}
    own: dict[str, Any] = {}
    for begin in range(0, num_rows - num_rows % size, size):
        rows = np.sort(chosen[begin : begin + size])
        part = split.rows(rows)
        batch = jax.tree.map(jnp.asarray, (part.x, part.y))
        likelihoods, shared, local = _draws(fit, batch, draws_key, num_draws=num_draws)
        total += np.asarray(likelihoods, np.float64)
        for name, value in local.items():
            own[name] = own.get(name, 0.0) + np.asarray(value, np.float64)
    # What each row has of its own counts as its likelihood does.
    num_used = num_rows - num_rows % size
    kls = {name: np.asarray(value, np.float64) for name, value in shared.items()}
    for name, value in own.items():
        kls[name] = kls.get(name, 0.0) + value * (num_data / num_used)
    elbo = total * (num_data / num_used) - kls["kl"]
    error = elbo.std(ddof=1) / math.sqrt(num_draws) if num_draws > 1 else math.nan
    parts = {name: float(np.mean(value)) for name, value in kls.items()}
    return {"elbo": float(elbo.mean()), "elbo_se": float(error), **parts}


def _with_mixture_kl(
    scores: dict[str, Any], model: ImplicitBNN, *, key: PRNGKeyArray
) -> dict[str, float]:
    """The scores of a bound with the KL of the nodes' mixture in it."""
    mixture, prior_scale = model.mixture, model.prior_scale
    keys = jax.random.split(jax.random.fold_in(key, _KL_KEYS), _KL_KEYS)
    estimate = lambda key: MonteCarloKL()(mixture, prior_scale, key=key)
    kls = np.asarray(eqx.filter_jit(jax.lax.map)(estimate, keys), np.float64)
    kl, error = float(kls.mean()), float(kls.std(ddof=1)) / math.sqrt(_KL_KEYS)
    surrogate = MixtureMeanKL()(mixture, prior_scale, key=key)
    return {
        "elbo": scores["elbo"] + scores["kl"] - kl,
        "elbo_se": math.hypot(scores["elbo_se"], error),
        "kl": kl,
        "kl_mixture": kl,
        "kl_mixture_se": error,
        "kl_nodes": float(surrogate),
    }


@eqx.filter_jit
def _draws(fit, batch, key, *, num_draws: int):
    x, y = batch
    model = in_inference(fit.model)

    def one(index):
        state = jax.tree.map(lambda leaf: leaf, fit.state)  # may be used only once
        draw = model(x, key=key, index=index, state=state)
        fits = fit.likelihood.log_prob(draw.output, y)
        kl = sum(draw.terms.values()) if draw.terms else draw.kl
        shared = {"kl": jnp.asarray(kl), **draw.terms}
        terms = draw.local_terms
        local = {"kl": sum(terms.values()) if terms else draw.local_kl, **terms}
        return jnp.sum(fits), shared, jax.tree.map(jnp.sum, local)

    return jax.lax.map(one, jnp.arange(num_draws))


def in_target_units(scores: dict[str, Any], data: Data) -> dict[str, float]:
    """Scores of numbers before targets were standardised, for one column.

    `nll` is of one number in both: of a row's, or of a value of a series.
    """
    scaling = data.y_scaling
    if scaling is None or "rmse" not in scores or np.size(scaling.scale) != 1:
        return {}
    scale = float(np.squeeze(scaling.scale))
    return {
        "rmse_in_target_units": scale * scores["rmse"],
        "nll_in_target_units": scores["nll"] + math.log(scale),
    }
