"""Models that are chosen once the data are read: chains, or an ensemble."""

import dataclasses

from .._sentence import Option, OptionError
from ..data import Data
from ._recipe import Recipe
from ._sampling import SampleRecipe, preset_sampling
from .options import check_numbers
from .presets import HANDED_OVER, preset_recipe

MAX_CHAIN_ROWS = 10_000
"""Of a table that `auto` samples: of more, chains take more than minutes."""

_KEPT_PARTS = ("data", "likelihood")


def is_handed_over(recipe: Recipe) -> bool:
    """Whether the recipe's model is chosen once the data are read."""
    return recipe.model.model in HANDED_OVER


def check_handed_over(recipe: Recipe) -> None:
    """Refuse options that would be passed over, before the data are read.

    Args:
        recipe: of such a model.

    Raises:
        ValueError: naming the first of them.
    """
    check_numbers(recipe)
    model = recipe.model.model
    if recipe.data.stream and model == "chains":
        raise OptionError(
            "{model} chains takes all rows at once, which {stream} leaves on disk: "
            "name another {model}, such as ensemble, or give these options to "
            "`ornstein sample --stream --kernel sghmc`."
        )
    default = preset_recipe(recipe.data.data, model=model)
    for part in dataclasses.fields(Recipe):
        if part.name in _KEPT_PARTS:
            continue
        ours, theirs = getattr(recipe, part.name), getattr(default, part.name)
        for field in dataclasses.fields(ours):
            name = field.name
            if name != "seed" and getattr(ours, name) != getattr(theirs, name):
                raise OptionError(
                    "{} does nothing for {model} {}: leave it out, give it to "
                    "`ornstein sample` if that has it, or name a {model} that reads "
                    "it, such as sdebnn or ensemble.",
                    Option(name),
                    model,
                )


def hand_over(recipe: Recipe, data: Data) -> SampleRecipe | Recipe:
    """The recipe that one for `chains` or `auto` means with these data.

    Args:
        recipe: whose data, likelihood and seed are kept.
        data: what it learns from.

    Returns:
        of chains, or, from `auto` with more rows than they take in minutes, of an
        ensemble.

    Raises:
        ValueError: for options that would be passed over, or sequences.
    """
    check_handed_over(recipe)
    model, seed, name = recipe.model.model, recipe.training.seed, recipe.data.data
    if data.task == "series":
        raise OptionError(
            "{} holds sequences, which {model} {} does not learn: use {model} "
            "latent-sde or latent-ode.",
            data.name,
            model,
        )
    kept = {part: getattr(recipe, part) for part in _KEPT_PARTS}
    num_data = len(data.train)
    if model == "auto" and (recipe.data.stream or num_data > MAX_CHAIN_ROWS):
        found = preset_recipe(name, model="ensemble").changed(seed=seed)
        return dataclasses.replace(found, **kept)
    chains = preset_sampling(name, num_data=num_data).changed(seed=seed)
    return dataclasses.replace(chains, **kept)
