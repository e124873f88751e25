"""Table 1 of Xu et al. (2022): the SDE-BNN beside its baselines.

Every row comes from the recipes of `recipes/`, and every finished run stays as
`MODEL-SEED.json`, so that the table is made from what is there, in several sittings.
"""

from typing import Any

import numpy as np

from ..._sentence import OptionError
from ...metrics import mean_and_error, resampled_ece
from ...recipe import MODELS, Recipe, load_recipe, model_name, recipe_names
from .._experiment import Experiment, Study
from .._row_scores import RowScores
from ._table1_runs import (
    finished_row,
    read_record,
    recipe_of,
    row_scores,
    trained_row,
)

PAPER: dict[str, dict[str, tuple[str, str]]] = {
    "mnist": {
        "resnet-32": ("99.46 ± 0.00", "2.88 ± 0.94"),
        "odenet": ("98.90 ± 0.04", "1.11 ± 0.10"),
        "hyper-odenet": ("99.04 ± 0.00", "1.04 ± 0.09"),
        "mean-field-resnet-32": ("99.44 ± 0.00", "2.76 ± 1.28"),
        "hmc": ("98.31", "1.79"),
        "mean-field-odenet": ("98.81 ± 0.00", "2.63 ± 0.31"),
        "mean-field-hyper-odenet": ("98.77 ± 0.01", "2.82 ± 1.34"),
        "sdebnn": ("99.30 ± 0.09", "0.63 ± 0.10"),
        "sdebnn-stl": ("99.10 ± 0.09", "0.78 ± 0.12"),
    },
    "cifar10": {
        "resnet-32": ("87.35 ± 0.00", "8.47 ± 0.39"),
        "odenet": ("88.30 ± 0.29", "8.71 ± 0.21"),
        "hyper-odenet": ("87.92 ± 0.46", "15.86 ± 1.25"),
        "mean-field-resnet-32": ("86.97 ± 0.00", "3.04 ± 0.94"),
        "deep-ensemble": ("89.22", "2.79"),
        "hmc": ("90.70", "5.94"),
        "mean-field-odenet": ("81.59 ± 0.01", "3.62 ± 0.40"),
        "mean-field-hyper-odenet": ("80.62 ± 0.00", "4.29 ± 1.10"),
        "sdebnn": ("89.84 ± 0.94", "7.19 ± 0.37"),
        "sdebnn-stl": ("89.10 ± 0.45", "7.97 ± 0.51"),
    },
}
"""Accuracy in % and ECE × 10⁻², as printed."""

_ORDER = (
    *("resnet-32", "odenet", "hyper-odenet", "mean-field-resnet-32", "deep-ensemble"),
    *("hmc", "mean-field-odenet", "mean-field-hyper-odenet", "sdebnn", "sdebnn-stl"),
    *("partial-sdebnn", "inducing-sdebnn"),
)
_SPREAD = ("accuracy", "ece", "nll", "brier")
_MEANS = (
    *("elbo", "kl", "kl_path", "kl_initial", "kl_weights"),
    *("epistemic_share", "drift_gain", "train_seconds"),
)
_NOT_RECORDS = ("result",)
_TWIN = "-without-noise"
_OF_NOISE = {
    *("model", "init_scale", "weight_noise", "random_weights", "test_draws"),
    *("accumulate", "draw_per_part"),
}


def _run(study: Study) -> list[dict[str, Any]]:
    if study.data == "mocap":
        raise ValueError(
            "table1 has images, and mocap sequences: `ornstein reproduce mocap` makes "
            "their table."
        )
    _records(study)  # refuses what may not be mixed, before anything is trained
    models = study.models or _in_order(recipe_names(study.scale).get(study.data, ()))
    if not models:
        raise OptionError(
            "There are no recipes for {!r} at {scale} {}, only for {}: name files of "
            "your own, such as {models} mine.json.",
            study.data,
            study.scale,
            ", ".join(recipe_names(study.scale)),
        )
    runs = [
        (model, seed)
        for model in models
        for seed in study.seeds_of(load_recipe(study.data, model, study.scale)[0])
    ]
    done = [finished_row(study, study.data, *run) is not None for run in runs]
    for (model, seed), is_done in zip(runs, done, strict=True):
        if is_done:
            study.say(f"{model_name(model)}-{seed}: kept from before")
        else:
            trained_row(study, study.data, model, seed)
    records = _records(study)
    for record in records:
        name = f"{record['model']}-{record['seed']}"
        study.ledger.take(name, record.get("provenance"))
    return [row | _beside_twin(study, row["model"], records) for row in table(records)]


