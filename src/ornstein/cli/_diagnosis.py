"""What a command says of the posterior at its end."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from .._files import UnreadableError, parse_json, read_bytes
from ..data import Data
from ..diagnosis import diagnose
from ..prediction import Fitted, Prediction
from ..recipe import Keys, Prepared
from ..train import RunFolder
from ._terminal import Terminal

_MAX_METRICS = 2**27
_DIAGNOSED_ROWS = 256
"""Enough for every check, and half the time of twice as many."""


def diagnosis_of(
    fit: Fitted,
    prepared: Prepared,
    prediction: Prediction,
    scores: Mapping[str, Any],
    *,
    num_draws: int,
    history: dict[str, np.ndarray] | None = None,
) -> list[dict[str, Any]]:
    """What is wrong with the posterior, on test rows.

    Args:
        fit: a fit, or samples.
        prepared: the data that it learned from.
        prediction: of the test rows.
        scores: of `fit_scores`.
        num_draws: behind the prediction; the diagnosis has draws of its own.
        history: records of training.
    """
    data: Data = prepared.data
    key = jax.random.fold_in(Keys.of(prepared.recipe).test, num_draws)
    elbo = scores.get("elbo")
    found = diagnose(
        fit,
        data.test,
        key=key,
        num_rows=_DIAGNOSED_ROWS,
        num_data=len(data.train),
        train=data.train.in_memory(),
        prediction=prediction,
        bound=None if elbo is None else (elbo, scores["elbo_se"]),
        history=history,
    )
    return [finding._asdict() for finding in found.findings]


def recorded(run: RunFolder) -> dict[str, np.ndarray]:
    """The records of a run's epochs by name, as `Fit.history` has them.

    Args:
        run: whose records may be gone, and then say nothing.

    Raises:
        ValueError: if their file is damaged.
    """
    if not run.metrics.is_file():
        return {}
    try:
        lines = read_bytes(run.metrics, limit=_MAX_METRICS).splitlines()
        epochs = [_numbers(parse_json(line)) for line in lines]
    except UnreadableError as error:
        raise ValueError(
            f"{run.metrics} is truncated or damaged ({error}): move it away, and the "
            "run is judged without the records of its epochs."
        ) from error
    names = dict.fromkeys(name for epoch in epochs for name in epoch)
    return {
        name: np.array([epoch.get(name, math.nan) for epoch in epochs])
        for name in names
    }


def _numbers(epoch: Any) -> dict[str, float]:
    """The record of an epoch.

    Raises:
        UnreadableError: if it is none.
    """
    try:
        return {
            name: math.nan if value is None else float(value)
            for name, value in epoch.items()
        }
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise UnreadableError("a line is no record of numbers") from error


def say_diagnosis(result: Mapping[str, Any], terminal: Terminal) -> None:
    """A paragraph for each finding of a result.

    Args:
        result: as it is written, with its texts in the command line's words.
        terminal: where.
    """
    for finding in result["diagnosis"]:
        terminal.say(f"{finding['name']}: {finding['message']}")
