"""One table of how good a prediction is, and how well it tells strange inputs apart."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import metrics
from .._kinds import check_kind
from .._types import Array, Bool, Float, Int, PyTree
from ..data import Series
from ..functions import are_whole_rounds
from ..likelihood import (
    AbstractClassLikelihood,
    AbstractLocationScaleLikelihood,
    Bernoulli,
    Targets,
    WeightedTargets,
    of_one_value,
)
from ..prediction import Prediction

# Points of the predictive distribution that stand for it in the CRPS, at least one a
# draw: its error is of order 1e-4 of the score, and of 1e-3 where draws are as many.
_NUM_CRPS_POINTS = 512
_MOST_CRPS_NUMBERS = 2**25  # at once: 128 MiB, and some more to sort them
_MOST_CRPS_ROWS = 10_000
"""Of more, some: sorting all points takes longer than all else."""


def evaluate(prediction: Prediction, y: PyTree[Targets]) -> dict[str, float]:
    """Judge a prediction by its targets.

    Args:
        prediction: what `predict` returned for the inputs.
        y: their targets, as the likelihood takes them.

    Returns:
        For every likelihood `nll` (mean, nats a row) and `nll_se`, its standard error
        over rows.
        For classes also `accuracy`, `ece`, `adaptive_ece`, `classwise_ece`,
        `max_calibration_error`, `brier`, `aurc` (of errors), and means over rows of
        `entropy`, `aleatoric`, `epistemic` (nats); `top_3_accuracy` of more than 3
        classes and `top_5_accuracy` of more than 10; and `nll_errors`, the mean over
        rows whose class is guessed wrong, unless there are none. For real targets
        `rmse` (of the mean or, where there is none, the median), `crps`, `coverage_90`,
        `calibration_error`, and means of `aleatoric` and `epistemic` variance where
        they exist. `epistemic_share` is epistemic / (aleatoric + epistemic).
        Several yes-or-no columns count as that many rows, but for `nll`, `nll_errors`
        and means of `entropy`, `aleatoric` and `epistemic`, which add them up.

        Of a `Series` only observed values count, and `nll` is a mean over them, nats a
        value: each value's density is averaged over draws by itself. Series are the
        rows of `nll_se`, the standard error of a ratio (`metrics.mean_and_error`).
        `joint_nll` (nats a series) has the density of the whole series in that place,
        which is the best draw's: it falls as draws are added, and ranks a constant
        guess above the true law, so that no two models are to be compared by it.

    Raises:
        ValueError: for targets that the likelihood has no probability for.
    """
    check_kind("prediction", prediction, Prediction, "orn.predict(fit, x, key=key)")
    _check_targets(prediction, y)
    log_prob, num_units = prediction.row_scores(y)
    log_prob = np.asarray(log_prob, np.float64)
    mean, error = metrics.mean_and_error(log_prob, num_units)
    scores = {"nll": -mean, "nll_se": error}
    if isinstance(prediction.likelihood, AbstractClassLikelihood):
        probs, classes = as_classes(prediction, y)
        is_wrong = jnp.argmax(probs, axis=1) != classes
        is_wrong |= jnp.isnan(probs).any(axis=1)
        scores |= _class_scores(probs, classes)
        scores |= _error_scores(log_prob, np.asarray(is_wrong))
        scores |= {
            "aurc": metrics.aurc(metrics.entropy(probs), is_wrong),
            "entropy": jnp.mean(prediction.entropy),
        }
    mask: np.ndarray | None = None
    if isinstance(y, Series):
        joint = np.asarray(prediction.log_prob(y), np.float64)
        scores["joint_nll"] = -float(np.mean(joint))
        if prediction.outputs is not None:
            prediction, y, mask = _by_value(prediction, y)
    if isinstance(prediction.likelihood, AbstractLocationScaleLikelihood):
        scores |= _real_scores(prediction, y, mask)
    summary = prediction.summary
    if summary is not None and summary.aleatoric is not None:
        scores |= _uncertainty_scores(prediction, mask)
    return {name: float(score) for name, score in scores.items()}


def evaluate_ood(
    prediction_in: Prediction, prediction_out: Prediction
) -> dict[str, float]:
    """How well uncertainty tells inputs like the training data from others.

    The score of a row is its predictive entropy, or for real targets the width of its
    90 % interval, summed over columns, and of series over times.

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


