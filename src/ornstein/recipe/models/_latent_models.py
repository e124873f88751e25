"""Latent models of sequences, built from a recipe and data."""

import dataclasses
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np

from ..._sentence import OptionError
from ..._types import PRNGKeyArray
from ...data import Data
from ...functions import (
    AbstractDiffusion,
    AbstractRecognition,
    ConstantDiffusion,
    FirstFrames,
    GRURecognition,
    Integrator,
    LatentODE,
    LatentSDE,
    LatentStart,
    LinearDrift,
    NetDiffusion,
    NoRecognition,
    ProcessDrift,
    SplitRecognition,
)
from ...nn import activation_from_name
from ...sde import Grid, OrnsteinUhlenbeck
from .._recipe import Recipe, sizes
from ..options import LatentOptions
from ._integrators import ESTIMATORS, GRADIENTS, SOLVERS, adaptive_steps

_SHORT = 50
"""Times up to which a single series' path is learned as a function of time: a network
of the time cannot follow a longer one."""

BY_FRAMES = ("first-frames", "first-frames-gru")
"""Recognitions that begin a path from a series' first points."""

LEAST_NOISE = 1e-2
"""Of `NetDiffusion`, as by default."""

_Model = TypeVar("_Model", LatentSDE, LatentODE)


def build_latent_sde(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> LatentSDE:
    """A latent SDE with the parts that the recipe names.

    Raises:
        ValueError: for widths that are none, or data of another size than the path's.
    """
    options = recipe.latent
    kind = recognition_kind(options, data)
    recognition_key, noise_key, model_key = jax.random.split(key, 3)
    model = LatentSDE.make(
        _recognition(recipe, kind, data, key=recognition_key),
        data.num_outputs,
        prior=_prior_drift(recipe),
        diffusion=_diffusion(recipe, key=noise_key),
        start=_start(options),
        drift_widths=sizes(recipe.model.drift_widths, "drift_widths"),
        decoder_widths=_decoder_widths(options, data),
        activation=activation_from_name(recipe.model.activation),
        start_drift=options.start_drift,
        sees_time=options.drift_sees_time,
        extrapolates_posterior=options.extrapolates_posterior,
        integrator=_integrator(recipe),
        estimator=ESTIMATORS[recipe.solver.estimator],
        key=model_key,
    )
    return _decoded(model, options)


def build_latent_ode(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> LatentODE:
    """The same without noise: see `build_latent_sde`."""
    options = recipe.latent
    kind = recognition_kind(options, data)
    recognition_key, model_key = jax.random.split(key)
    model = LatentODE.make(
        _recognition(recipe, kind, data, key=recognition_key),
        data.num_outputs,
        start=_start(options),
        drift_widths=sizes(recipe.model.drift_widths, "drift_widths"),
        decoder_widths=_decoder_widths(options, data),
        activation=activation_from_name(recipe.model.activation),
        start_drift=options.start_drift,
        integrator=_integrator(recipe),
        estimator=ESTIMATORS[recipe.solver.estimator],
        key=model_key,
    )
    return _decoded(model, options)


def recognition_kind(options: LatentOptions, data: Data) -> str:
    """What `--recognition` stands for with these data."""
    if options.recognition != "auto":
        return options.recognition
    is_short = data.train.x.num_times <= _SHORT
    return "none" if len(data.train) == 1 and is_short else "gru"


def is_told_by_series(model: object) -> bool:
    """Whether a prediction depends on the series that it is for."""
    if not isinstance(model, LatentSDE | LatentODE):
        return True
    return not isinstance(model.recognition, NoRecognition)


def _recognition(
    recipe: Recipe, kind: str, data: Data, *, key: PRNGKeyArray
) -> AbstractRecognition:
    options = recipe.latent
    size, num_features = options.latent_size, data.num_outputs
    if kind == "none":
        return NoRecognition(size)
    if kind == "first-frames-gru":
        frames_key, series_key = jax.random.split(key)
        return SplitRecognition(
            _first_frames(recipe, num_features, context_size=0, key=frames_key),
            _recognition(recipe, "gru", data, key=series_key),
        )
    if kind == "gru":
        return GRURecognition(
            num_features,
            size,
            hidden_size=options.hidden_size,
            context_size=options.context_size,
            key=key,
        )
    return _first_frames(
        recipe, num_features, context_size=options.context_size, key=key
    )


def _first_frames(
    recipe: Recipe, num_features: int, *, context_size: int, key: PRNGKeyArray
) -> FirstFrames:
    options = recipe.latent
    return FirstFrames(
        options.frames,
        num_features,
        options.latent_size,
        width_sizes=(options.hidden_size,),
        context_size=context_size,
        activation=activation_from_name(recipe.model.activation),
        key=key,
    )


def _prior_drift(recipe: Recipe) -> LinearDrift | ProcessDrift | None:
    rate = recipe.model.rate
    if recipe.latent.latent_prior == "ou":
        # The noise is `_diffusion`'s: of the process only the drift is met.
        return ProcessDrift(OrnsteinUhlenbeck(rate))
    if recipe.latent.latent_prior == "linear":
        return LinearDrift(recipe.latent.latent_size, rate=rate)
    return None


def _diffusion(recipe: Recipe, *, key: PRNGKeyArray) -> AbstractDiffusion:
    size, noise = recipe.latent.latent_size, recipe.latent.latent_noise
    if noise == "net":
        bounds = (LEAST_NOISE, recipe.latent.max_noise)
        return NetDiffusion(size, bounds=bounds, key=key)
    scale = np.full(size, recipe.model.sigma, np.float32)
    return ConstantDiffusion(scale, is_learned=noise == "learned")


def _start(options: LatentOptions) -> LatentStart:
    return LatentStart(
        options.latent_size, scale=options.start_scale, is_learned=options.learn_start
    )


def _integrator(recipe: Recipe) -> Integrator:
    options = recipe.solver
    adaptive = adaptive_steps(options.rtol, options.atol)
    grid = Grid(num_substeps=recipe.latent.substeps)
    steps = grid if adaptive is None else adaptive
    return Integrator(SOLVERS[options.solver](), steps, GRADIENTS[options.gradient]())


def _decoder_widths(options: LatentOptions, data: Data) -> tuple[int, ...]:
    if options.decoder_widths != "identity":
        return sizes(options.decoder_widths, "decoder_widths")
    if options.latent_size != data.num_outputs:
        raise OptionError(
            "{decoder_widths} identity takes the path itself for the values, and it "
            "has {} dimensions where {} has {} features: give {latent_size} {}.",
            options.latent_size,
            data.name,
            data.num_outputs,
            data.num_outputs,
        )
    return ()


def _decoded(model: _Model, options: LatentOptions) -> _Model:
    if options.decoder_widths != "identity":
        return model
    return dataclasses.replace(model, decoder=eqx.nn.Identity())
