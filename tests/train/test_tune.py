"""Search finds what a closed form says is best."""

import math
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from train.linear_model import NOISE, linear_data, linear_model
from train.test_fit import Diverging, Plain

from ornstein.data._base import Split
from ornstein.likelihood import Gaussian
from ornstein.train import (
    Constant,
    EarlyStopping,
    LogUniform,
    NonFiniteError,
    Validation,
    tune,
)

DATA = linear_data(num_rows=80)
TRAIN, HELD = Split(DATA.x[:64], DATA.y[:64]), Split(DATA.x[64:], DATA.y[64:])


def search(
    make_model: Any, space: Any, num_epochs: int = 30, num_trials: int | None = None
) -> Any:
    return tune(
        make_model,
        TRAIN,
        Gaussian(NOISE),
        validation=Validation(HELD),
        space=space,
        key=jr.key(0),
        num_trials=num_trials,
        options={"num_epochs": num_epochs, "batch_size": 64},
    )


def test_grid_finds_the_rate_that_trains():
    """1e-6 does not move and 0.1 does. Catches a rate that never reaches `fit`."""
    met = []
    make = lambda setting: met.append(setting) or linear_model()
    tuning = search(make, {"learning_rate": (1e-6, 0.1), "sigma": (0.5,)})
    assert [s["learning_rate"] for s in met] == [1e-6, 0.1]
    assert all(s["sigma"] == 0.5 for s in met)
    assert tuning.setting == {"learning_rate": 0.1, "sigma": 0.5}
    good, bad = (row["val_nll"] for row in tuning.table)
    assert good < bad - 1.0
    assert tuning.fit.history["val_nll"][-1] == good


@pytest.mark.usefixtures("unchecked")
def test_values_of_jaxs_are_numbers():
    """Catches (seen) a grid of arrays: rates that are called as schedules."""
    met = []
    make = lambda setting: met.append(setting) or linear_model()
    space = {"learning_rate": jnp.array([0.01, 0.1]), "depth": np.array([2])}
    tuning = search(make, space, num_epochs=1)
    assert [type(value) for value in met[0].values()] == [float, int]
    assert tuning.fit.history["learning_rate"].shape == (1,)


def best_nll_of_mean(rate: float) -> float:
    """Of 12 steps on (1 - slope)² / 2, judged by (slope - 1/2)² / 2."""
    mean, nlls = 0.0, []
    for step in range(1, 13):
        mean = 0.9 * mean + 0.1 * (1 - (1 - rate) ** step)
        nlls.append((mean / (1 - 0.9**step) - 0.5) ** 2 / 2)
    return min(nlls) + 0.5 * math.log(2 * math.pi)


def test_search_ranks_by_what_is_tested():
    """By the running mean where there is one, and at the epoch that is returned.

    Seen failing with the raw weights' last NLL: it chose the rate of 0.05, whose last
    weight is the nearest and whose mean is the farthest.
    """
    x = np.ones((4, 1), np.float32)
    options = {
        "num_epochs": 12,
        "batch_size": 4,
        "optimiser": optax.sgd,
        "schedule": Constant(),
        "ema_decay": 0.9,
    }
    tuning = tune(
        lambda setting: Plain(jnp.zeros(1)),
        Split(x, x),
        Gaussian(1.0),
        validation=Validation(
            Split(x, 0.5 * x), early_stopping=EarlyStopping(patience=12)
        ),
        space={"learning_rate": (0.05, 0.1, 0.3)},
        key=jr.key(0),
        options=options,
    )
    expected = {rate: best_nll_of_mean(rate) for rate in (0.05, 0.1, 0.3)}
    rates = [row["learning_rate"] for row in tuning.table]
    assert rates == sorted(expected, key=expected.__getitem__)
    assert rates[-1] == 0.05
    for row in tuning.table:
        nll = expected[row["learning_rate"]]
        assert row["val_ema_nll"] == pytest.approx(nll, abs=1e-6)
    best = tuning.fit
    assert best.epoch is not None
    row = tuning.table[0]
    assert best.history["val_ema_nll"][best.epoch - 1] == row["val_ema_nll"]


def test_random_search_draws_from_its_ranges():
    space = {"learning_rate": LogUniform(0.1, 0.2), "sigma": (0.5, 1.0)}
    space |= {"width": (2, 4)}
    tuning = search(lambda setting: linear_model(), space, num_trials=3, num_epochs=1)
    rates = [row["learning_rate"] for row in tuning.table]
    assert len(set(rates)) == 3
    assert all(0.1 <= rate <= 0.2 for rate in rates)
    assert all(row["sigma"] in (0.5, 1.0) for row in tuning.table)
    assert all(isinstance(row["width"], int) for row in tuning.table)
    nlls = [row["val_nll"] for row in tuning.table]
    assert nlls == sorted(nlls)


def test_diverged_trials_come_last_and_all_diverged_is_an_error():
    """One slope on the first column: SGD-like Adam steps of 0.9 pass 1/2 at once."""
    diverging = lambda setting: Diverging(jnp.zeros(1), "kl")
    train, held = (Split(split.x[:, :1], split.x[:, :1]) for split in (TRAIN, HELD))
    options = {
        "validation": Validation(held),
        "key": jr.key(0),
        "options": {"num_epochs": 2, "batch_size": 64},
    }
    space = {"learning_rate": (0.9, 1e-6)}
    tuning = tune(diverging, train, Gaussian(NOISE), space=space, **options)
    assert [row["learning_rate"] for row in tuning.table] == [1e-6, 0.9]
    assert tuning.table[-1]["val_nll"] == np.inf
    space = {"learning_rate": (0.9,)}
    with pytest.raises(NonFiniteError, match="All 1 trials diverged"):
        tune(diverging, train, Gaussian(NOISE), space=space, **options)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "`space` is empty"),
        ({"learning_rate": LogUniform(0.1, 1.0)}, "pass `num_trials`"),
    ],
)
def test_bad_spaces(space, message):
    with pytest.raises(ValueError, match=message):
        search(lambda setting: linear_model(), space)
    with pytest.raises(ValueError, match="0 < low < high"):
        LogUniform(1.0, np.float64(0.5))
