"""Numbers that an option cannot have."""

import math

import numpy as np

from ..._sentence import Option, OptionError
from .._recipe import Recipe
from ..models import LEAST_NOISE, MODELS


def check_ranges(recipe: Recipe) -> None:
    """Refuse numbers that training would refuse once there is a run folder."""
    options = recipe.training
    if (options.epochs is None) == (options.steps is None):
        raise OptionError(
            "{epochs} and {steps} both say how long to train: give one of them, got {} "
            "and {}.",
            options.epochs,
            options.steps,
        )
    counts = ("epochs", "steps", "batch_size", "num_draws", "accumulate", "test_draws")
    rates = ("learning_rate", "noise_learning_rate", "init_hessian")
    for name in (*counts, *rates, "clip"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise OptionError("{} must be positive, got {}.", Option(name), value)
    if options.ema is not None and not 0 < options.ema < 1:
        raise OptionError(
            "{ema} must lie above 0 and below 1, got {}: try 0.999, or leave it out.",
            options.ema,
        )
    if options.hessian_decay is not None and not 0 < options.hessian_decay < 1:
        raise OptionError(
            "{hessian_decay} must lie above 0 and below 1, got {}: try 0.9995, or "
            "leave it out.",
            options.hessian_decay,
        )
    if not recipe.likelihood.scale > 0:
        raise OptionError(
            "{scale} must be positive, got {}: it is the noise's, in units of the "
            "standardised targets.",
            recipe.likelihood.scale,
        )
    for name in ("weight_scale", "narrow_scale"):
        value = getattr(recipe.weights, name)
        if not 0 < value < math.inf:
            raise OptionError(
                "{} must be positive and finite, got {}: it is a prior's.",
                Option(name),
                value,
            )
    if not 0 <= options.kl_weight < math.inf:
        raise OptionError(
            "{kl_weight} must be finite and not negative, got {}: 1 is the bound on "
            "the evidence.",
            options.kl_weight,
        )
    if not 0 < recipe.weights.mixture < 1:
        raise OptionError(
            "{mixture} must lie above 0 and below 1, got {}: for one of the two "
            "normals alone give {prior} gaussian.",
            recipe.weights.mixture,
        )
    if not recipe.network.network_width > 0:
        raise OptionError(
            "{network_width} must be positive, got {}.",
            recipe.network.network_width,
        )
    if not recipe.posthoc.swag_rate > 0:
        raise OptionError(
            "{swag_rate} must be positive, got {}.", recipe.posthoc.swag_rate
        )
    if recipe.posthoc.swag_epochs < 2:
        raise OptionError(
            "{swag_epochs} must be at least 2, got {}: each is an iterate.",
            recipe.posthoc.swag_epochs,
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
    if MODELS[recipe.model.model].takes_series:
        _check_latent(recipe)


def _check_latent(recipe: Recipe) -> None:
    """Sizes and scales of the latent models."""
    options = recipe.latent
    numbers = {
        "latent_size": options.latent_size,
        "hidden_size": options.hidden_size,
        "context_size": options.context_size,
        "frames": options.frames,
        "substeps": options.substeps,
        "start_scale": options.start_scale,
        "sigma": recipe.model.sigma,
    }
    for name, value in numbers.items():
        if not (np.isfinite(value) and value > 0):
            raise OptionError("{} must be positive, got {}.", Option(name), value)
    if not (np.isfinite(options.start_drift) and options.start_drift >= 0):
        raise OptionError(
            "{start_drift} must not be negative, got {}.",
            options.start_drift,
        )
    if not LEAST_NOISE < options.max_noise < np.inf:
        raise OptionError(
            "{max_noise} must be above {}, the least noise, got {}.",
            LEAST_NOISE,
            options.max_noise,
        )
    if not (np.isfinite(recipe.model.rate) and recipe.model.rate >= 0):
        raise OptionError(
            "{rate} must not be negative, got {}.",
            recipe.model.rate,
        )
