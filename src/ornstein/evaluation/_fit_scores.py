"""All that a result says of a fit: scores, the bound, and what its posterior does."""

import math
from typing import Any

import jax
import numpy as np

from .._sentence import Sentence
from .._tree import all_finite
from .._types import PRNGKeyArray
from ..data import Data
from ..functions import FROZEN, are_whole_rounds
from ..likelihood import AbstractClassLikelihood
from ..prediction import Fitted, Prediction, predict
from ..train import NonFiniteError
from ._ablation import ablation_scores
from ._bound import evidence_bound
from ._evaluate import component_diversity, evaluate

_NO_BOUND: dict[str, Any] = {"kl_path": None, "kl_initial": None, "elbo": None}
"""What a result says of weights that move along no path, and of samples."""

_CHAIN_ROWS = 20
"""Test rows at whose outputs chains are compared with each other."""


def fit_scores(
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

    `without_drift` has the scores of an SDE-BNN with the drift network zeroed, with the
    same draws; `drift_gain` is by how many nats a row that worsens the NLL, with its
    standard error over rows, and says whether the posterior of the path does anything.

    Of a latent SDE `noise_share` is how much of the spread of its prior's paths noise
    makes, in the dimension that has most; kl, kl_path and kl_initial are summed over
    the training series.

    Where no prior is behind the draws (points, dropout, samples) there is no bound:
    `elbo` is `None`. Samples' `r_hat` and effective sample sizes
    are those of the outputs (class probabilities) at a few test rows, the worst of
    them; see `PosteriorSamples.chain_scores`.

    Args:
        fit: a fit, or samples.
        data: what it was trained on.
        num_draws: functions averaged over.
        test_key: which functions.
        bound_key: which functions for the bound.

    Raises:
        NonFiniteError: if a prediction is not a number.
    """
    posterior, num_strata = fit.model.posterior_parts(), fit.model.num_strata
    prediction = predict(fit, data.test.x, key=test_key, num_draws=num_draws)
    refuse_non_finite_predictions(prediction)
    scores: dict[str, Any] = {"num_parameters": num_trained(fit)}
    if posterior.num_parameters is not None:
        scores["num_parameters"] = posterior.num_parameters
    scores |= evaluate(prediction, data.test.y) | _NO_BOUND
    if posterior.has_bound:
        scores |= evidence_bound(fit, data.train, key=bound_key, num_draws=num_draws)
    scores |= in_target_units(scores, data)
    is_compared = num_strata > 1 and not posterior.has_stored_samples
    if is_compared and are_whole_rounds(num_draws, num_strata):
        if isinstance(fit.likelihood, AbstractClassLikelihood):
            scores |= component_diversity(prediction, num_strata)
    if posterior.noise_share is not None:
        noise_key = jax.random.fold_in(bound_key, 1)
        scores["noise_share"] = posterior.noise_share(
            data.train.in_memory().x, noise_key
        )
    how = {"key": test_key, "num_draws": num_draws, "prediction": prediction}
    scores |= ablation_scores(fit, data.test, **how)
    if posterior.chain_scores is not None:
        scores |= posterior.chain_scores(data.test.x[:_CHAIN_ROWS])
    return scores, prediction


def refuse_non_finite_predictions(prediction: Prediction) -> None:
    """Refuse predictions that are not numbers: scores of them would say nothing.

    Args:
        prediction: any.

    Raises:
        NonFiniteError: saying so.
    """
    if not all_finite((prediction.outputs, prediction.summary)):
        raise NonFiniteError(
            Sentence(
                "Some predictions are NaN or infinite: the training diverged, its "
                "weights are damaged, or the solver's steps are too long; train "
                "again, with a lower learning rate, or give a smaller {dt}."
            )
        )


def num_trained(fit: Fitted) -> int:
    """How many numbers training moved: those that no label calls frozen.

    Args:
        fit: a fit.
    """
    modules = (fit.model, fit.likelihood)
    labels = (fit.model.labels(), fit.likelihood.labels())
    count = lambda leaf, label: 0 if label == FROZEN else leaf.size
    return sum(jax.tree.leaves(jax.tree.map(count, modules, labels)))


def in_target_units(scores: dict[str, Any], data: Data) -> dict[str, float]:
    """Scores of numbers before targets were standardised, for one column.

    `nll` is of one number in both: of a row's, or of a value of a series.

    Args:
        scores: of `evaluate`.
        data: whose targets they are of.

    Returns:
        `rmse_in_target_units` and `nll_in_target_units`; nothing for classes, or for
        several columns, which have no unit in common.
    """
    scaling = data.y_scaling
    if scaling is None or "rmse" not in scores or np.size(scaling.scale) != 1:
        return {}
    scale = float(np.squeeze(scaling.scale))
    return {
        "rmse_in_target_units": scale * scores["rmse"],
        "nll_in_target_units": scores["nll"] + math.log(scale),
    }
