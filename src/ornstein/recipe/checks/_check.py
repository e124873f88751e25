"""The doors of a recipe."""

from ...data import Data, list_data
from ...functions import AbstractRandomFunction
from ...likelihood import AbstractLikelihood
from .._recipe import Recipe
from ..inputs import check_data_options
from ..models import MODELS, check_solves, network_kind
from ..options import check_numbers
from ..presets import is_table, kind_of_data, kind_of_sequences
from ._pairs import check_depth, check_family, check_pairs
from ._ranges import check_ranges
from ._sequences import check_ends, check_kind, check_named, check_task
from ._step import (
    check_curvature,
    check_draws,
    check_step,
    check_weighing,
    indivisible,
)
from ._unread import check_read, check_recognition


def check_recipe(recipe: Recipe) -> None:
    """Refuse what no data could make work, before any work.

    Raises:
        ValueError: for numbers that an option cannot have, options that nothing would
            read, and options that do not go together.
    """
    check_numbers(recipe)
    check_family(recipe)
    check_depth(recipe)
    check_read(recipe)
    check_ranges(recipe)
    check_pairs(recipe)
    check_named(recipe)
    check_weighing(recipe)
    _check_depth_options(recipe)


def check_before_data(recipe: Recipe) -> None:
    """Refuse what the name of the data says does not go with them, nothing being read.

    Of names that nobody knows, the file itself is the first thing to be looked at.

    Args:
        recipe: of a family.

    Raises:
        ValueError: for options of other data, or a model of other data.
    """
    options, series = recipe.data, recipe.series
    check_data_options(options, series)
    sequences = kind_of_sequences(options.data, time=series.time)
    is_known = sequences is not None or kind_of_data(options.data) == "vectors"
    if is_known or options.data in list_data():
        # Some that have a name of their own come with validation rows.
        has_own = sequences is not None and series.time is None
        has_validation = has_own or options.validation_fraction != 0
        check_kind(
            recipe,
            options.data,
            is_series=sequences is not None,
            has_validation=has_validation,
        )
    parts, batch_size = recipe.training.accumulate, recipe.training.batch_size
    if parts > batch_size:
        raise indivisible(parts, batch_size)


def check_data(recipe: Recipe, data: Data) -> None:
    """Refuse what does not go with these data.

    Raises:
        ValueError: for a model of other data, or options of other data.
    """
    check_task(recipe, data)
    check_ends(recipe, data)
    check_recognition(recipe, data)


def _check_depth_options(recipe: Recipe) -> None:
    """Steps, solver, prior and layers of a solve over depth."""
    has_network = "network" in MODELS[recipe.model.model].options
    has_depth = has_network and network_kind(recipe.network.network).has_depth
    if recipe.model.model == "sdebnn" or has_depth:
        name = recipe.data.data
        are_vectors = is_table(name) or kind_of_data(name) == "toy"
        check_solves(recipe, are_vectors=are_vectors)


def check_model(
    recipe: Recipe,
    data: Data,
    model: AbstractRandomFunction,
    likelihood: AbstractLikelihood,
) -> None:
    """Refuse what the model itself cannot do, from shapes alone.

    Raises:
        ValueError: for numbers of draws, rows or steps, whatever one step refuses, or
            what could not be made of the trained network.
    """
    check_draws(recipe, model)
    check_step(recipe, data, model)
    check_curvature(recipe, model, likelihood)
