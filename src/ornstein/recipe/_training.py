"""A recipe carried out: data, model, training."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import optax

from .._sentence import Sentence
from .._types import PRNGKeyArray
from ..data import Data, ObservationNoise, default_augmentation
from ..functions import AbstractRandomFunction, Roughness
from ..likelihood import AbstractLikelihood
from ..train import (
    ELBO,
    IVON,
    VECTORS_RATE,
    AbstractSchedule,
    Callback,
    Constant,
    Cosine,
    EarlyStopping,
    Fit,
    ImportanceWeighted,
    KLWeight,
    Linear,
    NonFiniteError,
    Rule,
    Run,
    RunFolder,
    Skip,
    Stop,
    Validation,
    adamw,
    fit,
    muon,
    nesterov,
)
from ._recipe import Recipe
from .checks import check_data, check_model, check_recipe
from .inputs import load_data
from .models import MODELS, build_likelihood, build_model
from .options import PosthocOptions, ScheduleName, TrainingOptions

SCHEDULES: dict[ScheduleName, dict[str, AbstractSchedule]] = {
    "cosine": {"weights": Cosine(), "noise": Cosine()},
    "constant": {"weights": Constant(), "noise": Constant()},
    # Nodes keep following weights to the end: Trinh et al. (2020), section 3.3.
    "linear": {"weights": Linear(0.5, 0.9, 0.01), "noise": Constant()},
}
"""What a learning rate does after its peak, for each label."""


_POINTS_RATE = 0.1
"""Of points beside IVON, as a part of its own rate, which is another unit than Adam's:
1e-2 at its preset."""
_VALIDATED_STEPS = 500
"""From one validation to the next, where the budget is in steps."""


class Keys(NamedTuple):
    """The randomness of a run, each key for one use.

    Attributes:
        model: of the initial parameters.
        fit: of training.
        test: of predictions of the test rows.
        bound: of the draws behind the reported ELBO.
        tune: of the search.
        statistics: of the draws behind batch statistics of averaged weights.
    """

    model: PRNGKeyArray
    fit: PRNGKeyArray
    test: PRNGKeyArray
    bound: PRNGKeyArray
    tune: PRNGKeyArray
    statistics: PRNGKeyArray

    @classmethod
    def of(cls, recipe: Recipe) -> "Keys":
        """From the recipe's seed."""
        return cls(*jax.random.split(jax.random.key(recipe.training.seed), 6))


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


def prepare(recipe: Recipe, data: Data | None = None) -> Prepared:
    """Build and check everything, so that bad input stops a run before it begins.

    Args:
        recipe: what to build.
        data: if they are loaded already.

    Raises:
        ValueError: for options that cannot work, with these data or together.
    """
    check_recipe(recipe)
    if data is None:
        data = load_data(recipe)
    check_data(recipe, data)
    likelihood = build_likelihood(recipe.likelihood, data)
    model = build_model(recipe, data, key=Keys.of(recipe).model)
    check_model(recipe, data, model, likelihood)
    return Prepared(recipe, data, model, likelihood)


def rebuild(recipe: Recipe, data: Data) -> Prepared:
    """What `prepare` built, of which a run that is finished has been checked.

    Args:
        recipe: of the run.
        data: what is known of them, with or without rows.
    """
    likelihood = build_likelihood(recipe.likelihood, data)
    model = build_model(recipe, data, key=Keys.of(recipe).model)
    return Prepared(recipe, data, model, likelihood)


