"""Figure 1 of Xu et al. (2022): hidden units over depth, ODE net and SDE-BNN."""

from typing import Any, cast

import numpy as np

from ...functions import SDEBNN, without_noise
from ...plot import animate_trajectories, trajectories
from ...recipe import preset_recipe
from ...report import save_figure
from .._experiment import Experiment, Study
from .._train_and_judge import TOY_EPOCHS, fit_and_judge, paths_of

_INPUTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_NUM_DRAWS = 40
_NUM_TIMES = 21


def _run(study: Study) -> list[dict[str, Any]]:
    recipe = preset_recipe("toy/cos").changed(
        epochs=TOY_EPOCHS[study.scale], seed=study.seed
    )
    rows = []
    twins = {"ode_net": without_noise, "sdebnn": lambda model: model}
    for name, change in twins.items():
        num_draws = 1 if name == "ode_net" else _NUM_DRAWS

        def compute(change=change, num_draws=num_draws) -> dict[str, Any]:
            _, fit, scores, _ = fit_and_judge(recipe, change)
            keep = ("nll", "rmse", "elbo", "kl_path", "epistemic_share")
            paths = paths_of(cast(SDEBNN, fit.model), _INPUTS, num_draws, _NUM_TIMES)
            return {"scores": {k: scores[k] for k in keep}, "paths": paths}

        found = study.piece(name, recipe.to_json(), compute)
        ts, hs = np.array(found["paths"]["ts"]), np.array(found["paths"]["hs"])
        labels = tuple(f"x = {x:g}" for x in _INPUTS)
        title = {"ode_net": "ODE net", "sdebnn": "SDE-BNN"}[name]
        figure = trajectories(ts, hs, labels=labels, title=title)
        study.say(f"Wrote {save_figure(study.folder / f'{name}.png', figure)}")
        gif = animate_trajectories(
            study.folder / f"{name}.gif", ts, hs, labels=labels, title=title
        )
        study.say(f"Wrote {gif}")
        spread = float(hs[:, -1].std(axis=0).mean())
        rows.append({"model": name, "spread_at_depth_1": spread} | found["scores"])
    return rows


FIG1 = Experiment(
    "hidden units over depth of an ODE net and an SDE-BNN, also as animations",
    "One path for each input of the ODE net; a distribution of them for the SDE-BNN.",
    _run,
)
