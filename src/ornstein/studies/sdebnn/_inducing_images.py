"""What inducing inputs gain on images, with a point and with a Gaussian w₀."""

import itertools
from typing import Any

import jax
import numpy as np

from ..._sentence import OptionError
from ...evaluation import ood_scores
from ...recipe import Recipe, ScaleName, StartName, preset_recipe
from .._experiment import Experiment, Study
from .._train_and_judge import fit_and_judge

_DATA = ("digits", "mnist", "cifar10")
_STARTS: tuple[StartName, ...] = ("point", "gaussian")
_DRIFTS = {"plain": 0, "8 inducing inputs": 8}
_CHANGES: dict[ScaleName, dict[str, dict[str, Any]]] = {
    "quick": {"mnist": {"train_rows": 12_000}, "cifar10": {"train_rows": 5_000}},
    "gpu": {},
    "full": {},
}
_SEEDS: dict[str, int] = {"digits": 3}
_KEPT = (
    *("elbo", "elbo_se", "kl_path", "kl_initial", "kl_weights", "drift_gain"),
    *("accuracy", "nll", "ece", "epistemic_share", "num_parameters"),
)
_GAINS = ("elbo", "nll", "ece", "auroc_noise", "auroc_rotated", "train_seconds")


def _run(study: Study) -> list[dict[str, Any]]:
    if study.data not in _DATA:
        raise OptionError(
            "inducing-images judges by images with classes, got {data} {}: give one "
            "of {}.",
            study.data,
            ", ".join(_DATA),
        )
    changes = _CHANGES[study.scale].get(study.data, {})
    base = preset_recipe(study.data).changed(**changes)
    num_seeds = _SEEDS.get(study.data, 1)
    rows = []
    for start, drift in itertools.product(_STARTS, _DRIFTS):
        for seed in range(study.seed, study.seed + num_seeds):
            recipe = base.changed(start=start, num_inducing=_DRIFTS[drift], seed=seed)
            name = f"{study.data}_{start}_{_DRIFTS[drift]}_{seed}"
            found = study.piece(name, recipe.to_json(), lambda r=recipe: _judged(r))
            rows.append({"w0": start, "drift": drift, "seed": seed} | found)
    return rows + gains(rows)


def _judged(recipe: Recipe) -> dict[str, Any]:
    prepared, fit, scores, prediction = fit_and_judge(recipe)
    draws = recipe.training.test_draws
    key = jax.random.key(recipe.training.seed + 14)
    outside = ood_scores(fit, prepared.data, prediction, num_draws=draws, key=key)
    found = {name: scores[name] for name in _KEPT if name in scores}
    found |= {f"auroc_{name}": float(s["auroc"]) for name, s in outside.items()}
    return found | {"train_seconds": float(fit.history["seconds"][-1])}


def gains(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each kind of w₀, the mean over seeds of inducing inputs minus plain.

    Args:
        rows: scores by `w0`, `drift` and `seed`.
    """
    found = []
    for start in _STARTS:
        ours = [row for row in rows if row["w0"] == start]
        plain, inducing = (
            [row for row in ours if row["drift"] == drift] for drift in _DRIFTS
        )
        mean = lambda rows, name: float(np.mean([row[name] for row in rows]))
        gain = {n: mean(inducing, n) - mean(plain, n) for n in _GAINS}
        found.append({"w0": start, "drift": "inducing minus plain"} | gain)
    return found


INDUCING_IMAGES = Experiment(
    "the ELBO of images with inducing inputs and without, w0 a point or a Gaussian",
    "Not in the paper: inducing inputs are ours.",
    _run,
    options=("data",),
    folder="runs/{name}-{data}-{scale}",
)
