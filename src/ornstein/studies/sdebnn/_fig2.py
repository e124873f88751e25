"""Figure 2 of Xu et al. (2022): predictive prior and posterior of a toy problem."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...functions import prior_of
from ...likelihood import AbstractLikelihood
from ...plot import predictive_bands
from ...prediction import FittedModel, Prediction, predict
from ...recipe import Keys, Prepared, prepare, preset_recipe, train
from ...report import save_figure
from .._experiment import Experiment, Study
from .._train_and_judge import TOY_EPOCHS

_GRID = np.linspace(-2.0, 2.0, 121, dtype=np.float32)[:, None]
_REGIONS = {
    "in the data": (abs(_GRID[:, 0]) >= 0.5) & (abs(_GRID[:, 0]) <= 1.0),
    "in the gap": abs(_GRID[:, 0]) < 0.4,
    "beyond": abs(_GRID[:, 0]) > 1.4,
}


def _run(study: Study) -> list[dict[str, Any]]:
    # A Gaussian w0, so that there is a prior of all weights.
    recipe = preset_recipe("toy/cos").changed(
        epochs=TOY_EPOCHS[study.scale], start="gaussian", seed=study.seed
    )
    prepared = prepare(recipe)
    train_x, train_y = prepared.data.train.x, prepared.data.train.y
    rows = []
    for name in ("prior", "posterior"):

        def compute(name=name) -> list:
            return _draws(prepared, trained=name == "posterior")

        kept = study.piece(name, recipe.to_json(), compute)
        prediction = _prediction(kept, prepared.likelihood)
        figure = predictive_bands(
            _GRID, prediction, data=(train_x, train_y), title=f"Predictive {name}"
        )
        study.say(f"Wrote {save_figure(study.folder / f'{name}.png', figure)}")
        lower, upper = prediction.interval(0.9)
        widths = np.asarray(upper - lower)[:, 0]
        for region, chosen in _REGIONS.items():
            width = float(widths[chosen].mean())
            rows.append({"of": name, "where": region, "width_of_90_percent": width})
    return rows


def _draws(prepared: Prepared, *, trained: bool) -> list:
    recipe = prepared.recipe
    fit: Any = FittedModel(prior_of(prepared.model), prepared.likelihood)  # pyright: ignore
    if trained:
        fit = train(prepared)
    key = Keys.of(recipe).test
    prediction = predict(fit, _GRID, key=key, num_draws=recipe.training.test_draws)
    return np.asarray(prediction.outputs).tolist()


def _prediction(outputs: list, likelihood: AbstractLikelihood) -> Prediction:
    return Prediction(jnp.asarray(outputs, jnp.float32), likelihood)


FIG2 = Experiment(
    "predictive prior and posterior on toy/cos, with percentile bands",
    "The posterior's band is narrow at the data and opens between and beyond them.",
    _run,
)
