"""What a command says of the posterior at its end."""

import json
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..data import Data
from ..diagnosis import diagnose
from ..prediction import Fitted, Prediction
from ..recipe import Keys, Prepared
from ..train import RunFolder
from ._terminal import Terminal

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
    """
    if not run.metrics.is_file():
        return {}
    epochs = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    names = dict.fromkeys(name for epoch in epochs for name in epoch)

    def number(value: Any) -> float:
        return math.nan if value is None else float(value)

    return {
        name: np.array([number(epoch.get(name)) for epoch in epochs]) for name in names
    }


def say_diagnosis(result: Mapping[str, Any], terminal: Terminal) -> None:
    """A paragraph for each finding of a result.

    Args:
        result: as it is written, with its texts in the command line's words.
        terminal: where.
    """
    for finding in result["diagnosis"]:
        terminal.say(f"{finding['name']}: {finding['message']}")
