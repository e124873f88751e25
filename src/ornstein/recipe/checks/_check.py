"""The doors of a recipe."""

from ...data import Data
from ...functions import AbstractRandomFunction
from ...likelihood import AbstractLikelihood
from .._recipe import Recipe
from ..options import check_numbers
from ._pairs import check_depth, check_family, check_pairs
from ._ranges import check_ranges
from ._sequences import check_ends, check_named, check_task
from ._step import check_curvature, check_draws, check_step
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


def check_data(recipe: Recipe, data: Data) -> None:
    """Refuse what does not go with these data.

    Raises:
        ValueError: for a model of other data, or options of other data.
    """
    check_task(recipe, data)
    check_ends(recipe, data)
    check_recognition(recipe, data)


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
