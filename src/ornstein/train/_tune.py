"""Choosing hyperparameters by the validation split."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._types import PRNGKeyArray
from ..functions import AbstractRandomFunction
from ..likelihood import AbstractLikelihood
from ._check import check_positive
from ._errors import NonFiniteError
from ._fit import Fit, fit
from ._session import judged_by, logger
from ._validation import Validation


class LogUniform(eqx.Module):
    """Positive numbers whose logarithm is uniform.

    Attributes:
        low: the smallest.
        high: the largest.
    """

    low: float
    high: float

    def __check_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(
                f"`LogUniform` needs 0 < low < high, got {self.low} and {self.high}."
            )

    def sample(self, rng: np.random.Generator) -> float:
        """One of them."""
        return float(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))


class Tuning(NamedTuple):
    """What a search found.

    Attributes:
        table: for each trial its setting and the validation scores of the epoch that
            its fit is of, best NLL first (where there is a running mean, its own,
            `val_ema_nll`); a trial that diverged has an infinite NLL.
        setting: the best one.
        fit: the best trial's.
    """

    table: list[dict[str, float]]
    setting: dict[str, float]
    fit: Fit


def tune(
    make_model: Callable[[dict[str, float]], AbstractRandomFunction],
    split: Any,
    likelihood: AbstractLikelihood,
    *,
    validation: Validation,
    space: Mapping[str, Sequence[float | int] | LogUniform],
    key: PRNGKeyArray,
    num_trials: int | None = None,
    options: Mapping[str, Any] | Callable[[dict[str, float]], Mapping[str, Any]],
) -> Tuning:
    """Search settings for the least negative log likelihood of held-out rows.

    Args:
        make_model: builds the model of a setting.
        split: training data.
        likelihood: of the targets.
        validation: the rows to choose by, as `fit` takes them.
        space: names to values to try, or to a range; for instance
            `{"learning_rate": LogUniform(1e-4, 1e-2), "sigma": (0.05, 0.1, 0.2)}`.
        key: of the search, and of every trial: all meet the same noise.
        num_trials: random settings to try; `None` tries every combination, which
            needs values rather than ranges.
        options: further arguments of `fit`: `num_epochs` at least. A setting's
            `learning_rate` joins them. Or a map from a setting to all of them, where
            more depends on it.

    Raises:
        ValueError: for an empty space, or a range without `num_trials`.
        NonFiniteError: if every trial diverged.
    """
    search_key, fit_key = jax.random.split(key)
    results = []
    for setting in _settings(space, num_trials, search_key):
        if callable(options):
            arguments = dict(options(setting))
        else:
            rate = {n: v for n, v in setting.items() if n == "learning_rate"}
            arguments = {**options, **rate}
        arguments |= {"key": fit_key, "validation": validation}
        try:
            result = fit(make_model(setting), split, likelihood, **arguments)
        except NonFiniteError as error:
            logger.warning("%s diverged: %s", setting, error)
            is_mean = arguments.get("ema_decay") is not None
            judged = "val_ema_nll" if is_mean else "val_nll"
            results.append((math.inf, {**setting, judged: math.inf}, None))
            continue
        scores = _scores(result)
        nll = scores[judged_by(scores)]
        logger.info("%s: validation NLL %.4f", setting, nll)
        nll = math.inf if math.isnan(nll) else nll
        results.append((nll, setting | scores, result))
    results.sort(key=lambda trial: trial[0])
    _, row, result = results[0]
    if result is None:
        raise NonFiniteError(
            f"All {len(results)} trials diverged: search smaller learning rates."
        )
    table = [row for _, row, _ in results]
    return Tuning(table, {name: row[name] for name in space}, result)


def _settings(space, num_trials, key) -> list[dict[str, float]]:
    if not space:
        raise ValueError(
            "`space` is empty: name what to search, as in {'learning_rate': (1e-3,)}."
        )
    ranges = [name for name, values in space.items() if isinstance(values, LogUniform)]
    if num_trials is None:
        if ranges:
            raise ValueError(
                f"`space` has a range for {ranges[0]!r}, which has no end of values: "
                "pass `num_trials`, or give the values to try."
            )
        values = (map(_plain, values) for values in space.values())
        combinations = itertools.product(*values)
        return [dict(zip(space, values, strict=True)) for values in combinations]
    check_positive(num_trials=num_trials)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return [
        {
            name: values.sample(rng)
            if isinstance(values, LogUniform)
            else _plain(values[rng.integers(len(values))])
            for name, values in space.items()
        }
        for _ in range(num_trials)
    ]


def _plain(value: Any) -> Any:
    """A number of Python's, whose kind stays."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _scores(result: Fit) -> dict[str, float]:
    """The validation scores of the epoch that the fit is of."""
    assert result.epoch is not None
    return {
        name: float(values[result.epoch - 1])
        for name, values in result.history.items()
        if name.startswith("val_")
    }
