"""A recipe carried out: data, model, training."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._types import PRNGKeyArray
from ..data import Data, default_augmentation, load
from ..functions import AbstractRandomFunction
from ..likelihood import AbstractLikelihood
from ..train import (
    ELBO,
    Callback,
    Constant,
    Cosine,
    EarlyStopping,
    Fit,
    ImportanceWeighted,
    RunFolder,
    Tuning,
    fit,
    tune,
)
from ..train._optimiser import Rule
from ._build import build_likelihood
from ._families import build_model, check_options
from ._recipe import Recipe

TUNABLE = {"lr": "learning_rate", "sigma": "sigma"}
"""What `--tune` may search, and the option of each."""

_FACTORS = (1 / 3, 1.0, 3.0)


class Keys(NamedTuple):
    """The randomness of a run, each key for one use.

    Attributes:
        model: of the initial parameters.
        fit: of training.
        test: of predictions of the test rows.
        bound: of the draws behind the reported ELBO.
        tune: of the search.
    """

    model: PRNGKeyArray
    fit: PRNGKeyArray
    test: PRNGKeyArray
    bound: PRNGKeyArray
    tune: PRNGKeyArray

    @classmethod
    def of(cls, recipe: Recipe) -> "Keys":
        """From the recipe's seed."""
        return cls(*jax.random.split(jax.random.key(recipe.training.seed), 5))


class Prepared(NamedTuple):
    """All that a recipe builds before training.

    Attributes:
        recipe: the recipe.
        data: loaded, split and standardised.
        model: with its initial parameters.
        likelihood: with its initial scale.
    """

    recipe: Recipe
    data: Data
    model: AbstractRandomFunction
    likelihood: AbstractLikelihood


def load_data(recipe: Recipe) -> Data:
    """The data of a recipe."""
    options = recipe.data
    return load(
        options.data,
        data_dir=options.data_dir,
        split=options.split,
        validation_fraction=options.validation_fraction,
        seed=recipe.training.seed,
        target=options.target or None,
        task=options.task,
    )


def prepare(recipe: Recipe, data: Data | None = None) -> Prepared:
    """Build and check everything, so that bad input stops a run before it begins.

    Args:
        recipe: what to build.
        data: if they are loaded already.

    Raises:
        ValueError: for options that cannot work, with these data or together.
    """
    _check(recipe)
    data = load_data(recipe) if data is None else data
    likelihood = build_likelihood(recipe.likelihood, data)
    model = build_model(recipe, data, key=Keys.of(recipe).model)
    _check_draws(recipe, model)
    row = jnp.asarray(data.train.x[:1])
    # Traced, never run: a solver refuses steps and gradients that it cannot have.
    eqx.filter_eval_shape(lambda x, key: model(x, key=key), row, jax.random.key(0))
    return Prepared(recipe, data, model, likelihood)