def component_diversity(prediction: Prediction, num_strata: int) -> dict[str, float]:
    """How much the strata of a random function differ: members, or components.

    Draw i of a prediction belongs to stratum i mod `num_strata`; the probabilities of
    each stratum are averaged over its draws.

    Args:
        prediction: of classes, with its draws.
        num_strata: the model's, at least 2.

    Returns:
        `disagreement`, the share of rows on which two strata guess different classes,
        and `pairwise_kl` (nats), both means over pairs of strata. Several yes-or-no
        columns count as that many rows.

    Raises:
        ValueError: for a prediction without classes or draws, a number of draws that
            the strata don't share equally, or fewer than two strata.
    """
    likelihood, outputs = prediction.likelihood, prediction.outputs
    if not isinstance(likelihood, AbstractClassLikelihood) or outputs is None:
        raise ValueError(
            f"Strata are compared by the class probabilities of their draws, and this "
            f"`{type(likelihood).__name__}` prediction has none: predict classes, with "
            "`keep_draws=True`."
        )
    probs = likelihood.probs(outputs)
    num_draws = probs.shape[0]
    if num_strata < 2 or not are_whole_rounds(num_draws, num_strata):
        raise ValueError(
            f"{num_draws} draws cannot be shared equally by {num_strata} strata to "
            "compare: give 2 strata or more, and predict with a multiple of them."
        )
    probs = jnp.mean(probs.reshape(-1, num_strata, *probs.shape[1:]), axis=0)
    if isinstance(likelihood, Bernoulli):
        ones = probs.reshape(num_strata, -1)
        probs = jnp.stack([1 - ones, ones], axis=-1)
    return {
        "disagreement": float(metrics.disagreement(probs)),
        "pairwise_kl": float(metrics.pairwise_kl(probs)),
    }


def _check_targets(prediction: Prediction, y: PyTree[Targets]):
    if isinstance(y, WeightedTargets):
        raise ValueError(
            "Scores count each row once, and these targets have weights: give the "
            "targets alone (`y.y`), or rows as often as they count."
        )
    prediction.likelihood.check_targets(y, prediction.num_outputs)
    if y.shape[0] != prediction.num_rows:
        raise ValueError(
            f"Got {y.shape[0]} targets for a prediction of {prediction.num_rows} rows: "
            "give the targets of the same inputs, in the same order."
        )


def as_classes(
    prediction: Prediction, y: Targets
) -> tuple[Float[Array, "rows classes"], Int[Array, " rows"]]:
    """Probabilities of classes; each yes-or-no column becomes rows of two classes.

    Args:
        prediction: of classes.
        y: theirs.
    """
    probs = prediction.probs
    if isinstance(prediction.likelihood, Bernoulli):
        ones = probs.ravel()
        probs = jnp.stack([1 - ones, ones], axis=1)
    return probs, jnp.asarray(y).ravel().astype(int)


def _error_scores(
    log_prob: Float[np.ndarray, " rows"], is_wrong: Bool[np.ndarray, " columns"]
) -> dict[str, float]:
    """Of rows with an error in any column; of no such row, nothing."""
    rows = is_wrong.reshape(log_prob.size, -1).any(axis=1)
    return {"nll_errors": -float(np.mean(log_prob[rows]))} if rows.any() else {}


