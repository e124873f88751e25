"""Figure 8 of Xu et al. (2022): what augmentation does to a function of one number."""

from typing import Any

import numpy as np

from ...plot import predictive_bands
from ...prediction import predict
from ...recipe import Keys, preset_recipe
from ...report import save_figure
from .._experiment import Experiment, Study
from .._train_and_judge import TOY_EPOCHS, fit_and_judge

_GRID = np.linspace(-1.6, 1.6, 97, dtype=np.float32)[:, None]


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for augment in (0, 1, 2):
        recipe = preset_recipe("toy/cos").changed(
            epochs=TOY_EPOCHS[study.scale], augment=augment, seed=study.seed
        )

        def compute(recipe=recipe, augment=augment) -> dict[str, Any]:
            prepared, fit, scores, _ = fit_and_judge(recipe)
            draws = recipe.training.test_draws
            key = Keys.of(recipe).test
            prediction = predict(fit, _GRID, key=key, num_draws=draws)
            figure = predictive_bands(
                _GRID,
                prediction,
                data=(prepared.data.train.x, prepared.data.train.y),
                title=f"augmented by {augment}",
            )
            path = study.folder / f"{study.own(f'augment_{augment}')}.png"
            study.say(f"Wrote {save_figure(path, figure)}")
            steps = np.diff(np.asarray(prediction.outputs)[:, :, 0], axis=1)
            monotonic = (steps >= 0).all(axis=1) | (steps <= 0).all(axis=1)
            keep = ("rmse", "nll", "elbo", "kl_path")
            scores = {name: scores[name] for name in keep}
            return scores | {"share_of_monotonic_draws": float(monotonic.mean())}

        found = study.piece(f"augment_{augment}", recipe.to_json(), compute)
        rows.append({"augment": augment} | found)
    return rows


FIG8 = Experiment(
    "augmentation by 0, 1 and 2 zeros on toy/cos",
    "Without augmentation every function is monotonic and cannot fit a cosine.",
    _run,
)
