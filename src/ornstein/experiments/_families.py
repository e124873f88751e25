"""The families of random functions, each built from a recipe and data."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from .._types import PRNGKeyArray
from ..data import Data
from ..functions import (
    AbstractRandomFunction,
    AbstractWeightKL,
    AbstractWeightNoise,
    AnalyticKL,
    Deterministic,
    Ensemble,
    Flipout,
    LocalReparameterised,
    MCDropout,
    MeanField,
    Reparameterised,
    SampledKL,
    StickTheLandingKL,
)
from ..functions._network import Network
from ..nn import MLP, Flattened, activation_from_name
from ..prior import (
    AbstractPrior,
    GaussianPrior,
    LaplacePrior,
    ScaleMixturePrior,
    fan_in_prior,
)
from ._build import build_sdebnn
from ._recipe import ModelOptions, Recipe, SolverOptions, WeightOptions, sizes

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


def build_network(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> Network:
    """A plain network for these data: an MLP of flattened inputs."""
    shape = data.example_shape
    mlp = MLP(
        math.prod(shape),
        data.num_outputs,
        sizes(recipe.model.width, "width"),
        activation=activation_from_name(recipe.model.activation),
        key=key,
    )
    return mlp if len(shape) == 1 else Flattened(mlp, len(shape))


def _mean_field(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> MeanField:
    options, estimator = recipe.weights, recipe.solver.estimator
    if estimator == "stl" and options.weight_noise != "plain":
        raise ValueError(
            "--estimator stl needs the draw of the weights that the likelihood meets: "
            f"give --weight-noise plain, not {options.weight_noise}."
        )
    network = build_network(recipe, data, key=key)
    return MeanField(
        network,
        PRIORS[options.prior](options, network),
        init_scale=options.init_scale,
        estimator=WEIGHT_NOISES[options.weight_noise],
        kl=WEIGHT_KLS[estimator],
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


class Family(NamedTuple):
    """One kind of random function.

    Attributes:
        build: from a recipe, data and a key.
        options: of those that only some families read, which it reads.
    """

    build: Callable[..., AbstractRandomFunction]
    options: frozenset[str]


def _names(*parts: type) -> set[str]:
    return {field.name for part in parts for field in dataclasses.fields(part)}


_KL = {"kl_weight", "kl_warmup"}
_NETWORK = {"model", "width", "activation"}
_MEAN_FIELD = {
    *("prior", "weight_scale", "narrow_scale", "mixture", "init_scale"),
    *("weight_noise", "estimator"),
}

MODELS: dict[str, Family] = {
    "sdebnn": Family(
        build_sdebnn, frozenset(_names(ModelOptions, SolverOptions) | _KL)
    ),
    "mean-field": Family(_mean_field, frozenset(_NETWORK | _MEAN_FIELD | _KL)),
    "mc-dropout": Family(
        _mc_dropout, frozenset(_NETWORK | {"dropout", "input_dropout"})
    ),
    "ensemble": Family(_ensemble, frozenset(_NETWORK | {"num_members"})),
    "deterministic": Family(_deterministic, frozenset(_NETWORK)),
}
"""The families by name."""


def check_options(recipe: Recipe) -> None:
    """Refuse options that the recipe's family would pass over in silence.

    Raises:
        ValueError: naming the first of them.
    """
    family = recipe.model.model
    some_read = _names(ModelOptions, WeightOptions, SolverOptions) | _KL
    default = Recipe()
    for part in dataclasses.fields(Recipe):
        ours, theirs = getattr(recipe, part.name), getattr(default, part.name)
        unread = _names(type(ours)) & some_read - MODELS[family].options
        for name in sorted(unread):
            if getattr(ours, name) != getattr(theirs, name):
                option = name.replace("_", "-")
                raise ValueError(
                    f"--{option} does nothing for --model {family}: leave it out."
                )


def build_model(
    recipe: Recipe, data: Data, *, key: PRNGKeyArray
) -> AbstractRandomFunction:
    """The random function of a recipe, for these data."""
    return MODELS[recipe.model.model].build(recipe, data, key=key)
