"""Motion capture: table O2 of the slides, Li et al. (2020), section 7.3.

Protocol: 16, 3 and 4 sequences of 300 frames, in raw units; the first three frames of
a test sequence are encoded, and the other 297 scored: the mean of 50 draws, then the
square of its error, averaged over frames and sensors. The same of the validation
sequences, by which settings can be chosen, is `val_mse`.

The models are trained at another KL weight than 1, which rows call `kl_weight`.
"""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..._types import Bool, Float
from ...data import Series, Split
from ...plot import method_curves
from ...prediction import Prediction, predict
from ...recipe import Keys, Recipe, load_recipe, model_name, with_seed
from ...report import save_figure
from .._experiment import Experiment, Study
from .._train_and_judge import fit_and_judge

_MODELS = ("latent-sde", "latent-ode")
_KEPT = (
    *("rmse", "nll", "nll_se", "joint_nll", "coverage_90"),
    *("epistemic_share", "noise_share"),
    *("elbo", "kl_path", "kl_initial", "num_parameters"),
)
_THIRDS = ("mse_frames_3_to_101", "mse_frames_102_to_200", "mse_frames_201_to_299")
_SUMMARISED = ("test_mse", "nll")
_CURVES = {
    "loss": "loss, nats per series",
    "val_nll": "validation NLL, nats per value",
}
_PUBLISHED = (
    "Li et al. (2020), table 2, ± perhaps a 95 % t-interval: latent SDE 4.03 "
    "± 0.20, latent ODE 5.98 ± 0.28; cited there: ODE2VAE-KL 8.09, ODE2VAE 10.06, "
    "NeuralODE 22.49, npODE 22.96. Of our rows that is `t95_test_mse`, over seeds."
)


def _run(study: Study) -> list[dict[str, Any]]:
    rows = []
    for model in study.models or _MODELS:
        seeds, recipe = load_recipe("mocap", model, study.scale)
        for seed in study.seeds_of(seeds):
            ours = with_seed(recipe, seed)
            assert isinstance(ours, Recipe)
            name = f"{model_name(model)}_{ours.training.seed}"
            settings = ours.to_json()
            found = study.piece(name, settings, lambda r=ours: _judged(r))
            rows.append({"model": model, "seed": ours.training.seed} | found)
    for name, label in _CURVES.items():
        figure = method_curves(
            {f"{row['model']}, seed {row['seed']}": row[name] for row in rows},
            xlabel="epoch",
            ylabel=label,
            title="mocap",
        )
        study.say(f"Wrote {save_figure(study.folder / f'{name}.png', figure)}")
    return rows + summary(rows)


def _judged(recipe: Recipe) -> dict[str, Any]:
    prepared, fit, scores, prediction = fit_and_judge(recipe)
    error, is_asked = squared_errors(prediction, prepared.data.test)
    by_series = [float(np.mean(e[m])) for e, m in zip(error, is_asked, strict=True)]
    asked = np.flatnonzero(is_asked.all(axis=(0, 2)))
    thirds = {
        name: float(np.mean(error[:, part]))
        for name, part in zip(_THIRDS, np.array_split(asked, 3), strict=True)
    }
    held = prepared.data.validation
    assert held is not None
    draws, key = recipe.training.test_draws, Keys.of(recipe).test
    on_held = squared_errors(predict(fit, held.x, key=key, num_draws=draws), held)
    found = {name: scores[name] for name in _KEPT if name in scores}
    curves = {name: fit.history[name].tolist() for name in _CURVES}
    return {
        "kl_weight": recipe.training.kl_weight,
        "test_mse": float(np.mean(error[is_asked])),
        "test_mse_by_series": by_series,
        "val_mse": float(np.mean(on_held[0][on_held[1]])),
        **thirds,
        **found,
        "train_seconds": float(fit.history["seconds"][-1]),
        "notes": list(prepared.data.notes),
        **curves,
    }


def squared_errors(
    prediction: Prediction, split: Split
) -> tuple[Float[np.ndarray, "rows times features"], Bool[np.ndarray, "..."]]:
    """The square of the error of the mean of the draws, and where values were asked.

    Args:
        prediction: of the split's series.
        split: with targets in raw units.
    """
    assert isinstance(split.y, Series)
    error = np.square(np.asarray(prediction.mean) - split.y.values)
    return error, np.asarray(split.y.mask)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each model over its seeds: means, standard deviations and 95 % intervals.

    The interval is the mean's by the t statistic, mean ± t95: what the paper prints,
    and with three seeds two and a half times the standard deviation.

    Args:
        rows: by `model`, with `kl_weight` and what is summarised.
    """
    found = []
    for model in dict.fromkeys(row["model"] for row in rows):
        ours = [row for row in rows if row["model"] == model]
        weights = {row["kl_weight"] for row in ours}
        of_model = {"model": model, "seeds": len(ours), "kl_weight": weights.pop()}
        assert not weights
        for name in _SUMMARISED:
            values = [row[name] for row in ours]
            sd, half = None, None
            if len(values) > 1:
                sd = float(np.std(values, ddof=1))
                quantile = float(stdtrit(len(values) - 1, 0.975))
                half = quantile * sd / len(values) ** 0.5
            of_model |= {f"mean_{name}": float(np.mean(values)), f"sd_{name}": sd}
            of_model |= {f"t95_{name}": half}
        found.append(of_model)
    return found


MOCAP = Experiment(
    "test error on motion capture: latent SDE and latent ODE over seeds",
    _PUBLISHED,
    _run,
    options=("models",),
)
