"""How long a recipe trains: passes over the data, or steps of the optimiser."""

import dataclasses

import jax.numpy as jnp
import pytest

from ornstein.cli._main import COMMANDS
from ornstein.cli._parse import parse
from ornstein.cli._usage import UsageError
from ornstein.data import load
from ornstein.recipe import (
    _search as search,
    check_recipe,
    prepare,
    preset_recipe,
    tune_recipe,
)
from ornstein.recipe._training import fit_options, validation_of
from ornstein.train import Tuning

TABLE = "uci/NAME.csv"


def trained(*args: str):
    return parse(["train", *args], COMMANDS).recipe.training


def test_steps_are_whole_epochs_that_hold_them():
    """Catches epochs that fall short, and steps of batches that are clipped."""
    data = load("toy/cos")
    num_data = len(data.train)
    recipe = preset_recipe("toy/cos", model="deterministic")
    assert recipe.training.batch_size > num_data
    assert fit_options(recipe.changed(steps=7), data)["num_epochs"] == 7
    small = recipe.changed(steps=7, batch_size=num_data // 3)
    assert small.training.steps_per_epoch(num_data) == 3
    assert fit_options(small, data)["num_epochs"] == 3
    assert fit_options(recipe.changed(epochs=5), data)["num_epochs"] == 5


def test_validations_are_as_far_apart_as_steps_say():
    """Not after each epoch, which may be one step: most of the time went there."""
    data = load("toy/cos").with_validation(0.2, seed=0)
    recipe = preset_recipe("toy/cos", model="deterministic")
    by_steps = validation_of(recipe.changed(steps=2000), data)
    by_epochs = validation_of(recipe, data)
    assert by_steps is not None
    assert by_epochs is not None
    assert (by_steps.every, by_epochs.every) == (500, 1)


def test_one_of_epochs_and_steps():
    """The one that is given takes the place of a preset's other."""
    recipe = preset_recipe("toy/cos")
    assert recipe.changed(steps=9).training.epochs is None
    assert recipe.changed(steps=9).changed(epochs=3).training.steps is None
    for epochs, steps in ((3, 9), (None, None)):
        with pytest.raises(ValueError, match="give one of them"):
            check_recipe(recipe.changed(epochs=epochs, steps=steps))
    with pytest.raises(ValueError, match="`steps` must be positive, got 0"):
        check_recipe(recipe.changed(steps=0))
    of_table = trained("--data", TABLE, "--model", "mc-dropout")
    assert of_table.steps
    assert of_table.epochs is None
    options = ("--data", TABLE, "--model", "mc-dropout", "--epochs", "3")
    own = trained(*options)
    assert (own.epochs, own.steps) == (3, None)
    own = trained("--data", "digits", "--steps", "30")
    assert (own.epochs, own.steps) == (None, 30)
    both = parse(["train", *options, "--steps", "9"], COMMANDS).recipe
    with pytest.raises(ValueError, match="got 3 and 9"):
        check_recipe(both)
    with pytest.raises(UsageError, match="leave the others out"):
        parse(["train", "--resume", "runs/a", "--steps", "9"], COMMANDS)


def test_trials_are_a_quarter_of_the_steps(monkeypatch):
    """Catches trials of a budget that is not there, and of the whole one."""
    asked = {}

    def answer(make_model, split, likelihood, *, validation, options, **rest):
        del make_model, split, likelihood, rest
        setting = {"learning_rate": 1e-3}
        asked.update(options(setting), every=validation.every)
        return Tuning([setting], setting, None)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "tune", answer)
    recipe = preset_recipe("toy/cos", model="deterministic").changed(steps=2000)
    found, _ = tune_recipe(prepare(recipe), ["lr"])
    assert (asked["num_epochs"], asked["every"]) == (500, 500)
    changed = dataclasses.replace(found.training, learning_rate=3e-3)
    assert changed == recipe.training


def test_members_have_the_rate_and_decay_of_one():
    """By SGD on (w - 1)² / 2, whose mean over five members is what is trained. Catches
    (seen) a fifth of the gradient beside the whole of the decay."""
    ends = []
    for model in ("deterministic", "ensemble"):
        recipe = preset_recipe("digits", model=model).changed(
            optimiser="nesterov", learning_rate=0.05, weight_decay=0.1
        )
        options = fit_options(recipe, load("digits"))
        share = 1 / recipe.weights.num_members if model == "ensemble" else 1.0
        rule = options["optimiser"]["weights"](options["learning_rate"]["weights"])
        weights = jnp.zeros((1, 1))
        state = rule.init(weights)
        for _ in range(400):
            moves, state = rule.update(share * (weights - 1), state, weights)
            weights = weights + moves
        ends.append(float(weights[0, 0]))
    assert ends[0] == pytest.approx(1 / 1.1, abs=1e-3)
    assert ends[1] == pytest.approx(ends[0], abs=1e-3)
