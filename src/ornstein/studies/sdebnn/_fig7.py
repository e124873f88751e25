"""Errors and calibration under corruptions: figures 7 and 9 of Xu et al. (2022).

The networks are those of table 1 in its own folder, trained if they are not there yet.
Their scores lie beside them, for both figures.
"""

from collections.abc import Callable
from typing import Any

import jax

from ...data import corrupted_images
from ...evaluation import corruption_scores
from ...functions import whole_rounds
from ...plot import method_curves
from ...recipe import ScaleName, load_recipe, model_name
from ...report import save_figure
from .._experiment import Experiment, Study
from ._table1_dial import table_study
from ._table1_runs import trained_row

_MODELS = ("resnet-32", "mean-field-resnet-32", "odenet", "sdebnn")
_ROWS: dict[ScaleName, int | None] = {"quick": 1000, "gpu": None, "full": None}
_NUM_SEEDS: dict[ScaleName, int | None] = {"quick": 1, "gpu": None, "full": None}
"""96 times the test rows, with every draw: one seed takes as long as its training."""

_NUM_DRAWS = 8
_WHOLE = ("mce", "mce_relative_to_clean", "generated", "num_rows", "note")
_LABELS = {"error": "error", "ece": "ECE", "nll": "NLL, nats"}


def _judged(study: Study) -> list[dict[str, Any]]:
    """One entry for each model and seed: what `corruption_scores` found."""
    found = []
    for model in study.models or _MODELS:
        seeds, _ = load_recipe(study.data, model, study.scale)
        for seed in study.seeds_of(seeds[: _NUM_SEEDS[study.scale]]):
            found.append(_judged_one(study, model, seed))
    return found


def _judged_one(study: Study, model: str, seed: int) -> dict[str, Any]:
    table = table_study(study)
    prepared, fit, record = trained_row(table, study.data, model, seed)
    num_rows = _ROWS[study.scale]
    if num_rows is not None:
        num_rows = min(num_rows, len(prepared.data.test))
    key = jax.random.key(study.seed + 13)
    # A multiple of the strata: every member of an ensemble counts alike.
    num_draws = whole_rounds(_NUM_DRAWS, fit.model.num_strata)
    if not fit.model.posterior_parts().is_random:
        num_draws = 1  # all are the same
    data_dir = prepared.recipe.data.data_dir
    images = corrupted_images(prepared.data, num_rows=num_rows, data_dir=data_dir)
    settings = {"rows": num_rows, "draws": num_draws, "trained": record["provenance"]}
    of_images = dict(settings)
    # Of it alone are there published files: scores of before are of either kind, while
    # those of other data are of generated images, and kept.
    if prepared.data.name == "cifar10":
        of_images["generated"] = images.generated

    def keep(name: str, compute: Callable[[], Any]) -> Any:
        piece = f"corrupted_{model_name(model)}_{seed}_{name}"
        return table.piece(piece, settings if name == "clean" else of_images, compute)

    found = corruption_scores(
        fit,
        prepared.data,
        num_draws=num_draws,
        key=key,
        num_rows=num_rows,
        data_dir=data_dir,
        say=study.say,
        keep=keep,
    )
    return {"model": model, "seed": seed, "notes": record["notes"]} | found


def _by_severity(study: Study) -> list[dict[str, Any]]:
    rows = []
    found = _judged(study)
    for one in found:
        name = {"model": one["model"], "seed": one["seed"]}
        clean = {"severity": 0} | {score: one["clean"][score] for score in _LABELS}
        rows.append(name | clean)
        rows += [name | row for row in one["per_severity"]]
    for score, label in _LABELS.items():
        figure = method_curves(
            {
                one["model"]: [one["clean"][score]]
                + [row[score] for row in one["per_severity"]]
                for one in reversed(found)
            },
            xs=[float(i) for i in range(1 + len(found[0]["per_severity"]))],
            xlabel="severity of corruption",
            ylabel=label,
            title=study.data,
        )
        study.say(f"Wrote {save_figure(study.folder / f'{score}.png', figure)}")
    return rows


def _whole(study: Study) -> list[dict[str, Any]]:
    rows = []
    for one in _judged(study):
        name = {"model": one["model"], "seed": one["seed"]}
        clean = {f"clean_{score}": one["clean"][score] for score in _LABELS}
        whole = {key: one[key] for key in _WHOLE}
        rows.append(name | clean | whole | {"notes": one["notes"]})
    return rows


FIG7 = Experiment(
    "error, NLL and calibration at each severity of 19 corruptions",
    "Xu et al. (2022), figure 7: the SDE-BNN's error and calibration error grow less "
    "with severity than those of ResNet32 and mean-field ResNet32.",
    _by_severity,
    options=("data", "models"),
)
FIG9 = Experiment(
    "mean corruption error, absolute and relative to clean",
    "Xu et al. (2022), figure 9 and section 5: the SDE-BNN's absolute corruption error "
    "on CIFAR-10-C is around 4.4 % below that of ResNet32 and mean-field ResNet32.",
    _whole,
    options=("data", "models"),
)
