"""At which tempos to learn motion capture, asked of walks other than the test's.

The latent SDE of `mocap` is trained without four of the 16 training walks, and judged
by them and by the three validation walks; so with each four in turn, and each set of
tempos. Training walks are all of one tempo, within 3 %, and validation walks slower by
2, 15 and 7 %: what suits the ones does not suit the others.
"""

import dataclasses
from typing import Any

import numpy as np

from ..._types import Bool
from ...data import Data, Split
from ...prediction import predict
from ...recipe import (
    Keys,
    Recipe,
    load_data,
    load_recipe,
    prepare,
    train,
    with_seed,
)
from .._experiment import Experiment, Study
from ._mocap import squared_errors

_NUM_FOLDS = 4
_CANDIDATES = (
    (),
    (0.96, 1.0),
    (0.92, 0.96, 1.0),
    (0.96, 1.0, 1.04),
    (0.9, 0.95, 1.0, 1.05),
)


def _run(study: Study) -> list[dict[str, Any]]:
    _, recipe = load_recipe("mocap", "latent-sde", study.scale)
    recipe = with_seed(recipe, study.seed)
    assert isinstance(recipe, Recipe)
    rows = []
    for tempos in _CANDIDATES:
        ours = recipe.changed(tempos=tempos)
        folds = []
        for fold in range(_NUM_FOLDS):
            settings = {"recipe": ours.to_json(), "fold": fold}
            name = "_".join([f"fold{fold}", *(f"{tempo:g}" for tempo in tempos)])
            folds.append(
                study.piece(name, settings, lambda r=ours, f=fold: _judged(r, f))
            )
        held_out = np.concatenate([found["held_out"] for found in folds])
        validation = np.mean([found["validation"] for found in folds], axis=0)
        row = {
            "tempos": list(tempos),
            "mse": float(np.mean([*held_out, *validation])),
            "mse_held_out": float(np.mean(held_out)),
            "mse_validation": float(np.mean(validation)),
            "mse_by_validation_walk": validation.tolist(),
        }
        study.say(f"tempos {row['tempos']}: mean squared error {row['mse']:.2f}")
        rows.append(row)
    return rows


def _judged(recipe: Recipe, fold: int) -> dict[str, list[float]]:
    data = load_data(recipe, change=lambda whole: without_fold(whole, fold))
    prepared = prepare(recipe, data)
    held, walks = prepared.data.validation, prepared.data.test
    assert held is not None
    # Epochs are judged by nothing: what is held out is looked at once.
    data = dataclasses.replace(prepared.data, validation=None)
    fit = train(prepared._replace(data=data))
    draws, key = recipe.training.test_draws, Keys.of(recipe).test

    def errors(split: Split) -> list[float]:
        prediction = predict(fit, split.x, key=key, num_draws=draws)
        error, is_asked = squared_errors(prediction, split)
        return np.mean(error, axis=(1, 2), where=is_asked).tolist()

    return {"held_out": errors(held), "validation": errors(walks)}


def without_fold(data: Data, fold: int) -> Data:
    """One fold of the training walks as validation, and the validation walks as test.

    Args:
        data: motion capture.
        fold: every fourth training walk, from this one on.
    """
    assert data.validation is not None
    held = np.arange(len(data.train)) % _NUM_FOLDS == fold
    return dataclasses.replace(
        data,
        train=_walks(data.train.in_memory(), ~held),
        validation=_walks(data.train.in_memory(), held),
        test=data.validation,
    )


def _walks(split: Split, chosen: Bool[np.ndarray, " rows"]) -> Split:
    return Split(split.x[chosen], split.y[chosen])


MOCAP_TEMPOS = Experiment(
    "motion capture at several tempos, judged by walks held out of training",
    "Not in the papers, which learn each walk at its own tempo.",
    _run,
)
