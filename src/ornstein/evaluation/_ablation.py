"""What a part of a posterior does: the scores of the same function without it."""

from typing import Any

from .. import metrics
from .._types import PRNGKeyArray, PyTree
from ..data import Split
from ..likelihood import Targets
from ..prediction import Fitted, FittedModel, Prediction, predict
from ._evaluate import evaluate


def ablation_scores(
    fit: Fitted,
    split: Split,
    *,
    key: PRNGKeyArray,
    num_draws: int,
    prediction: Prediction | None = None,
) -> dict[str, Any]:
    r"""Scores without each part that the family can leave out, and what it gained.

    An SDE-BNN has one, `"drift"`: with $NN_\phi$ zeroed, weights move as under the
    prior, and a gain of nothing says that the posterior of the path does nothing.

    Args:
        fit: a fit.
        split: rows to score, held out or not.
        key: which functions: those of `predict` with this key and number.
        num_draws: functions averaged over.
        prediction: of these rows by these functions, where it is there already.

    Returns:
        For each part `without_PART`, what `evaluate` says of the function without it;
        `PART_gain`, by how many nats a row (or an observed value of series) that
        worsens `nll`; and `PART_gain_se`, its standard error over rows. Empty for a
        family without such parts.
    """
    scores: dict[str, Any] = {}
    for part, model in fit.model.posterior_parts().ablations.items():
        if prediction is None:
            prediction = predict(fit, split.x, key=key, num_draws=num_draws)
        without = FittedModel(model, fit.likelihood, fit.state)
        other = predict(without, split.x, key=key, num_draws=num_draws)
        scores[f"without_{part}"] = evaluate(other, split.y)
        gain, error = nll_gain(prediction, other, split.y)
        scores |= {f"{part}_gain": gain, f"{part}_gain_se": error}
    return scores


def nll_gain(
    prediction: Prediction, other: Prediction, y: PyTree[Targets]
) -> tuple[float, float]:
    """By how many nats `nll` is lower than another prediction's of the same rows.

    Args:
        prediction: of the rows.
        other: of the same rows, such as that of a function without a part.
        y: their targets.

    Returns:
        The gain, and its standard error over rows: that of paired differences.
    """
    (log_prob, num_units), (others, _) = (p.row_scores(y) for p in (prediction, other))
    return metrics.mean_and_error(log_prob - others, num_units)
