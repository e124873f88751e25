"""One table of how good a prediction is, and how well it tells strange inputs apart."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from . import metrics
from ._types import Array, Float, Int
from .likelihood import (
    AbstractClassLikelihood,
    AbstractLocationScaleLikelihood,
    Bernoulli,
    Targets,
)
from .predict import Prediction

# Points of the predictive distribution that stand for it in the CRPS: its error is
# then of order 1e-3 of the score.
_NUM_CRPS_LEVELS = 64


def evaluate(prediction: Prediction, y: Targets) -> dict[str, float]:
    """Judge a prediction by its targets.

    Args:
        prediction: what `predict` returned for the inputs.
        y: their targets, as the likelihood takes them.

    Returns:
        For every likelihood `nll` (mean, nats a row) and `nll_se`, its standard error.
        For classes also `accuracy`, `ece`, `adaptive_ece`, `classwise_ece`,
        `max_calibration_error`, `brier`, `aurc` (of errors), and means over rows of
        `entropy`, `aleatoric`, `epistemic` (nats). For real targets `rmse` (of the mean
        or, where there is none, the median), `crps`, `coverage_90`,
        `calibration_error`, and means of `aleatoric` and `epistemic` variance where
        they exist. `epistemic_share` is epistemic / (aleatoric + epistemic).
        Several yes-or-no columns count as that many rows, but for `nll`.

    Raises:
        ValueError: for targets that the likelihood has no probability for.
    """
    _check_targets(prediction, y)
    log_prob = np.asarray(prediction.log_prob(y), np.float64)
    scores = {"nll": -np.mean(log_prob), "nll_se": _standard_error(log_prob)}
    if isinstance(prediction.likelihood, AbstractClassLikelihood):
        probs, classes = _as_classes(prediction, y)
        is_wrong = jnp.argmax(probs, axis=1) != classes
        scores |= _class_scores(probs, classes)
        scores |= {
            "aurc": metrics.aurc(metrics.entropy(probs), is_wrong),
            "entropy": jnp.mean(prediction.entropy),
        }
    elif isinstance(prediction.likelihood, AbstractLocationScaleLikelihood):
        scores |= _real_scores(prediction, y)
    summary = prediction.summary
    if summary is not None and summary.aleatoric is not None:
        scores |= _uncertainty_scores(prediction)
    return {name: float(score) for name, score in scores.items()}


def evaluate_ood(
    prediction_in: Prediction, prediction_out: Prediction
) -> dict[str, float]:
    """How well uncertainty tells inputs like the training data from others.

    The score of a row is its predictive entropy, or for real targets the width of its
    90 % interval, summed over columns.

    Args:
        prediction_in: of inputs like the training data.
        prediction_out: of inputs unlike it.

    Returns:
        `auroc`, `aupr` and `fpr95`, with "unlike" as the positive class.
    """
    scores = [_strangeness(p) for p in (prediction_in, prediction_out)]
    return {
        "auroc": metrics.auroc(*scores),
        "aupr": metrics.aupr(*scores),
        "fpr95": metrics.fpr95(*scores),
    }


def _check_targets(prediction: Prediction, y: Targets):
    prediction.likelihood.check_targets(y, prediction.num_outputs)
    if y.shape[0] != prediction.num_rows:
        raise ValueError(
            f"Got {y.shape[0]} targets for a prediction of {prediction.num_rows} rows: "
            "give the targets of the same inputs, in the same order."
        )


def _standard_error(values: Float[np.ndarray, " rows"]) -> float:
    if values.size < 2:
        return math.nan
    return float(np.std(values, ddof=1)) / math.sqrt(values.size)


def _as_classes(
    prediction: Prediction, y: Targets
) -> tuple[Float[Array, "rows classes"], Int[Array, " rows"]]:
    """Probabilities of classes; each yes-or-no column becomes rows of two classes."""
    probs = prediction.probs
    if isinstance(prediction.likelihood, Bernoulli):
        ones = probs.ravel()
        probs = jnp.stack([1 - ones, ones], axis=1)
    return probs, jnp.asarray(y).ravel().astype(int)


@eqx.filter_jit
def _class_scores(
    probs: Float[Array, "rows classes"], y: Int[Array, " rows"]
) -> dict[str, Float[Array, ""]]:
    return {
        "accuracy": metrics.accuracy(probs, y),
        "ece": metrics.ece(probs, y),
        "adaptive_ece": metrics.adaptive_ece(probs, y),
        "classwise_ece": metrics.classwise_ece(probs, y),
        "max_calibration_error": metrics.max_calibration_error(probs, y),
        "brier": metrics.brier(probs, y),
    }


def _real_scores(prediction: Prediction, y: Targets) -> dict[str, Float[Array, ""]]:
    guess = prediction.median if prediction.summary is None else prediction.mean
    columns = jnp.asarray(y, guess.dtype).reshape(guess.shape)
    levels = (np.arange(_NUM_CRPS_LEVELS) + 0.5) / _NUM_CRPS_LEVELS
    cdf = prediction.cdf(y)
    return {
        "rmse": metrics.rmse(guess, columns),
        "crps": jnp.mean(
            metrics.sample_crps(prediction.quantile(levels.tolist()), columns)
        ),
        "coverage_90": jnp.mean(jnp.abs(cdf - 0.5) <= 0.45),
        "calibration_error": metrics.regression_calibration_error(cdf),
    }


def _uncertainty_scores(prediction: Prediction) -> dict[str, float]:
    aleatoric = float(jnp.mean(prediction.aleatoric))
    epistemic = float(jnp.mean(prediction.epistemic))
    total = aleatoric + epistemic
    share = epistemic / total if total > 0 else 0.0
    return {"aleatoric": aleatoric, "epistemic": epistemic, "epistemic_share": share}


def _strangeness(prediction: Prediction) -> Float[Array, " rows"]:
    if isinstance(prediction.likelihood, AbstractClassLikelihood):
        return prediction.entropy
    lower, upper = prediction.interval(0.9)
    return jnp.sum(upper - lower, axis=1)
