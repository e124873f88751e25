"""What a step of training, what comes after it, and a test ask: from shapes alone."""

import equinox as eqx
import jax

from ..._sentence import OptionError, Sentence
from ...data import Data
from ...functions import (
    MAP,
    AbstractRandomFunction,
    Draw,
    are_whole_rounds,
    with_roughness,
)
from ...likelihood import AbstractLikelihood
from ...network import initial_state
from ...train import MAX_JOINT_WEIGHTS
from .._recipe import Recipe
from ..models import MODELS, laplace_structure
from ..options import MAX_COUNT


def check_step(recipe: Recipe, data: Data, model: AbstractRandomFunction) -> None:
    """Trace one step on its own number of rows, without running it.

    A solver refuses steps and gradients that it cannot have, a network images that it
    cannot take, a mixture fewer rows than components; an objective what is no bound.
    """
    options = recipe.training
    batch_size = min(options.batch_size, len(data.train))
    if batch_size % options.accumulate:
        raise indivisible(options.accumulate, batch_size)
    num_rows = batch_size // options.accumulate
    num_data = len(data.train)
    num_epochs = options.num_epochs(num_data)
    num_steps = num_epochs * options.steps_per_epoch(num_data)
    if num_steps > MAX_COUNT:
        raise OptionError(
            "{epochs} {} are {} steps, more than {} that are counted: give fewer.",
            num_epochs,
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


def indivisible(parts: int, batch_size: int) -> OptionError:
    """That a batch cannot be cut into so many parts.

    Args:
        parts: that were asked for.
        batch_size: rows of a batch.
    """
    return OptionError(
        "{accumulate} {} does not divide the {} rows of a batch: give a number "
        "that does, or leave it out.",
        parts,
        batch_size,
    )


def check_weighing(recipe: Recipe) -> None:
    """Refuse what `ImportanceWeighted` refuses whatever the data are."""
    if not recipe.training.importance_weighted:
        return
    if "estimator" not in MODELS[recipe.model.model].options:
        return  # whose draws tell, once there are some
    if _missing_for_log_ratio(recipe):
        raise _without_log_ratio(recipe)
    _check_whole_draws(recipe)


def _check_importance(recipe: Recipe, data: Data, draw: Draw) -> None:
    """Refuse what `ImportanceWeighted` refuses, in the words of the command line."""
    options, num_data = recipe.training, len(data.train)
    if draw.log_ratio is None:
        raise _without_log_ratio(recipe)
    _check_whole_draws(recipe)
    if draw.log_ratio == "shared" and options.batch_size < num_data:
        raise OptionError(
            "{importance_weighted} is no bound on {batch_size} {} of {} training "
            "rows, which share their draws: give {batch_size} {}, or leave it out.",
            options.batch_size,
            num_data,
            num_data,
        )


def _check_whole_draws(recipe: Recipe) -> None:
    """Refuse parts of a batch, and a single draw."""
    options = recipe.training
    if options.accumulate > 1:
        raise OptionError(
            "{importance_weighted} takes each batch whole, and {accumulate} {} cuts "
            "it into parts: leave one of them out.",
            options.accumulate,
        )
    if options.num_draws == 1:
        raise OptionError(
            "{importance_weighted} with {num_draws} 1 is the plain bound: give "
            "{num_draws} 8, or leave it out."
        )


def _without_log_ratio(recipe: Recipe) -> OptionError:
    needed = _missing_for_log_ratio(recipe)
    remedy = f"give {' and '.join(needed)}, or leave it out"
    remedy = Sentence(remedy) if needed else "leave it out"
    return OptionError(
        "{importance_weighted} weighs each draw by its own log ratio of posterior "
        "and prior, which {model} {} with these options does not have: {}.",
        recipe.model.model,
        remedy,
    )


def _missing_for_log_ratio(recipe: Recipe) -> list[str]:
    """What to give for draws with a log ratio: all of it, so that one call suffices."""
    is_met = {
        "estimator": recipe.solver.estimator == "full",
        "weight_noise": recipe.weights.weight_noise == "plain",
        "path_per_row": not recipe.model.path_per_row,
    }
    wanted = {
        "estimator": "{estimator} full",
        "weight_noise": "{weight_noise} plain",
        "path_per_row": "no {path_per_row}",
    }
    options = MODELS[recipe.model.model].options
    return [wanted[name] for name in wanted if name in options and not is_met[name]]


def check_draws(recipe: Recipe, model: AbstractRandomFunction) -> None:
    num_draws, num_strata = recipe.training.test_draws, model.num_strata
    if not are_whole_rounds(num_draws, num_strata):
        raise OptionError(
            "{test_draws} {} would count some of the {} members or components more "
            "often than others: give a multiple of {}.",
            num_draws,
            num_strata,
            num_strata,
        )


def check_curvature(
    recipe: Recipe, model: AbstractRandomFunction, likelihood: AbstractLikelihood
) -> None:
    """Refuse a covariance too large, which would be found out once training is over."""
    if recipe.model.model != "laplace":
        return
    assert isinstance(model, MAP)
    structure = laplace_structure(recipe, model, likelihood)
    num_weights = structure.num_weights(model.network)
    if structure.is_diagonal or num_weights <= MAX_JOINT_WEIGHTS:
        return
    raise OptionError(
        "{curvature} {} makes {:,} weights of this network random together, and more "
        "than {:,} are too many: give {curvature} diagonal, or leave it out.",
        recipe.posthoc.curvature,
        num_weights,
        MAX_JOINT_WEIGHTS,
    )
