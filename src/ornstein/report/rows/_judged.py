"""Each test row by itself: what was said of it, and how good that was."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from ..._types import Float
from ...data import Data, Series, in_raw_units
from ...likelihood import AbstractLocationScaleLikelihood, Categorical, of_one_value
from ...metrics import mean_and_error, overconfidence_error
from ...prediction import Prediction
from .. import _errors
from ._example import Example, examples_of

MOST_ROWS = 50_000
"""More test rows than these are kept evenly spaced; errors are of all of them."""

_BAND = 0.9


class JudgedRows(NamedTuple):
    """Test rows, each with what a prediction said of it.

    Attributes:
        kind: `"classes"`, `"numbers"`, or `"other"` where only densities are known.
        num_rows: how many test rows there are.
        index: those that are kept, all or evenly spaced.
        columns: arrays over kept rows, by name. All kinds have `log_prob` (nats; of a
            series the mean of its values, of which it has `num_values`). Classes have
            `y`, `guess`, `confidence`, `entropy`, `aleatoric`, `epistemic`; numbers
            have `squared_error` and `width` (of the 90 % interval, summed over
            columns), `y` and `median` of the first column, `aleatoric` and `epistemic`
            where they exist. Numbers of one column are in the target's own unit, and
            so is their `log_prob`.
        cdf: of numbers, the predictive distribution function at each target, kept
            values evenly spaced; else empty.
        errors: standard errors over all test rows, by the name of the score;
            `overconfidence` is how far confidence and accuracy of a calibrated model
            may be apart, as the diagnosis has it.
        constants: scores of the best constant guess, with the test targets known:
            their class frequencies, or a Gaussian of their mean and variance; and
            `nll_gain`, by how many nats a row (of series a value) the prediction's NLL
            is below its.
        examples: the most certain test rows, and the least certain: of numbers among
            those that are kept.
    """

    kind: str
    num_rows: int
    index: np.ndarray
    columns: Mapping[str, np.ndarray]
    cdf: Float[np.ndarray, " values"]
    errors: Mapping[str, float]
    constants: Mapping[str, float]
    examples: tuple[Example, ...]


def judge_rows(prediction: Prediction, data: Data) -> JudgedRows:
    """What is kept of the test rows.

    Args:
        prediction: of them, with its draws.
        data: whose test rows they are.
    """
    y = data.test.y
    log_prob, num_units = map(np.asarray, prediction.row_scores(y))
    if isinstance(prediction.likelihood, Categorical):
        found = _of_classes(prediction, data)
    elif prediction.outputs is not None and _is_real(prediction):
        found = _of_numbers(prediction, data)
    else:
        found = JudgedRows("other", 0, np.zeros(0), {}, np.zeros(0), {}, {}, ())
    columns = {"log_prob": _own_units(log_prob / np.maximum(num_units, 1), data)}
    columns |= found.columns
    if data.task == "series":
        columns["num_values"] = num_units
    constants, errors = dict(found.constants), dict(found.errors)
    if "constant" in columns:
        gain = columns["log_prob"] - columns.pop("constant")
        constants["nll_gain"], errors["nll_gain"] = mean_and_error(
            gain * np.maximum(num_units, 1), num_units
        )
    num_rows = len(data.test)
    index = _spaced(num_rows, MOST_ROWS)
    kept = {
        name: np.asarray(a)[index].astype(np.int32 if a.dtype.kind == "i" else "f4")
        for name, a in columns.items()
    }
    cdf = found.cdf[_spaced(len(found.cdf), MOST_ROWS)].astype(np.float32)
    return found._replace(
        num_rows=num_rows,
        index=index,
        columns=kept,
        cdf=cdf,
        errors=errors,
        constants=constants,
    )


def _is_real(prediction: Prediction) -> bool:
    likelihood = of_one_value(prediction.likelihood)
    return isinstance(likelihood, AbstractLocationScaleLikelihood)


def _of_classes(prediction: Prediction, data: Data) -> JudgedRows:
    probs, y = np.asarray(prediction.probs, np.float64), np.asarray(data.test.y)
    guess, confidence = probs.argmax(1), probs.max(1)
    is_right = (guess == y) & ~np.isnan(probs).any(1)
    one_hot = np.arange(probs.shape[1]) == y[:, None]
    shares = np.bincount(y) / len(y)
    columns = {
        "y": y,
        "guess": guess,
        "confidence": confidence,
        "entropy": np.asarray(prediction.entropy, np.float64),
        "aleatoric": np.asarray(prediction.aleatoric, np.float64),
        "epistemic": np.asarray(prediction.epistemic, np.float64),
        "constant": np.log(shares[y]),
    }
    errors = {
        "accuracy": _error(is_right),
        "brier": _error(np.sum((probs - one_hot) ** 2, axis=1)),
        "ece": _errors.ece_error(confidence, is_right),
        **{n: _error(columns[n]) for n in ("entropy", "aleatoric", "epistemic")},
        **_share_error(columns["epistemic"], columns["entropy"]),
    }
    likelihood, outputs = prediction.likelihood, prediction.outputs
    if isinstance(likelihood, Categorical) and outputs is not None:
        draws = np.asarray(likelihood.probs(outputs), np.float64)
        top = np.take_along_axis(draws, guess[None, :, None], axis=-1)[..., 0]
        errors["overconfidence"] = overconfidence_error(top)
    shares = shares[shares > 0]
    constants = {  # + 0.0: of one class alone the sum is -0
        "accuracy": float(shares.max()),
        "nll": float(-np.sum(shares * np.log(shares))) + 0.0,
    }
    examples = examples_of(columns["entropy"], data, columns)
    return JudgedRows(
        "classes", 0, y, columns, np.zeros(0), errors, constants, examples
    )


def _of_numbers(prediction: Prediction, data: Data) -> JudgedRows:
    y, cdf = data.test.y, np.asarray(prediction.cdf(data.test.y), np.float64)
    guess = prediction.median if prediction.summary is None else prediction.mean
    guess = np.asarray(guess, np.float64)
    lower, median, upper = _quantiles(prediction)
    scale = _scale(data)
    if isinstance(y, Series):
        mask, values = np.asarray(y.mask), np.asarray(y.values, np.float64)
    else:
        values = np.asarray(y, np.float64).reshape(guess.shape)
        mask = np.ones(values.shape, bool)
    axes = tuple(range(1, mask.ndim))
    num_values = np.sum(mask, axis=axes)
    totals = lambda a: np.sum(np.where(mask, a, 0.0), axis=axes)
    per_row = lambda a: totals(a) / np.maximum(num_values, 1)
    error = lambda a: mean_and_error(totals(a), num_values)
    squared = np.where(mask, np.square(guess - values), 0.0) * scale**2
    holds = np.abs(cdf - 0.5) <= _BAND / 2
    columns = {
        "squared_error": per_row(squared),
        "width": per_row(upper - lower) * scale,
    }
    if data.task != "series":
        first = lambda a: np.asarray(in_raw_units(a, data.y_scaling))[:, 0]
        columns |= {"y": first(values), "median": first(median)}
        columns |= {"lower": first(lower), "upper": first(upper)}
    errors = {
        "coverage_90": error(holds)[1],
        "calibration_error": _errors.quantile_error(cdf, mask),
    }
    mse, mse_error = error(squared)
    if mse > 0:
        rmse_error = mse_error / (2 * math.sqrt(mse))
        errors |= {"rmse": rmse_error / scale, "rmse_in_target_units": rmse_error}
    if prediction.summary is not None and prediction.summary.aleatoric is not None:
        for name in ("aleatoric", "epistemic"):
            part = np.asarray(getattr(prediction, name), np.float64)
            columns[name], errors[name] = per_row(part), error(part)[1]
        total = columns["aleatoric"] + columns["epistemic"]
        errors |= _share_error(columns["epistemic"], total)
    constants, log_prob = _constant_numbers(values, mask)
    if log_prob is not None:
        per_value = num_values if data.task == "series" else np.ones(len(mask))
        columns["constant"] = _own_units(log_prob / np.maximum(per_value, 1), data)
        constants["nll"] = -mean_and_error(log_prob, per_value)[0]
    examples = ()
    if data.task != "series":
        examples = examples_of(columns["width"], data, columns)
    return JudgedRows(
        "numbers", 0, np.zeros(0), columns, cdf[mask], errors, constants, examples
    )


def _quantiles(prediction: Prediction) -> list[Float[np.ndarray, "rows ..."]]:
    """The band's lower end, the median and the upper end; NaN for rows not kept.

    They take as long as all else, and nothing is said of them but row by row.
    """
    index = _spaced(prediction.num_rows, MOST_ROWS)
    if len(index) < prediction.num_rows:
        outputs = jax.tree.map(lambda a: a[:, index], prediction.outputs)
        kept = Prediction(outputs, prediction.likelihood)
    else:
        kept = prediction
    found = []
    for level in ((1 - _BAND) / 2, 0.5, (1 + _BAND) / 2):
        values = np.asarray(kept.quantile(level), np.float64)
        whole = np.full((prediction.num_rows, *values.shape[1:]), np.nan)
        whole[index] = values
        found.append(whole)
    return found


def _constant_numbers(
    values: np.ndarray, mask: np.ndarray
) -> tuple[dict[str, float], Float[np.ndarray, " rows"] | None]:
    """The RMSE of each column's mean, and each row's log density under its Gaussian."""
    axes = tuple(range(mask.ndim - 1))
    count = np.maximum(mask.sum(axis=axes), 1)
    known = np.where(mask, values, 0.0)
    gaps = np.where(mask, known - known.sum(axis=axes) / count, 0.0)
    variance = np.sum(gaps**2, axis=axes) / count
    constants = {"rmse": math.sqrt(np.sum(gaps**2) / max(mask.sum(), 1))}
    if not np.all(variance > 0):
        return constants, None
    each = -0.5 * (gaps**2 / variance + np.log(2 * math.pi * variance))
    each = np.where(mask, each, 0.0)
    return constants, each.sum(axis=tuple(range(1, mask.ndim)))


def _error(values: np.ndarray) -> float:
    return mean_and_error(np.asarray(values, np.float64))[1]


def _share_error(part: np.ndarray, total: np.ndarray) -> dict[str, float]:
    if not np.any(total > 0):
        return {}
    return {"epistemic_share": mean_and_error(part, total)[1]}


def _scale(data: Data) -> float:
    """Of one target's unit; 1 where several columns have none in common."""
    scaling = data.y_scaling
    if scaling is None or np.size(scaling.scale) != 1:
        return 1.0
    return float(np.squeeze(scaling.scale))


def _own_units(log_prob: np.ndarray, data: Data) -> Float[np.ndarray, " rows"]:
    return np.asarray(log_prob, np.float64) - math.log(_scale(data))


def _spaced(number: int, most: int) -> np.ndarray:
    if number <= most:
        return np.arange(number)
    return np.linspace(0, number - 1, most).round().astype(int)
