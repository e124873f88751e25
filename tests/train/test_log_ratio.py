"""Which model, with which KL, importance weighting takes, and on which batches."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import small_model

import ornstein as orn
from ornstein.cli._flags import said
from ornstein.data import load
from ornstein.functions import (
    AnalyticKL,
    Flipout,
    GRURecognition,
    LatentODE,
    LatentSDE,
    LocalReparameterised,
    MeanField,
    Reparameterised,
    SampledKL,
    StickTheLandingKL,
)
from ornstein.nn import MLP
from ornstein.recipe import Recipe, prepare, preset_recipe
from ornstein.sde import KL, FullMonteCarlo, StickTheLanding
from ornstein.train import ImportanceWeighted

SERIES = orn.Series.of(np.linspace(0.0, 1.0, 3), np.ones((4, 3, 1), np.float32))
ROWS = np.ones((4, 2), np.float32)


def latent(kind: Any, estimator: Any) -> tuple[Any, Any]:
    recognition = GRURecognition(1, 2, hidden_size=3, key=jr.key(0))
    return kind.make(recognition, 1, estimator=estimator, key=jr.key(1)), SERIES


def sdebnn(estimator: Any, **options: Any) -> tuple[Any, Any]:
    return small_model(estimator=estimator, **options), ROWS


def mean_field(noise: Any, kl: Any) -> tuple[Any, Any]:
    return MeanField(MLP(2, 1, (3,), key=jr.key(0)), noise=noise, kl=kl), ROWS


CASES: dict[str, tuple[Any, str | None]] = {
    "sdebnn, kl": (lambda: sdebnn(KL()), None),
    "sdebnn, full": (lambda: sdebnn(FullMonteCarlo()), "shared"),
    "sdebnn, stl": (lambda: sdebnn(StickTheLanding()), None),
    "path per row, kl": (lambda: sdebnn(KL(), is_path_per_row=True), None),
    "path per row, full": (
        lambda: sdebnn(FullMonteCarlo(), is_path_per_row=True),
        None,
    ),
    "path per row, stl": (
        lambda: sdebnn(StickTheLanding(), is_path_per_row=True),
        None,
    ),
    "latent-sde, kl": (lambda: latent(LatentSDE, KL()), None),
    "latent-sde, full": (lambda: latent(LatentSDE, FullMonteCarlo()), "rows"),
    "latent-sde, stl": (lambda: latent(LatentSDE, StickTheLanding()), None),
    "latent-ode, kl": (lambda: latent(LatentODE, KL()), None),
    "latent-ode, full": (lambda: latent(LatentODE, FullMonteCarlo()), "rows"),
    "latent-ode, stl": (lambda: latent(LatentODE, StickTheLanding()), None),
    **{
        f"mean-field, {type(noise).__name__}, {type(kl).__name__}": (
            lambda noise=noise, kl=kl: mean_field(noise, kl),
            "shared" if isinstance(noise, Reparameterised) and is_ratio else None,
        )
        for noise in (Reparameterised(), LocalReparameterised(), Flipout())
        for kl, is_ratio in (
            (AnalyticKL(), False),
            (SampledKL(), True),
            (StickTheLandingKL(), False),
        )
        if isinstance(noise, Reparameterised) or not isinstance(kl, StickTheLandingKL)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_which_draws_have_a_log_ratio(case: str):
    """And what is made of it on all rows, and on some. Catches (seen) a `LatentSDE`
    that has one with any KL, an `SDEBNN` likewise, and sticking the landing taken for
    one though its gradient is another bound's."""
    make, expected = CASES[case]
    model, x = make()
    x = jax.tree.map(jnp.asarray, x)
    call = lambda x, key: model(x, key=key, index=None)
    log_ratio = eqx.filter_eval_shape(call, x, jr.key(0)).log_ratio
    assert log_ratio == expected
    check = lambda num_data: ImportanceWeighted().check(
        log_ratio, num_rows=4, num_data=num_data
    )
    if expected is None:
        with pytest.raises(ValueError, match="weighs each draw by its own log ratio"):
            check(4)
        return
    check(4)
    if expected == "rows":
        check(9)
        return
    with pytest.raises(ValueError, match="no bound on a batch of 4 of 9 rows"):
        check(9)


WEIGHTED: dict[str, Any] = {"importance_weighted": True, "num_draws": 2}
NO_RATIO = "weighs each draw by its own log ratio.*--model {}.*: "
BOTH = NO_RATIO + "give --estimator full and --weight-noise plain, or"
DOORS: list[tuple[str, dict[str, Any], str | None]] = [
    ("sdebnn", {"estimator": "kl"}, NO_RATIO + "give --estimator full"),
    ("sdebnn", {"estimator": "stl"}, NO_RATIO + "give --estimator full"),
    ("sdebnn", {"path_per_row": True}, NO_RATIO + "give no --path-per-row"),
    ("sdebnn", {"batch_size": 8}, "--batch-size 8 of 40 .*: give --batch-size 40"),
    ("sdebnn", {"accumulate": 2}, "takes each batch whole, and --accumulate 2"),
    ("sdebnn", {"num_draws": 1}, "--num-draws 1 is the plain bound"),
    ("sdebnn", {}, None),
    ("mean-field", {"weight_noise": "local"}, "give --weight-noise plain"),
    ("mean-field", {"weight_noise": "plain"}, None),
    ("mean-field", {"estimator": "kl"}, BOTH),
    ("deterministic", {}, NO_RATIO + "leave it out"),
    ("latent-sde", {"estimator": "kl"}, NO_RATIO + "give --estimator full"),
    ("latent-sde", {"estimator": "stl"}, NO_RATIO + "give --estimator full"),
    ("latent-sde", {"accumulate": 2}, "takes each batch whole, and --accumulate 2"),
    ("latent-sde", {}, None),
    ("latent-ode", {"estimator": "kl"}, NO_RATIO + "give --estimator full"),
    ("latent-ode", {}, None),
]


def recipe_of(model: Any, changes: dict[str, Any]) -> Recipe:
    is_latent = model.startswith("latent")
    recipe = preset_recipe("toy/gbm" if is_latent else "toy/cos", model=model)
    if model != "deterministic":
        changes = {"estimator": "full"} | changes
    if not is_latent:
        changes = {"batch_size": 40} | changes
    return recipe.changed(**(WEIGHTED | changes))


@pytest.fixture(scope="module")
def rows() -> Any:
    return load("toy/cos")


@pytest.mark.parametrize(("model", "changes", "match"), DOORS)
def test_the_command_line_says_it_in_flags(model: Any, changes: Any, match: Any, rows):
    """Catches the same faults at its own door, and a sentence without a way out.

    Seen failing where one sentence led to the next: of two options that mean-field
    weights lack, it named the first alone.
    """
    recipe = recipe_of(model, changes)
    prepared = lambda: prepare(recipe, rows if recipe.data.data == "toy/cos" else None)
    if match is None:
        assert prepared().recipe == recipe
        return
    with pytest.raises(ValueError, match="`importance_weighted` ") as caught:
        prepared()
    sentence = said(caught.value)
    assert re.search(match.format(model), sentence)
    assert sentence.startswith("--importance-weighted ")
    assert sentence.endswith(("leave it out.", "leave one of them out."))
