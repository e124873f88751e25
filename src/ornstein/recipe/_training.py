"""A recipe carried out: data, model, training."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import optax

from .._sentence import Option, OptionError, Sentence
from .._types import PRNGKeyArray
from ..data import Data, ObservationNoise, default_augmentation
from ..functions import AbstractRandomFunction, Draw, Roughness, with_roughness
from ..likelihood import AbstractLikelihood
from ..network import initial_state
from ..train import (
    ELBO,
    AbstractSchedule,
    Callback,
    Constant,
    Cosine,
    EarlyStopping,
    Fit,
    ImportanceWeighted,
    Linear,
    Rule,
    RunFolder,
    fit,
    nesterov,
)
from ._recipe import Recipe
from .inputs import (
    ask_for_the_rest,
    is_table,
    load_data,
    with_later_starts,
    with_lengths,
    with_tempos,
)
from .models import (
    BY_FRAMES,
    MODELS,
    build_likelihood,
    build_model,
    check_options,
    recognition_kind,
)
from .options import MAX_COUNT, ScheduleName, TrainingOptions, check_numbers

SCHEDULES: dict[ScheduleName, dict[str, AbstractSchedule]] = {
    "cosine": {"weights": Cosine(), "noise": Cosine()},
    "constant": {"weights": Constant(), "noise": Constant()},
    # Nodes keep following weights to the end: Trinh et al. (2020), section 3.3.
    "linear": {"weights": Linear(0.5, 0.9, 0.01), "noise": Constant()},
}
"""What a learning rate does after its peak, for each label."""


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
    _check(recipe)
    if data is None:
        data = _load(recipe)
    _check_kind(recipe, data)
    likelihood = build_likelihood(recipe.likelihood, data)
    model = build_model(recipe, data, key=Keys.of(recipe).model)
    _check_draws(recipe, model)
    _check_step(recipe, data, model)
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
        **fit_options(recipe, data),
    )
    if found.ema is None:
        return found
    averaged = found.averaged()
    key, batch_size = Keys.of(recipe).statistics, recipe.training.batch_size
    return averaged.with_statistics_of(data.train.x, key=key, batch_size=batch_size)


def fit_options(recipe: Recipe, data: Data) -> dict[str, Any]:
    """What a recipe says to `fit`.

    Args:
        recipe: the options.
        data: decide the augmentation.
    """
    options = recipe.training
    patience, noise_rate = options.patience, options.noise_learning_rate
    noise_rate = options.learning_rate if noise_rate is None else noise_rate
    return {
        "num_epochs": options.epochs,
        "batch_size": options.batch_size,
        "learning_rate": {"weights": options.learning_rate, "noise": noise_rate},
        "optimiser": _optimisers(options),
        "schedule": SCHEDULES[options.schedule],
        "kl_weight": options.kl_weight,
        "kl_warmup": options.kl_warmup,
        "num_draws": options.num_draws,
        "objective": ImportanceWeighted() if options.importance_weighted else ELBO(),
        "accumulate": options.accumulate,
        "rematerialise": options.rematerialise,
        "clip_norm": options.clip,
        "ema_decay": options.ema,
        "augmentation": _augmentation(recipe, data),
        "regularise_dynamics": _roughness(options),
        "early_stopping": None if patience is None else EarlyStopping(patience),
    }


def _optimisers(options: TrainingOptions) -> dict[str, Rule]:
    """For each label; the distribution of nodes has a prior, and so no decay."""
    decay = options.weight_decay
    if options.optimiser == "nesterov":
        return {"weights": nesterov(decay), "noise": nesterov()}
    if decay == 0:
        return {"weights": optax.adam, "noise": optax.adam}
    # Biases stay free, and so do the scales of likelihoods.
    is_matrix = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    adamw = lambda rate: optax.adamw(rate, weight_decay=decay, mask=is_matrix)
    return {"weights": adamw, "noise": optax.adam}


def _roughness(options: TrainingOptions) -> Roughness | None:
    weight, order = options.regularise_dynamics, options.roughness_order
    return None if weight == 0 else Roughness(weight, order)


def _augmentation(recipe: Recipe, data: Data) -> Callable | None:
    if recipe.series.input_noise > 0:
        return ObservationNoise(recipe.series.input_noise)
    if not recipe.data.image_augmentation or len(data.example_shape) != 3:
        return None
    return default_augmentation(data.name, data.x_scaling)


def _check(recipe: Recipe) -> None:
    """What would be passed over, or refused by `fit` once there is a run folder."""
    check_numbers(recipe)
    check_options(recipe)
    options = recipe.training
    counts = ("epochs", "batch_size", "num_draws", "accumulate", "test_draws")
    for name in (*counts, "learning_rate", "noise_learning_rate", "clip"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise OptionError("{} must be positive, got {}.", Option(name), value)
    if options.ema is not None and not 0 < options.ema < 1:
        raise OptionError(
            "{ema} must lie above 0 and below 1, got {}: try 0.999, or leave it out.",
            options.ema,
        )
    if not recipe.likelihood.scale > 0:
        raise OptionError(
            "{scale} must be positive, got {}: it is the noise's, in units of the "
            "standardised targets.",
            recipe.likelihood.scale,
        )
    if not recipe.network.network_width > 0:
        raise OptionError(
            "{network_width} must be positive, got {}.",
            recipe.network.network_width,
        )
    for part, name in (
        (options, "weight_decay"),
        (options, "regularise_dynamics"),
        (recipe.series, "input_noise"),
    ):
        if not getattr(part, name) >= 0:
            raise OptionError(
                "{} must not be negative, got {}.", Option(name), getattr(part, name)
            )
    if options.roughness_order != 1 and options.regularise_dynamics == 0:
        raise OptionError(
            "{roughness_order} says which roughness {regularise_dynamics} weighs, and "
            "that is 0: add {regularise_dynamics} 0.01, or leave it out."
        )


def _load(recipe: Recipe) -> Data:
    """The data, sequences among them cut into what is shown and what is asked."""
    name, model = recipe.data.data, recipe.model.model
    takes_series, has_time = MODELS[model].takes_series, recipe.series.time is not None
    if takes_series and is_table(name) and not has_time:
        raise OptionError(
            "{model} {} learns sequences: name the column of times of {} with {time}, "
            "and the one that tells series apart, if any, with {series}.",
            model,
            name,
        )
    data = load_data(recipe.data, recipe.series, seed=recipe.training.seed)
    return data if data.task != "series" else arrange_series(recipe, data)


def arrange_series(recipe: Recipe, data: Data) -> Data:
    """Sequences as a recipe learns them, and cut into what is shown and what is asked.

    Args:
        recipe: how.
        data: whole sequences.

    Raises:
        ValueError: for starts, tempos, lengths or a share that cannot be.
    """
    data = with_later_starts(data, recipe.series.start_every)
    data = with_tempos(data, recipe.series.tempos)
    data = with_lengths(data, recipe.series.lengths)
    kind = recognition_kind(recipe.latent, data)
    num_frames = recipe.latent.frames if kind in BY_FRAMES else None
    fraction = recipe.series.test_seen
    return ask_for_the_rest(data, fraction=fraction, num_frames=num_frames)


def _check_kind(recipe: Recipe, data: Data) -> None:
    """Refuse sequences for a model of rows, and the reverse; patience without rows."""
    model, is_series = recipe.model.model, data.task == "series"
    if is_series and not MODELS[model].takes_series:
        raise OptionError(
            "{} holds sequences, which {model} {} does not learn: use `ornstein train "
            "--model latent-sde` or latent-ode.",
            data.name,
            model,
        )
    if not is_series and MODELS[model].takes_series:
        raise OptionError(
            "{model} {} learns sequences, and {} holds none: give a table with {time} "
            "COLUMN, or mocap, toy/gbm, toy/lorenz, ...; or another {model}.",
            model,
            data.name,
        )
    if recipe.training.patience is not None and data.validation is None:
        raise OptionError(
            "{patience} needs rows to judge epochs by: add {validation_fraction} 0.1."
        )


def _check_step(recipe: Recipe, data: Data, model: AbstractRandomFunction) -> None:
    """Trace one step on its own number of rows, without running it.

    A solver refuses steps and gradients that it cannot have, a network images that it
    cannot take, a mixture fewer rows than components; an objective what is no bound.
    """
    options = recipe.training
    batch_size = min(options.batch_size, len(data.train))
    if batch_size % options.accumulate:
        raise OptionError(
            "{accumulate} {} does not divide the {} rows of a batch: give a number "
            "that does, or leave it out.",
            options.accumulate,
            batch_size,
        )
    num_rows = batch_size // options.accumulate
    num_steps = options.epochs * (len(data.train) // batch_size)
    if num_steps > MAX_COUNT:
        raise OptionError(
            "{epochs} {} are {} steps, more than {} that are counted: give fewer.",
            options.epochs,
            num_steps,
            MAX_COUNT,
        )
    if options.regularise_dynamics > 0:
        model = with_roughness(model, options.roughness_order)
    first = lambda leaf: jax.ShapeDtypeStruct((num_rows, *leaf.shape[1:]), leaf.dtype)
    x = jax.tree.map(first, data.train.x)
    member = model.member(0)
    call = lambda x, key, state: member(x, key=key, index=None, state=state)
    draw = eqx.filter_eval_shape(call, x, jax.random.key(0), initial_state(model))
    if options.importance_weighted:
        _check_importance(recipe, data, draw)


def _check_importance(recipe: Recipe, data: Data, draw: Draw) -> None:
    """Refuse what `ImportanceWeighted` refuses, in the words of the command line."""
    options, num_data = recipe.training, len(data.train)
    if draw.log_ratio is None:
        remedy = "leave it out"
        if recipe.solver.estimator == "full":
            remedy = Sentence(
                "give {weight_noise} plain and no {path_per_row}, or leave it out"
            )
        elif "estimator" in MODELS[recipe.model.model].options:
            remedy = Sentence("give {estimator} full, or leave it out")
        raise OptionError(
            "{importance_weighted} weighs each draw by its own log ratio of posterior "
            "and prior, which {model} {} with these options does not have: {}.",
            recipe.model.model,
            remedy,
        )
    if options.accumulate > 1:
        raise OptionError(
            "{importance_weighted} takes each batch whole, and {accumulate} {} cuts "
            "it into parts: leave one of them out.",
            options.accumulate,
        )
    if draw.log_ratio == "shared" and options.batch_size < num_data:
        raise OptionError(
            "{importance_weighted} is no bound on {batch_size} {} of {} training "
            "rows, which share their draws: give {batch_size} {}, or leave it out.",
            options.batch_size,
            num_data,
            num_data,
        )
    if options.num_draws == 1:
        raise OptionError(
            "{importance_weighted} with {num_draws} 1 is the plain bound: give "
            "{num_draws} 8, or leave it out."
        )


def _check_draws(recipe: Recipe, model: AbstractRandomFunction) -> None:
    num_draws, num_strata = recipe.training.test_draws, model.num_strata
    if num_draws % num_strata:
        raise OptionError(
            "{test_draws} {} would count some of the {} members or components more "
            "often than others: give a multiple of {}.",
            num_draws,
            num_strata,
            num_strata,
        )