@eqx.filter_jit
def _class_scores(
    probs: Float[Array, "rows classes"], y: Int[Array, " rows"]
) -> dict[str, Float[Array, ""]]:
    num_classes = probs.shape[1]
    top = {
        f"top_{k}_accuracy": metrics.top_k_accuracy(probs, y, k=k)
        for k, least in ((3, 4), (5, 11))
        if num_classes >= least
    }
    return top | {
        "accuracy": metrics.accuracy(probs, y),
        "ece": metrics.ece(probs, y),
        "adaptive_ece": metrics.adaptive_ece(probs, y),
        "classwise_ece": metrics.classwise_ece(probs, y),
        "max_calibration_error": metrics.max_calibration_error(probs, y),
        "brier": metrics.brier(probs, y),
    }


def _by_value(
    prediction: Prediction, y: Series
) -> tuple[Prediction, Float[np.ndarray, "rows outputs"], Bool[np.ndarray, "..."]]:
    """A row for each time at which anything is asked, and where in it that is."""
    observed = np.asarray(y.mask)
    times = observed.any(axis=-1)
    outputs = jax.tree.map(lambda leaf: leaf[:, times], prediction.outputs)
    likelihood = of_one_value(prediction.likelihood)
    mask = observed[times]
    values = np.where(mask, np.asarray(y.values)[times], 0)
    return Prediction(outputs, likelihood), values, mask


def _real_scores(
    prediction: Prediction,
    y: PyTree[Targets],
    mask: Bool[np.ndarray, "rows outputs"] | None,
) -> dict[str, Float[Array, ""]]:
    guess = prediction.median if prediction.summary is None else prediction.mean
    cdf, columns = prediction.cdf(y), jnp.asarray(y, guess.dtype).reshape(guess.shape)
    crps = _crps(prediction, columns, mask)
    if mask is not None:
        guess, cdf, columns = guess[mask], cdf[mask], columns[mask]
    return {
        "rmse": metrics.rmse(guess, columns),
        "crps": crps,
        "coverage_90": jnp.mean(jnp.abs(cdf - 0.5) <= 0.45),
        "calibration_error": metrics.regression_calibration_error(cdf),
    }


def _crps(
    prediction: Prediction,
    y: Float[Array, "rows *times outputs"],
    mask: Bool[np.ndarray, "rows outputs"] | None,
) -> Float[Array, ""]:
    """The mean over values, of rows chosen at random where there are many.

    Some rows at a time, so that long sequences need no more memory than tables.
    """
    num_draws = len(jax.tree.leaves(prediction.outputs)[0])
    num_points = max(num_draws, _NUM_CRPS_POINTS)
    at_once = max(1, _MOST_CRPS_NUMBERS // (num_points * max(1, y[0].size)))
    some = np.arange(len(y))
    if len(y) > _MOST_CRPS_ROWS:  # evenly spaced ones may be of one hour of the day
        rng = np.random.default_rng(0)
        some = np.sort(rng.choice(some, _MOST_CRPS_ROWS, replace=False))
    found = []
    for start in range(0, len(some), at_once):
        rows = some[start : start + at_once]
        points = prediction.points(_NUM_CRPS_POINTS, rows=rows)
        crps = np.asarray(metrics.sample_crps(points, y[rows]), np.float64)
        found.append(crps.ravel() if mask is None else crps[mask[rows]])
    return jnp.asarray(np.mean(np.concatenate(found)), y.dtype)


def _uncertainty_scores(
    prediction: Prediction, mask: Bool[np.ndarray, "rows outputs"] | None
) -> dict[str, float]:
    parts = (prediction.aleatoric, prediction.epistemic)
    if mask is not None:
        parts = tuple(part[mask] for part in parts)
    aleatoric, epistemic = (float(jnp.mean(part)) for part in parts)
    total = aleatoric + epistemic
    share = epistemic / total if total > 0 else 0.0
    return {"aleatoric": aleatoric, "epistemic": epistemic, "epistemic_share": share}


def _strangeness(prediction: Prediction) -> Float[Array, " rows"]:
    if isinstance(prediction.likelihood, AbstractClassLikelihood):
        return prediction.entropy
    lower, upper = prediction.interval(0.9)
    return jnp.sum((upper - lower).reshape(len(lower), -1), axis=1)
