"""The families of random functions, each built from a recipe and data."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax

from ..._types import PRNGKeyArray
from ...data import Data
from ...functions import (
    MAP,
    AbstractNodeKL,
    AbstractRandomFunction,
    AbstractWeightKL,
    AbstractWeightNoise,
    AnalyticKL,
    Deterministic,
    Ensemble,
    Flipout,
    ImplicitBNN,
    LocalReparameterised,
    MCDropout,
    MeanField,
    MixtureMeanKL,
    MonteCarloKL,
    Reparameterised,
    SampledKL,
    StickTheLandingKL,
)
from ...likelihood import AbstractLikelihood
from ...network import Network, parameter_parts
from ...prior import (
    AbstractPrior,
    GaussianPrior,
    LaplacePrior,
    ScaleMixturePrior,
    fan_in_prior,
)
from .._recipe import Recipe
from ..options import (
    ImplicitOptions,
    LatentOptions,
    MixtureKLName,
    ModelName,
    ModelOptions,
    NetworkOptions,
    PosthocOptions,
    SolverOptions,
    WeightOptions,
)
from ._depth_networks import build_sdebnn
from ._latent_models import build_latent_ode, build_latent_sde
from ._networks import NETWORK_OPTIONS, build_network
from ._posthoc import LAPLACE, SWAG_OF, Posthoc

PRIORS: dict[str, Callable[[WeightOptions, Network], AbstractPrior]] = {
    "gaussian": lambda o, network: GaussianPrior(o.weight_scale),
    "fan-in": lambda o, network: fan_in_prior(network, scale=o.weight_scale),
    "laplace": lambda o, network: LaplacePrior(o.weight_scale),
    "scale-mixture": lambda o, network: ScaleMixturePrior(
        o.mixture, wide_scale=o.weight_scale, narrow_scale=o.narrow_scale
    ),
}
WEIGHT_NOISES: dict[str, AbstractWeightNoise] = {
    "plain": Reparameterised(),
    "local": LocalReparameterised(),
    "flipout": Flipout(),
}
WEIGHT_KLS: dict[str, AbstractWeightKL] = {
    "kl": AnalyticKL(),
    "full": SampledKL(),
    "stl": StickTheLandingKL(),
}
MIXTURE_KLS: dict[MixtureKLName, AbstractNodeKL] = {
    "mean": MixtureMeanKL(),
    "monte-carlo": MonteCarloKL(),
}


def _mean_field(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> MeanField:
    options = recipe.weights
    network = build_network(recipe, data, key=key)
    is_path_alone = options.random_weights == "path"
    return MeanField(
        network,
        PRIORS[options.prior](options, network),
        where=parameter_parts(network)["path"] if is_path_alone else None,
        has_prior_on_points=is_path_alone,
        init_scale=options.init_scale,
        noise=WEIGHT_NOISES[options.weight_noise],
        kl=WEIGHT_KLS[recipe.solver.estimator],
    )


def _implicit(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> ImplicitBNN:
    options = recipe.implicit
    network_key, noise_key = jax.random.split(key)
    return ImplicitBNN(
        build_network(recipe, data, key=network_key),
        num_components=options.num_components,
        prior_scale=options.node_prior_scale,
        init_spread=options.init_spread,
        bias_noise=options.bias_noise,
        kl=MIXTURE_KLS[options.mixture_kl],
        key=noise_key,
    )


def _mc_dropout(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> MCDropout:
    options = recipe.weights
    return MCDropout(
        build_network(recipe, data, key=key),
        rate=options.dropout,
        input_rate=options.input_dropout,
    )


def _ensemble(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> Ensemble:
    make_member = functools.partial(build_network, recipe, data)
    return Ensemble.of(make_member, recipe.weights.num_members, key=key)


def _deterministic(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> Deterministic:
    return Deterministic(build_network(recipe, data, key=key))


def _map(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> MAP:
    options = recipe.weights
    network = build_network(recipe, data, key=key)
    return MAP.of(network, PRIORS[options.prior](options, network))


def _mode(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> MAP:
    """What Laplace's approximation is around.

    Without a prior, weights that tell classes apart grow for as long as they are
    trained, and the curvature at them vanishes.
    """
    return MAP.of(build_network(recipe, data, key=key), GaussianPrior(1.0))


class Family(NamedTuple):
    """One kind of random function.

    Attributes:
        build: from a recipe, data and a key.
        options: of those that only some families read, which it reads.
        takes_depth: whether its network may solve an equation over depth.
        takes_series: whether it learns sequences, and nothing else.
        posthoc: what is made of the network once it is trained, if anything is.
    """

    build: Callable[..., AbstractRandomFunction]
    options: frozenset[str]
    takes_depth: bool = True
    takes_series: bool = False
    posthoc: Posthoc | None = None


def _names(*parts: type) -> set[str]:
    return {field.name for part in parts for field in dataclasses.fields(part)}


_KL = {"kl_weight", "kl_warmup"}
_NETWORK = {"model", "network"} | NETWORK_OPTIONS
_PRIOR = {"prior", "weight_scale", "narrow_scale", "mixture"}
_MEAN_FIELD = _PRIOR | {"init_scale", "weight_noise", "random_weights", "estimator"}
_DYNAMICS = {"regularise_dynamics", "roughness_order"}
_IMPLICIT = _names(ImplicitOptions) | {"noise_learning_rate"}
_LATENT = (_names(LatentOptions, SolverOptions) - {"dt"}) | {
    *("model", "drift_widths", "activation")
}
_LATENT_SDE_ALONE = {
    *("context_size", "latent_prior", "latent_noise", "drift_sees_time"),
    *("extrapolates_posterior", "max_noise"),
}
SOME_READ = (
    _names(ModelOptions, NetworkOptions, WeightOptions, SolverOptions, LatentOptions)
    | _names(PosthocOptions)
    | _KL
    | _IMPLICIT
    | _DYNAMICS
)
"""Options that only some families read."""

MODELS: dict[ModelName, Family] = {
    "sdebnn": Family(
        build_sdebnn,
        frozenset(
            (_names(ModelOptions, SolverOptions) - {"path_modes", "point_scale"})
            | _KL
            | _DYNAMICS
        ),
    ),
    "mean-field": Family(_mean_field, frozenset(_NETWORK | _MEAN_FIELD | _KL)),
    "implicit": Family(
        _implicit, frozenset(_NETWORK | _IMPLICIT | _KL), takes_depth=False
    ),
    "mc-dropout": Family(
        _mc_dropout,
        frozenset(_NETWORK | {"dropout", "input_dropout"}),
        takes_depth=False,
    ),
    "ensemble": Family(_ensemble, frozenset(_NETWORK | {"num_members"})),
    "deterministic": Family(_deterministic, frozenset(_NETWORK)),
    "map": Family(_map, frozenset(_NETWORK | _PRIOR | _KL)),
    "laplace": Family(
        _mode,
        frozenset(_NETWORK | {"curvature", "linearised"}),
        takes_depth=False,
        posthoc=LAPLACE,
    ),
    "swag": Family(
        _deterministic,
        frozenset(_NETWORK | {"swag_epochs", "swag_rate"}),
        takes_depth=False,
        posthoc=SWAG_OF,
    ),
    "latent-sde": Family(
        build_latent_sde,
        frozenset(_LATENT | {"sigma", "rate"} | _KL),
        takes_series=True,
    ),
    "latent-ode": Family(
        build_latent_ode,
        frozenset((_LATENT - _LATENT_SDE_ALONE) | _KL),
        takes_series=True,
    ),
}
"""The families by name."""


def build_model(
    recipe: Recipe, data: Data, *, key: PRNGKeyArray
) -> AbstractRandomFunction:
    """The random function of a recipe, for these data, as training begins with it."""
    return MODELS[recipe.model.model].build(recipe, data, key=key)


def trained_like(
    recipe: Recipe, model: AbstractRandomFunction, likelihood: AbstractLikelihood
) -> AbstractRandomFunction:
    """A tree with the structure of what training makes of a model.

    Args:
        recipe: of the model.
        model: what `build_model` built.
        likelihood: of the data.
    """
    posthoc = MODELS[recipe.model.model].posthoc
    return model if posthoc is None else posthoc.like(recipe, model, likelihood)