def train(
    prepared: Prepared,
    *,
    run: RunFolder | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Fit:
    """Train as the recipe says; with `ema` the running mean is what is returned.

    What a family makes of a trained network (laplace, swag) is made then.

    Args:
        prepared: what `prepare` built.
        run: a folder for metrics, events and checkpoints.
        resume: go on from the run's newest checkpoint.
        callbacks: hear about the run.

    Raises:
        NonFiniteError: as `fit` has it, or for what is no number afterwards; the
            trained network is then in the newest checkpoint.
    """
    recipe, data, model, likelihood = prepared
    found = fit(
        model,
        data.train,
        likelihood,
        key=Keys.of(recipe).fit,
        validation=validation_of(recipe, data),
        run=None if run is None else Run(run, resume=resume),
        callbacks=callbacks,
        **fit_options(recipe, data),
    )
    key = Keys.of(recipe).statistics
    if found.ema is not None:
        batch_size = recipe.training.batch_size
        found = found.averaged().with_statistics_of(
            data.train.in_memory().x, key=key, batch_size=batch_size
        )
    posthoc = MODELS[recipe.model.model].posthoc
    if posthoc is None:
        return found
    try:
        return posthoc.make(
            recipe,
            data,
            found,
            key=jax.random.fold_in(key, 1),
            augmentation=_augmentation(recipe, data),
        )
    except NonFiniteError as error:
        if run is None:
            raise
        raise NonFiniteError(
            Sentence(
                "{} The trained network is kept: change the option in {}, then go on "
                "with {}.",
                error.args[0],
                run.path / "config.json",
                run.resuming,
            )
        ) from error


def fit_options(recipe: Recipe, data: Data) -> dict[str, Any]:
    """What a recipe says to `fit`.

    Args:
        recipe: the options.
        data: decide the augmentation, and how many epochs hold the steps.
    """
    options, alone = recipe.training, _as_members(recipe)
    return {
        "num_epochs": options.num_epochs(len(data.train)),
        "batch_size": options.batch_size,
        "learning_rate": learning_rates(alone),
        "optimiser": _optimisers(alone),
        "schedule": SCHEDULES[options.schedule],
        "kl": KLWeight(options.kl_weight, warmup=options.kl_warmup),
        "num_draws": options.num_draws,
        "objective": ImportanceWeighted() if options.importance_weighted else ELBO(),
        "accumulate": options.accumulate,
        "draw_per_part": options.draw_per_part,
        "rematerialise": options.rematerialise,
        "clip_norm": options.clip,
        "ema_decay": options.ema,
        "augmentation": _augmentation(recipe, data),
        "regularise_dynamics": _roughness(options),
        "on_nonfinite": Skip() if options.on_nonfinite == "skip" else Stop(),
    }


def kl_weight_of(recipe: Recipe) -> float | None:
    """What a recipe's KL counts in its loss; `None` of a model without one.

    Args:
        recipe: of any model.
    """
    has_one = "kl_weight" in MODELS[recipe.model.model].options
    return recipe.training.kl_weight if has_one else None


def validation_of(recipe: Recipe, data: Data) -> Validation | None:
    """How a recipe judges epochs; `None` of data without validation rows."""
    if data.validation is None:
        return None
    patience = recipe.training.patience
    rule = None if patience is None else EarlyStopping(patience)
    every, options = 1, recipe.training
    if options.steps is not None:  # an epoch of a small table may be two steps
        every = math.ceil(_VALIDATED_STEPS / options.steps_per_epoch(len(data.train)))
    return Validation(data.validation, every=every, early_stopping=rule)


def with_points(recipe: Recipe) -> Recipe:
    """The recipe for a model of the same data whose weights are points.

    IVON moves random weights alone: what it would leave to Adam is then all there is.
    Of laplace and swag it is the network that they are made of.

    Args:
        recipe: of any optimiser.
    """
    if MODELS[recipe.model.model].posthoc is not None:
        points = dataclasses.replace(recipe.model, model="deterministic")
        none = PosthocOptions()
        recipe = dataclasses.replace(recipe, model=points, posthoc=none)
    options = recipe.training
    if options.optimiser != "ivon":
        return recipe
    default = TrainingOptions()
    return recipe.changed(
        optimiser="adam",
        learning_rate=learning_rates(options)["weights"],
        init_hessian=default.init_hessian,
        hessian_decay=default.hessian_decay,
        empirical_bayes=default.empirical_bayes,
    )


def _as_members(recipe: Recipe) -> TrainingOptions:
    """With SGD's rate and decay for members whose mean loss is trained.

    Each has a share of the gradient, and the whole of its decay; Adam's steps, and its
    decay, do not depend on the gradient's size.
    """
    options, num_members = recipe.training, recipe.weights.num_members
    if recipe.model.model != "ensemble" or options.optimiser != "nesterov":
        return options
    return dataclasses.replace(
        options,
        learning_rate=options.learning_rate * num_members,
        weight_decay=options.weight_decay / num_members,
    )


def learning_rates(options: TrainingOptions) -> dict[str, float]:
    """For each label; with IVON, which has its own, the points'.

    Args:
        options: of training.
    """
    if options.optimiser == "ivon":
        return {"weights": _POINTS_RATE * options.learning_rate}
    noise_rate = options.noise_learning_rate
    if noise_rate is None:
        part = VECTORS_RATE if options.optimiser == "muon" else 1.0
        noise_rate = part * options.learning_rate
    return {"weights": options.learning_rate, "noise": noise_rate}


def _optimisers(options: TrainingOptions) -> dict[str, Rule] | IVON:
    """For each label; the distribution of nodes has a prior, and so no decay."""
    decay = options.weight_decay
    if options.optimiser == "ivon":
        return IVON(
            options.learning_rate,
            init_hessian=options.init_hessian,
            hessian_decay=options.hessian_decay,
            empirical_bayes=options.empirical_bayes,
        )
    if options.optimiser == "nesterov":
        return {"weights": nesterov(decay), "noise": nesterov()}
    if options.optimiser == "muon":
        return {"weights": muon(decay), "noise": optax.adam}
    if decay == 0:
        return {"weights": optax.adam, "noise": optax.adam}
    return {"weights": adamw(decay), "noise": optax.adam}


def _roughness(options: TrainingOptions) -> Roughness | None:
    weight, order = options.regularise_dynamics, options.roughness_order
    return None if weight == 0 else Roughness(weight, order)


def _augmentation(recipe: Recipe, data: Data) -> Callable | None:
    if recipe.series.input_noise > 0:
        return ObservationNoise(recipe.series.input_noise)
    if not recipe.data.image_augmentation or len(data.example_shape) != 3:
        return None
    return default_augmentation(data.name, data.x_scaling)
