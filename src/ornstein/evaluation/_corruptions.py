"""How a fit bears corrupted images: errors and calibration at five severities."""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import metrics
from .._types import PRNGKeyArray
from ..data import CORRUPTIONS, SEVERITIES, ByteScale, Data, corrupted_images
from ..likelihood import AbstractClassLikelihood
from ..prediction import Fitted, predict
from ._evaluate import evaluate

_SCORES = ("error", "accuracy", "nll", "ece", "brier")


def corruption_scores(
    fit: Fitted,
    data: Data,
    *,
    num_draws: int,
    key: PRNGKeyArray,
    num_rows: int | None = None,
    corruptions: Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
    keep: Callable[[str, Callable[[], Any]], Any] | None = None,
) -> dict[str, Any]:
    r"""Scores of the first test images under each corruption at each severity.

    The functions that are drawn are the same for all images; the images are the same
    for all fits of the same data and `seed`.

    Args:
        fit: of classes.
        data: images that the fit is for.
        num_draws: functions averaged over.
        key: which functions.
        num_rows: of the first test images; all by default.
        corruptions: names of `ornstein.data.CORRUPTIONS`; all by default.
        data_dir: as of `ornstein.data.load`; where the files of CIFAR-10-C may lie.
        seed: of generated corruptions.
        say: takes a line about the images, and one on each corruption.
        keep: takes "clean" or a corruption's name and what computes its scores, and
            returns them: `Study.piece`, say, for a run in several sittings.

    Returns:
        `rows`: for each corruption and severity `error` (1 - accuracy), `accuracy`,
        `nll`, `ece`, `brier`. `per_corruption`: their means over severities.
        `per_severity`: their means over corruptions and, with `_std`, standard
        deviations. `clean`: those of the same test rows as they are. `mce`: the mean
        error over all of `rows`. `mce_relative_to_clean`: that over the clean error, or
        NaN where that is 0. `generated`: whether the images are ours rather than
        CIFAR-10-C's; `note` says so in words.

    Raises:
        ValueError: for data or a likelihood that are of no classes, no corruption, or
            what `ornstein.data.corrupted_images` refuses.

    References:
        Hendrycks & Dietterich (2019), "Benchmarking neural network robustness to common
        corruptions and perturbations", section 4; with the model's own clean error for
        a baseline's as in Xu et al. (2022), "Infinitely deep Bayesian neural networks
        with stochastic differential equations".
    """
    if data.task != "classification" or not isinstance(
        fit.likelihood, AbstractClassLikelihood
    ):
        raise ValueError(
            f"Corruptions are judged by errors of classes, and {data.name} is a "
            f"{data.task} with a `{type(fit.likelihood).__name__}` likelihood: give "
            "images with classes."
        )
    names = tuple(CORRUPTIONS) if corruptions is None else tuple(corruptions)
    if not names:
        raise ValueError("There are no corruptions to judge by: give at least one.")
    corrupted = corrupted_images(
        data, num_rows=num_rows, corruptions=names, data_dir=data_dir, seed=seed
    )
    say = _nothing if say is None else say
    say(f"Note: {corrupted.note} They lie in {corrupted.folder}.")
    scale = ByteScale.of(data)
    num_rows = len(data.test) if num_rows is None else num_rows
    y = data.test.y[:num_rows]

    def scores(x: np.ndarray) -> dict[str, float]:
        found = evaluate(predict(fit, x, key=key, num_draws=num_draws), y)
        found["error"] = 1 - found["accuracy"]
        return {name: found[name] for name in _SCORES}

    def scores_of(name: str) -> list[dict[str, Any]]:
        found = []
        for severity in SEVERITIES:
            x = scale.from_bytes(corrupted.images(name, severity))
            found.append({"corruption": name, "severity": severity, **scores(x)})
        return found

    keep = _computed if keep is None else keep
    clean = keep("clean", lambda: scores(data.test.x[:num_rows]))
    rows: list[dict[str, Any]] = []
    for name in names:
        rows += keep(name, functools.partial(scores_of, name))
        errors = [row["error"] for row in rows[-len(SEVERITIES) :]]
        say(f"{name}: error {', '.join(f'{error:.3f}' for error in errors)}")
    return {
        "num_rows": num_rows,
        "generated": corrupted.generated,
        "note": corrupted.note,
        "clean": clean,
        **summarise_corruptions(rows, clean_error=clean["error"]),
        "rows": rows,
    }


def summarise_corruptions(
    rows: Sequence[dict[str, Any]], *, clean_error: float
) -> dict[str, Any]:
    """The means of `corruption_scores`.

    Args:
        rows: of each corruption at each severity.
        clean_error: without corruption.
    """
    names = dict.fromkeys(row["corruption"] for row in rows)
    severities = dict.fromkeys(row["severity"] for row in rows)
    shape = (len(names), len(severities))
    table = {
        score: np.array([row[score] for row in rows], np.float64).reshape(shape)
        for score in _SCORES
    }
    errors = table["error"]
    relative = math.nan
    if clean_error > 0:
        relative = metrics.mean_corruption_error(errors, clean_error)
    per_severity = []
    for column, severity in enumerate(severities):
        means: dict[str, Any] = {"severity": severity}
        for score, values in table.items():
            own = values[:, column]
            means[score] = float(own.mean())
            means[f"{score}_std"] = float(own.std(ddof=1)) if own.size > 1 else math.nan
        per_severity.append(means)
    per_corruption = [
        {"corruption": name}
        | {score: float(values[line].mean()) for score, values in table.items()}
        for line, name in enumerate(names)
    ]
    return {
        "mce": float(errors.mean()),
        "mce_relative_to_clean": relative,
        "per_severity": per_severity,
        "per_corruption": per_corruption,
    }


def _computed(name: str, compute: Callable[[], Any]) -> Any:
    del name
    return compute()


def _nothing(line: str) -> None:
    del line
