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


def check_read(recipe: Recipe) -> None:
    """Refuse options that the family or the network does not read.

    Raises:
        ValueError: naming the first of them.
    """
    family = MODELS[recipe.model.model]
    unread = dict.fromkeys(SOME_READ - family.options, ("model", recipe.model.model))
    if "network" in family.options:
        network = recipe.network.network
        read = network_kind(network).options
        unread |= dict.fromkeys(NETWORK_OPTIONS - read, ("network", network))
    default = Recipe()
    for part in dataclasses.fields(Recipe):
        ours, theirs = getattr(recipe, part.name), getattr(default, part.name)
        names = {field.name for field in dataclasses.fields(ours)}
        for name in sorted(names & set(unread)):
            if getattr(ours, name) != getattr(theirs, name):
                raise does_nothing(name, *unread[name])
    if recipe.model.model == "latent-sde":
        _check_parts(recipe)


def _check_parts(recipe: Recipe) -> None:
    """Options that the parts of a latent SDE pass over."""
    options, model, default = recipe.latent, recipe.model, Recipe()
    if options.latent_noise == "net" and model.sigma != default.model.sigma:
        raise does_nothing("sigma", "latent_noise", "net")
    if options.latent_noise != "net" and options.max_noise != default.latent.max_noise:
        raise does_nothing("max_noise", "latent_noise", options.latent_noise)
    if options.latent_prior != "net" and options.start_drift != 1:
        raise does_nothing("start_drift", "latent_prior", options.latent_prior)
    if options.latent_prior == "net" and model.rate != default.model.rate:
        raise does_nothing("rate", "latent_prior", "net")


def check_recognition(recipe: Recipe, data: Data) -> None:
    """Refuse a number of frames where no series is known by its first ones."""
    if not MODELS[recipe.model.model].takes_series:
        return
    kind = recognition_kind(recipe.latent, data)
    if recipe.latent.frames != Recipe().latent.frames and kind not in BY_FRAMES:
        raise does_nothing("frames", "recognition", kind)
