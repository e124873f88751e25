"""Whether the posterior of the path does anything, shown honestly.

A point w0 costs nothing in the bound and can carry a whole fit while the posterior of
the path stays at its prior. So each fit stands beside itself with the drift network
zeroed, and beside a twin without noise that was trained alike.
"""

from typing import Any, NamedTuple

import jax

from ...data import DataNotFoundError
from ...evaluation import evaluate, nll_gain, ood_scores
from ...functions import without_drift, without_noise
from ...prediction import FittedModel, predict
from ...recipe import Keys, Prepared, Recipe, ScaleName, prepare, preset_recipe, train
from .._experiment import Experiment, Study
from .._train_and_judge import TOY_EPOCHS


class _Cell(NamedTuple):
    start: str
    kl_weight: float
    kl_warmup: float


_EPOCHS: dict[str, dict[ScaleName, int | None]] = {
    "toy/cos": dict(TOY_EPOCHS),
    "digits": {"quick": 80, "gpu": None, "full": None},
    "mnist": {"quick": 1, "gpu": None, "full": None},
}
"""Passes over the data; `None` for the preset's."""

_KEEP = ("accuracy", "rmse", "nll", "nll_se", "ece", "epistemic_share")


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for data, epochs in _EPOCHS.items():
        recipe = preset_recipe(data).changed(seed=study.seed)
        if epochs[study.scale] is not None:
            recipe = recipe.changed(epochs=epochs[study.scale])
        try:
            prepare(recipe)
        except DataNotFoundError as error:
            study.say(f"Left out {data}: {error}")
            continue
        for cell in _cells(recipe, study.scale):
            rows += _fits(study, recipe.changed(**cell._asdict()))
        name = f"{data.replace('/', '_')}_twin"
        twin = study.piece(name, recipe.to_json(), lambda r=recipe: _twin(r))
        rows.append({"data": data, "what": "sigma = 0 twin"} | twin)
    return rows


def _cells(recipe: Recipe, scale: ScaleName) -> list[_Cell]:
    used, warmup = recipe.training.kl_weight, recipe.training.kl_warmup
    # Without a warm-up a Gaussian w0 collapses to its prior.
    cells = {"point": warmup, "gaussian": max(warmup, 0.4)}
    if scale == "quick" and recipe.data.data == "mnist":
        start = recipe.model.start
        return [
            _Cell("gaussian", 1.0, cells["gaussian"]),
            _Cell(start, used, cells[start]),
        ]
    weights = sorted({1.0, used})
    return [_Cell(start, w, cells[start]) for start in cells for w in weights]


def _fits(study: Study, recipe: Recipe) -> list[dict[str, Any]]:
    data, start = recipe.data.data, recipe.model.start
    weight = recipe.training.kl_weight
    name = f"{data.replace('/', '_')}_{start}_{weight:g}"
    found = study.piece(name, recipe.to_json(), lambda: _fit_and_zeroed(recipe))
    cell = {"data": data, "start": start, "kl_weight": weight}
    return [cell | row for row in found]


def _fit_and_zeroed(recipe: Recipe) -> list[dict[str, Any]]:
    prepared = prepare(recipe)
    fit = train(prepared)
    zeroed = FittedModel(without_drift(fit.model), fit.likelihood)  # pyright: ignore
    ours, row = _scores(prepared, fit)
    other, zeroed_row = _scores(prepared, zeroed)
    gain, error = nll_gain(ours, other, prepared.data.test.y)
    return [
        {"what": "fit"} | row | {"gain_of_drift": gain, "gain_of_drift_se": error},
        {"what": "drift zeroed"} | zeroed_row,
    ]


def _twin(recipe: Recipe) -> dict[str, Any]:
    prepared = prepare(recipe)
    twin = without_noise(prepared.model)  # pyright: ignore
    return _scores(prepared, train(prepared._replace(model=twin)))[1]


def _scores(prepared: Prepared, fit: Any) -> tuple[Any, dict[str, Any]]:
    recipe, data, _, _ = prepared
    draws, key = recipe.training.test_draws, Keys.of(recipe).test
    prediction = predict(fit, data.test.x, key=key, num_draws=draws)
    scores = evaluate(prediction, data.test.y)
    row = {name: scores[name] for name in _KEEP if name in scores}
    ood_key = jax.random.fold_in(key, draws)
    found = ood_scores(fit, data, prediction, num_draws=draws, key=ood_key)
    return prediction, row | {f"auroc_{k}": v["auroc"] for k, v in found.items()}


POSTERIOR = Experiment(
    "what the posterior of the path does: fits, drift zeroed, twins without noise",
    "Not in the paper, whose w0 is a point and whose KL weight is 1e-3.",
    _run,
)
