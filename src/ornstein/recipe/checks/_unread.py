"""Options that would be passed over in silence."""

import dataclasses

from ..._sentence import does_nothing
from ...data import Data
from .._recipe import Recipe
from ..models import (
    BY_FRAMES,
    MODELS,
    NETWORK_OPTIONS,
    SOME_READ,
    network_kind,
    recognition_kind,
)


def unread_by_model(recipe: Recipe) -> dict[str, tuple[str, str]]:
    """Options that the family, its network or its parts do not read.

    Args:
        recipe: of a family.

    Returns:
        for each the option that decides it, and what that is.
    """
    family = MODELS[recipe.model.model]
    unread: dict[str, tuple[str, str]] = {}
    unread |= dict.fromkeys(SOME_READ - family.options, ("model", recipe.model.model))
    if "network" in family.options:
        network = recipe.network.network
        read = network_kind(network).options
        unread |= dict.fromkeys(NETWORK_OPTIONS - read, ("network", network))
    if recipe.model.model == "latent-sde":
        unread |= _unread_by_parts(recipe)
    if (prior := recipe.weights.prior) != "scale-mixture":
        of_mixtures = {"narrow_scale", "mixture"} & family.options
        unread |= dict.fromkeys(of_mixtures, ("prior", prior))
    return unread


def check_read(recipe: Recipe) -> None:
    """Refuse options that the family or the network does not read.

    Raises:
        ValueError: naming the first of them.
    """
    unread, default = unread_by_model(recipe), Recipe()
    for part in dataclasses.fields(Recipe):
        ours, theirs = getattr(recipe, part.name), getattr(default, part.name)
        names = {field.name for field in dataclasses.fields(ours)}
        for name in sorted(names & set(unread)):
            if getattr(ours, name) != getattr(theirs, name):
                raise does_nothing(name, *unread[name])


def _unread_by_parts(recipe: Recipe) -> dict[str, tuple[str, str]]:
    """Options that the parts of a latent SDE pass over."""
    noise, prior = recipe.latent.latent_noise, recipe.latent.latent_prior
    unread = {}
    if noise == "net":
        unread["sigma"] = ("latent_noise", noise)
    else:
        unread["max_noise"] = ("latent_noise", noise)
    if prior == "net":
        unread["rate"] = ("latent_prior", prior)
    else:
        unread["start_drift"] = ("latent_prior", prior)
    return unread


def check_recognition(recipe: Recipe, data: Data) -> None:
    """Refuse a number of frames where no series is known by its first ones."""
    if not MODELS[recipe.model.model].takes_series:
        return
    kind = recognition_kind(recipe.latent, data)
    if recipe.latent.frames != Recipe().latent.frames and kind not in BY_FRAMES:
        raise does_nothing("frames", "recognition", kind)
