"""Choosing a recipe's options by rows that are held out of training."""

from collections.abc import Sequence
from typing import Any

from .._sentence import Option, OptionError
from ..functions import AbstractRandomFunction
from ..train import Tuning, tune
from ._recipe import Recipe
from ._training import (
    Keys,
    Prepared,
    fit_options,
    learning_rates,
    prepare,
    validation_of,
)
from .checks import check_recipe, unread_by_model
from .inputs import load_data
from .models import build_model

TUNABLE = {
    "lr": "learning_rate",
    "noise-lr": "noise_learning_rate",
    "sigma": "sigma",
    "components": "num_components",
}
"""What `--tune` may search, and the option of each."""

HELD_OUT = 0.1
"""Of the training rows, where the recipe holds none out: Trinh et al. (2020), 3.3."""

_FACTORS = (1 / 3, 1.0, 3.0)
_COMPONENTS = (4, 8, 16)


def tune_recipe(
    prepared: Prepared, names: Sequence[str], *, trial_epochs: int | None = None
) -> tuple[Recipe, Tuning]:
    """Choose options by the validation rows.

    Components are 4, 8 or 16; others are tried at a third, once and three times what
    the recipe says; in every combination. Trials are a quarter as long as the run.
    Without validation rows a tenth of the training rows is held out of the trials
    alone, so that the recipe that comes back trains on all of them; of sequences the
    recipe's own are loaded again for that.

    Args:
        prepared: what `prepare` built.
        names: keys of `TUNABLE`.
        trial_epochs: passes over the data in each trial.

    Returns:
        The recipe with the best setting, and the table of all trials. With another
        number of components it tests as many functions of each.

    Raises:
        ValueError: for other names, or an option that the recipe does not read.
    """
    recipe, data, _, likelihood = prepared
    if trial_epochs is not None and trial_epochs < 1:
        raise ValueError(f"`trial_epochs` must be positive, got {trial_epochs}.")
    largest = check_tuned(recipe, names)
    if data.validation is None and data.task == "series":
        # Before they are learned from several points and at several tempos.
        data = load_data(recipe.changed(validation_fraction=HELD_OUT))
    elif data.validation is None:
        data = data.with_validation(HELD_OUT, seed=recipe.training.seed)
    space = {TUNABLE[name]: _values(recipe, TUNABLE[name]) for name in names}
    prepare(largest, data)
    short, keys = _shorter(recipe, trial_epochs), Keys.of(recipe)

    def make_model(setting: dict[str, float]) -> AbstractRandomFunction:
        return build_model(_with_setting(recipe, setting), data, key=keys.model)

    validation = validation_of(short, data)
    assert validation is not None
    tuning = tune(
        make_model,
        data.train,
        likelihood,
        validation=validation,
        space=space,
        key=keys.tune,
        options=lambda setting: fit_options(_with_setting(short, setting), data),
    )
    return _with_setting(recipe, tuning.setting), tuning


def check_tuned(recipe: Recipe, names: Sequence[str]) -> Recipe:
    """Refuse a search of what there is not, or of what the recipe does not read.

    Args:
        recipe: whose options are searched.
        names: keys of `TUNABLE`.

    Returns:
        the recipe with the largest of all: an option that nothing reads, or too many
        components for the rows of a batch, stop the search before it begins.

    Raises:
        ValueError: naming the first of them.
    """
    unread = unread_by_model(recipe)
    for name in names:
        if name not in TUNABLE:
            raise OptionError(
                "{tune} {} is not one of {}: give one of them, or several joined by "
                "commas.",
                name,
                ", ".join(TUNABLE),
            )
        if TUNABLE[name] in unread:
            decides, chosen = unread[TUNABLE[name]]
            raise OptionError(
                "{tune} {} searches {}, which does nothing for {} {}: leave it out.",
                name,
                Option(TUNABLE[name]),
                Option(decides),
                chosen,
            )
    options = [TUNABLE[name] for name in names]
    largest = {option: _values(recipe, option)[-1] for option in options}
    found = _with_setting(recipe, largest)
    check_recipe(found)
    return found


def _shorter(recipe: Recipe, trial_epochs: int | None) -> Recipe:
    options = recipe.training
    if trial_epochs is not None:
        return recipe.changed(epochs=trial_epochs)
    if options.steps is not None:
        return recipe.changed(steps=max(1, options.steps // 4))
    assert options.epochs is not None
    return recipe.changed(epochs=max(1, options.epochs // 4))


def _values(recipe: Recipe, option: str) -> list[Any]:
    if option == "num_components":
        return list(_COMPONENTS)
    now = recipe.to_json()
    value = (now["model"] | now["training"])[option]
    if value is None:  # of the nodes
        own = recipe.training.learning_rate
        # IVON gives nodes no rate of their own, as `prepare` says of such a search.
        value = learning_rates(recipe.training).get("noise", own)
    return [factor * value for factor in _FACTORS]


def _with_setting(recipe: Recipe, setting: dict[str, Any]) -> Recipe:
    """The recipe with a trial's options, and as many test draws of each component."""
    now = recipe.implicit.num_components
    ours = setting.get("num_components", now)
    test_draws = max(1, recipe.training.test_draws // now) * ours
    draws = {} if ours == now else {"test_draws": test_draws}
    return recipe.changed(**setting, **draws)
