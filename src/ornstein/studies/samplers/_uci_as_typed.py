"""UCI's sets as a newcomer types them: `ornstein train --data uci/NAME`, and `--model`.

Nothing is chosen here: presets decide, with the rows in view and no score. Some of what
they say was chosen with test rows of split 0 in view (`ornstein.recipe._sampling` and
`ornstein.recipe.presets` say what), so that splits from 1 on are the fairer ones.
"""

import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import numpy as np

from ..._sentence import OptionError
from ...evaluation import fit_scores
from ...recipe import (
    Keys,
    ModelName,
    Recipe,
    SampleRecipe,
    ScaleName,
    hand_over,
    is_handed_over,
    load_data,
    prepare,
    preset_recipe,
    run_sampling,
    train,
)
from .._experiment import Experiment, Study
from ._uci import PUBLISHED as MC_DROPOUT

_NUM_SPLITS: dict[ScaleName, int] = {"quick": 1, "gpu": 20, "full": 20}


class Scores(NamedTuple):
    """Over splits; NaN for what is not known."""

    rmse: float
    log_likelihood: float = math.nan


PUBLISHED: dict[ModelName, dict[str, Scores]] = {
    "mc-dropout": {name: Scores(*scores) for name, scores in MC_DROPOUT.items()},
    "ensemble": {
        "concrete": Scores(6.03, -3.06),
        "yacht": Scores(1.58, -1.18),
        "wine-quality-red": Scores(0.64, -0.94),
        "kin8nm": Scores(0.09, 1.20),
    },
    "mean-field": {
        "concrete": Scores(7.13, -3.39),
        "yacht": Scores(6.89, -3.44),
        "wine-quality-red": Scores(0.646, -0.98),
        "kin8nm": Scores(0.099, 0.90),
    },
}
"""MC dropout to convergence, probably of Mukhoti, Stenetorp & Gal (2018), from memory;
Lakshminarayanan et al. (2017), table 1; Graves'
variational inference (2011) as Hernández-Lobato & Adams (2015) have it, table 1."""
_MODELS: tuple[ModelName, ...] = ("auto", *PUBLISHED, "sdebnn", "implicit")


def _run(study: Study) -> list[dict[str, Any]]:
    """Compute what is asked for, split by split; show all that there is."""
    asked = _asked(study)
    for split in range(_NUM_SPLITS[study.scale]):
        for cell in asked:
            study.piece(*_piece(study, *cell, split), _compute(study, *cell, split))
    rows = []
    for name, model in _cells():
        numbers = range(_NUM_SPLITS[study.scale])
        found = {n: study.find(*_piece(study, name, model, n)) for n in numbers}
        kept = {number: one for number, one in found.items() if one is not None}
        if kept:
            rows.append(_row(name, model, kept))
    return rows


def _cells() -> list[tuple[str, ModelName]]:
    return [(name, model) for name in MC_DROPOUT for model in _MODELS]


def _asked(study: Study) -> list[tuple[str, ModelName]]:
    """The cells that `yacht`, `auto` or `yacht/auto` name; none by `kept`; or all."""
    if study.shows_kept:
        return []
    found: dict[tuple[str, ModelName], None] = {}
    for model in study.models:
        ours = [c for c in _cells() if model in (*c, "/".join(c))]
        if not ours:
            raise OptionError(
                "{models} {} is no row of `reproduce uci-as-typed`: give a set ({}), a "
                "model ({}), or both, such as yacht/auto; or kept, for what is there.",
                model,
                ", ".join(MC_DROPOUT),
                ", ".join(_MODELS),
            )
        found |= dict.fromkeys(ours)
    return list(found) if study.models else _cells()


def _piece(
    study: Study, name: str, model: ModelName, split: int
) -> tuple[str, dict[str, Any]]:
    """Its name, and the recipe that the presets of today make of it."""
    settings = _recipe(study, name, model, split).to_json()
    return f"{name}_{model}_{split}", {"recipe": settings}


def _recipe(
    study: Study, name: str, model: ModelName, split: int
) -> Recipe | SampleRecipe:
    recipe = preset_recipe(f"uci/{name}", model=model)
    recipe = recipe.changed(split=split, seed=study.seed)
    if not is_handed_over(recipe):
        return recipe
    return hand_over(recipe, load_data(recipe))


def _compute(study: Study, name: str, model: ModelName, split: int) -> Any:
    def compute() -> dict[str, Any]:
        jax.clear_caches()
        recipe, started = _recipe(study, name, model, split), time.monotonic()
        if isinstance(recipe, SampleRecipe):
            prepared, num_draws = prepare(recipe.recipe), recipe.sampling.test_draws
            with TemporaryDirectory() as folder:
                fitted = run_sampling(recipe, prepared, Path(folder) / "samples")
        else:
            prepared, num_draws = prepare(recipe), recipe.training.test_draws
            fitted = train(prepared)
        seconds = time.monotonic() - started
        keys = Keys.of(prepared.recipe)
        scores, _ = fit_scores(
            fitted,
            prepared.data,
            num_draws=num_draws,
            test_key=keys.test,
            bound_key=keys.bound,
        )
        found = {
            "rmse": scores["rmse_in_target_units"],
            "log_likelihood": -scores["nll_in_target_units"],
            "coverage_90": scores.get("coverage_90"),
            "r_hat": scores.get("r_hat"),
            "seconds": seconds,
        }
        return {key: float(v) for key, v in found.items() if v is not None}

    return compute


def _row(
    name: str, model: ModelName, found: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "data": name,
        "model": model,
        "num_splits": len(found),
        "split_numbers": list(found),
    }
    for score in ("rmse", "log_likelihood", "seconds"):
        values = np.array([one[score] for one in found.values()])
        row[score] = float(values.mean())
        if len(values) > 1:
            error = values.std(ddof=1) / math.sqrt(len(values))
            row[f"{score}_se"] = float(error)
    for score in ("coverage_90", "r_hat"):
        kept = [one[score] for one in found.values() if score in one]
        if kept:
            row[score] = float(np.mean(kept))
    published = PUBLISHED.get(model if model != "auto" else "mc-dropout")
    if published is not None:
        rmse, log_likelihood = published[name]
        row |= {
            "published_rmse": rmse,
            "published_log_likelihood": log_likelihood,
            "rmse_over_published": row["rmse"] / rmse,
        }
    return row


UCI_AS_TYPED = Experiment(
    "RMSE and log likelihood on UCI's sets of `ornstein train --data uci/NAME` and of "
    "`ornstein train --data uci/NAME --model MODEL`",
    "MC dropout to convergence, probably Mukhoti, Stenetorp & Gal (2018), from memory; "
    "deep ensembles, Lakshminarayanan et al. (2017); variational inference, "
    "Hernandez-Lobato & Adams (2015).",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