def _beside_twin(
    study: Study, model: str, records: list[dict[str, Any]]
) -> dict[str, float]:
    """How much worse than its twin without noise it predicts, of the seeds of both."""
    runs = {(record["model"], record["seed"]): record for record in records}
    pairs = []
    for (name, seed), record in runs.items():
        twin = runs.get((model + _TWIN, seed))
        if name != model or twin is None:
            continue
        if other := _trained_otherwise(record, twin):
            study.say(
                f"{model}-{seed}: not compared with {twin['model']}-{seed}, of another "
                f"{', '.join(other)}"
            )
            continue
        ours, its = row_scores(study, record), row_scores(study, twin)
        if ours is not None and its is not None and len(ours.nll) == len(its.nll):
            pairs.append((ours, its))
    return beside_twin(pairs) if pairs else {}


def beside_twin(pairs: list[tuple[RowScores, RowScores]]) -> dict[str, float]:
    """How much worse a model is than its twin: NLL and ECE, means over seeds.

    Standard errors are those over test rows, which both have met: not of seeds, nor of
    draws. That of the ECE is of a bootstrap.

    Args:
        pairs: the model's and its twin's, of each seed.
    """
    differences = [np.float64(ours.nll) - its.nll for ours, its in pairs]
    mean, error = mean_and_error(np.mean(differences, axis=0))
    models = [*(ours for ours, _ in pairs), *(its for _, its in pairs)]
    resampled = resampled_ece(
        np.stack([model.confidence for model in models]),
        np.stack([model.is_right for model in models]),
    )
    ours, its = np.split(resampled, 2, axis=1)
    eces = (ours - its).mean(axis=1)
    return {
        "nll_minus_twin": mean,
        "nll_minus_twin_se_rows": error,
        "ece_minus_twin": float(eces[0]),
        "ece_minus_twin_se_rows": float(eces[1:].std(ddof=1)),
        "seeds_beside_twin": len(pairs),
    }


def _trained_otherwise(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Options that a model and its twin should share, and do not."""
    ours, its = recipe_of(one), recipe_of(other)
    if not (isinstance(ours, Recipe) and isinstance(its, Recipe)):
        return ["kind"]
    has_prior = "prior" in MODELS[ours.model.model].options
    found = ["prior"] if has_prior and its.model.model != "map" else []
    for part in ("data", "network", "model", "weights", "solver", "training"):
        own, other_own = vars(getattr(ours, part)), vars(getattr(its, part))
        names = sorted(set(own) - _OF_NOISE)
        found += [name for name in names if own[name] != other_own[name]]
    return found


def table(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each model: means and standard deviations over its seeds.

    Args:
        records: finished runs of one data set.
    """
    by_model: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_model.setdefault(record["model"], []).append(record)
    return [_row(model, by_model[model]) for model in _in_order(by_model)]


def _row(model: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    first = runs[0]
    _check_same(model, runs)
    accuracy, ece = PAPER.get(first["data"], {}).get(model, (None, None))
    row: dict[str, Any] = {
        "model": model,
        "seeds": len(runs),
        "num_parameters": first["num_parameters"],
    }
    for name in _SPREAD:
        values = [run[name] for run in runs]
        row |= {name: float(np.mean(values)), f"{name}_sd": _deviation(values)}
        row |= {"paper_accuracy": accuracy} if name == "accuracy" else {}
        row |= {"paper_ece": ece} if name == "ece" else {}
    row["kl_weight"] = first["kl_weight"]
    row |= {name: _mean([run.get(name) for run in runs]) for name in _MEANS}
    for name in _SPREAD[:3]:
        zeroed = [run.get("without_drift", {}).get(name) for run in runs]
        row[f"{name}_without_drift"] = _mean(zeroed)
    return row | {"note": " ".join(first["notes"])}


def _check_same(model: str, runs: list[dict[str, Any]]) -> None:
    """Runs of one row differ in their seeds alone, and in options of other versions."""
    recipes = [recipe_of(run) or run["recipe"] for run in runs]
    for run, recipe in zip(runs, recipes, strict=True):
        if recipe != recipes[0]:
            raise OptionError(
                "{}-{}.json and {}-{}.json are of different recipes: remove one, or "
                "name another folder with {out}.",
                model,
                runs[0]["seed"],
                model,
                run["seed"],
            )


def _records(study: Study) -> list[dict[str, Any]]:
    """The finished runs in the study's folder, all of one version."""
    files = sorted(study.folder.glob("*.json"))
    files = [file for file in files if file.stem not in _NOT_RECORDS]
    return [read_record(file, study, study.data) for file in files]


def _in_order(models: Any) -> tuple[str, ...]:
    """The paper's order; then others by name."""
    known = [model for model in _ORDER if model in models]
    return (*known, *sorted(set(models) - set(known)))


def _mean(values: list[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return float(np.mean(given)) if given else None


def _deviation(values: list[float]) -> float | None:
    """`None` of one run, which has no spread."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


TABLE1 = Experiment(
    "the SDE-BNN beside its baselines: accuracy and calibration on images",
    "Xu et al. (2022), table 1: paper_accuracy in %, paper_ece in 0.01.",
    _run,
    options=("data", "models"),
    folder="results/table1/{data}-{scale}",
    scales=("quick", "hours", "gpu", "full"),
)
