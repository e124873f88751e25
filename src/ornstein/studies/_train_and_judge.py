"""What experiments do with a recipe: train it, judge it, look at its paths."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..evaluation import fit_scores
from ..functions import SDEBNN
from ..prediction import Prediction
from ..recipe import Keys, Prepared, Recipe, ScaleName, prepare, train
from ..train import Fit

TOY_EPOCHS: dict[ScaleName, int] = {"quick": 600, "gpu": 4000, "full": 4000}
"""Steps on `toy/cos`, whose every epoch is one."""


def fit_and_judge(
    recipe: Recipe, change: Callable[[Any], Any] = lambda model: model
) -> tuple[Prepared, Fit, dict[str, Any], Prediction]:
    """Train a recipe and judge it on its test rows.

    Args:
        recipe: what to train.
        change: made to the model before training, such as `without_noise`.
    """
    prepared = prepare(recipe)
    prepared = prepared._replace(model=change(prepared.model))
    fit = train(prepared)
    keys = Keys.of(recipe)
    scores, prediction = fit_scores(
        fit,
        prepared.data,
        num_draws=recipe.training.test_draws,
        test_key=keys.test,
        bound_key=keys.bound,
    )
    return prepared, fit, scores, prediction


def paths_of(
    model: SDEBNN, xs: Sequence[float], num_draws: int, num_times: int
) -> dict[str, list]:
    """The first hidden unit over depth: hs is (draws, times, inputs)."""
    ts = jnp.linspace(0.0, 1.0, num_times)
    x = jnp.asarray(xs, jnp.float32)[:, None]
    hs = []
    for index in range(num_draws):
        blocks = model.trajectory(x, ts, key=jax.random.key(0), index=index)
        hs.append(blocks[-1].hidden[..., 0])
    return {"ts": ts.tolist(), "hs": jnp.stack(hs).tolist()}