def train(
    prepared: Prepared,
    *,
    run: RunFolder | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Fit:
    """Train as the recipe says; with `ema` the running mean is what is returned.

    Args:
        prepared: what `prepare` built.
        run: a folder for metrics, events and checkpoints.
        resume: go on from the run's newest checkpoint.
        callbacks: hear about the run.
    """
    recipe, data, model, likelihood = prepared
    found = fit(
        model,
        data.train,
        likelihood,
        key=Keys.of(recipe).fit,
        validation=data.validation,
        run=run,
        resume=resume,
        callbacks=callbacks,
        **_fit_options(recipe, data),
    )
    return found if found.ema is None else found.averaged()


def tune_recipe(
    prepared: Prepared, names: Sequence[str], *, trial_epochs: int | None = None
) -> tuple[Recipe, Tuning]:
    """Choose options by the validation rows.

    Each is tried at a third, once and three times what the recipe says, in every
    combination; trials are a quarter as long as the run.

    Args:
        prepared: what `prepare` built.
        names: keys of `TUNABLE`.
        trial_epochs: passes over the data in each trial.

    Returns:
        The recipe with the best setting, and the table of all trials.

    Raises:
        ValueError: for other names, or without validation rows.
    """
    recipe, data, _, likelihood = prepared
    for name in names:
        if name not in TUNABLE:
            raise ValueError(
                f"--tune {name} is not one of {', '.join(TUNABLE)}: give one of them, "
                "or several joined by commas."
            )
    if data.validation is None:
        raise ValueError(
            "--tune needs rows to choose by: add --validation-fraction 0.1."
        )
    now = recipe.to_json()
    options = now["model"] | now["training"]
    space = {
        TUNABLE[name]: [factor * options[TUNABLE[name]] for factor in _FACTORS]
        for name in names
    }
    for name, values in space.items():
        check_options(recipe.changed(**{name: values[-1]}))
    epochs = trial_epochs or max(1, recipe.training.epochs // 4)
    keys = Keys.of(recipe)

    def make_model(setting: dict[str, float]) -> AbstractRandomFunction:
        return build_model(recipe.changed(**setting), data, key=keys.model)

    tuning = tune(
        make_model,
        data.train,
        likelihood,
        validation=data.validation,
        space=space,
        key=keys.tune,
        options=_fit_options(recipe.changed(epochs=epochs), data),
    )
    return recipe.changed(**tuning.setting), tuning


def _fit_options(recipe: Recipe, data: Data) -> dict[str, Any]:
    options = recipe.training
    patience = options.patience
    return {
        "num_epochs": options.epochs,
        "batch_size": options.batch_size,
        "learning_rate": options.learning_rate,
        "optimiser": _optimiser(options.weight_decay),
        "schedule": Cosine() if options.schedule == "cosine" else Constant(),
        "kl_weight": options.kl_weight,
        "kl_warmup": options.kl_warmup,
        "num_draws": options.num_draws,
        "objective": ImportanceWeighted() if options.importance_weighted else ELBO(),
        "accumulate": options.accumulate,
        "rematerialise": options.rematerialise,
        "clip_norm": options.clip,
        "ema_decay": options.ema,
        "augmentation": _augmentation(recipe, data),
        "early_stopping": None if patience is None else EarlyStopping(patience),
    }


def _optimiser(weight_decay: float) -> Rule:
    if weight_decay == 0:
        return optax.adam
    # Biases stay free, and so do the scales of likelihoods.
    is_matrix = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    return lambda rate: optax.adamw(rate, weight_decay=weight_decay, mask=is_matrix)


def _augmentation(recipe: Recipe, data: Data) -> Callable | None:
    if not recipe.data.image_augmentation or len(data.example_shape) != 3:
        return None
    return default_augmentation(data.name, data.x_scaling)


def _check(recipe: Recipe) -> None:
    """What would be passed over, or refused by `fit` once there is a run folder."""
    check_options(recipe)
    options = recipe.training
    counts = ("epochs", "batch_size", "num_draws", "accumulate", "test_draws")
    for name in (*counts, "learning_rate", "clip"):
        value = getattr(options, name)
        if not value > 0:
            raise ValueError(
                f"--{name.replace('_', '-')} must be positive, got {value}."
            )
    if not options.weight_decay >= 0:
        raise ValueError(
            f"--weight-decay must not be negative, got {options.weight_decay}."
        )
    if options.patience is not None and recipe.data.validation_fraction == 0:
        raise ValueError(
            "--patience needs rows to judge epochs by: add --validation-fraction 0.1."
        )


def _check_draws(recipe: Recipe, model: AbstractRandomFunction) -> None:
    num_draws, num_strata = recipe.training.test_draws, model.num_strata
    if num_draws % num_strata:
        raise ValueError(
            f"--test-draws {num_draws} would count some of the {num_strata} members "
            f"more often than others: give a multiple of {num_strata}."
        )
