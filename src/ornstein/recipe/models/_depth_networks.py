"""Networks that solve differential equations over depth, from a recipe."""

import dataclasses
import re
from typing import Any

import jax
import numpy as np

from ..._sentence import Option, OptionError
from ..._types import PRNGKeyArray, PyTree
from ...data import Data
from ...functions import (
    SDEBNN,
    GridIncrements,
    HyperODENet,
    LevyCiesielski,
    ODENet,
    WeightPrior,
    WhitenedSDEBNN,
    whiten,
)
from ...nn import TIME_LAYERS, PatchStem, activation_from_name
from .._recipe import Recipe, sizes
from ..options import GradientName, ModelOptions, SolverName
from ._integrators import ESTIMATORS, build_integrator

ODE_OPTIONS = frozenset(
    {"width", "activation", "blocks", "readout", "space_to_depth", "stem", "augment"}
    | {"normalised"}
    | {"time_layer", "solver", "dt", "rtol", "atol", "gradient"}
    | {"regularise_dynamics", "roughness_order"}
)
"""Options that networks of ordinary differential equations read."""

HYPER_OPTIONS = ODE_OPTIONS | {"drift_widths", "drift_scale"}
"""Those of networks whose weights follow one too."""

WHITENED_OPTIONS = (ODE_OPTIONS - {"rtol", "atol"}) | {
    *("sigma", "prior_scale", "absolute_sigma", "rate", "reverts_to_start"),
    *("random_layers", "noise_window", "path_modes", "point_scale"),
}
"""Those of an SDE-BNN whose path is among its parameters."""

ODE_SOLVERS: tuple[SolverName, ...] = ("euler", "heun", "midpoint", "reversible-heun")

_STEM = 2**31 - 1  # apart from the keys of blocks

DRIVEN_GRADIENTS: tuple[GradientName, ...] = ("backprop", "checkpointed")
"""Of a solve along a path that is given."""


def build_sdebnn(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> SDEBNN:
    """Weights that follow a stochastic differential equation."""
    options = recipe.model
    return _of_shape(
        SDEBNN,
        recipe,
        data,
        prior=_prior(options),
        start_width=None if options.start == "point" else options.start_width,
        drift_widths=sizes(options.drift_widths, "drift_widths"),
        drift_scale=options.drift_scale,
        num_inducing=options.num_inducing,
        estimator=ESTIMATORS[recipe.solver.estimator],
        is_path_per_row=options.path_per_row,
        where=_random_layers(options.random_layers),
        key=key,
    )


def check_solves(recipe: Recipe, *, are_vectors: bool) -> None:
    """Refuse, without data, what building the model refuses with any.

    Args:
        recipe: of a model or a network that solves an equation over depth.
        are_vectors: whether the data are known to be rows of numbers.

    Raises:
        ValueError: for steps, solvers and gradients that do not go together, or a prior
            or layers that cannot be.
    """
    build_integrator(recipe.solver)
    if "sdebnn" not in (recipe.model.model, recipe.network.network):
        return
    _prior(recipe.model)
    where = _random_layers(recipe.model.random_layers)
    if are_vectors and where is not None:
        where.check(len(sizes(recipe.model.width, "width")) + 1)


def _prior(options: ModelOptions) -> WeightPrior:
    return WeightPrior(
        sigma=options.sigma,
        rate=options.rate,
        scale=options.prior_scale,
        is_relative=not options.absolute_sigma,
        reverts_to_start=options.reverts_to_start,
        window=_window(options.noise_window),
    )


def build_odenet(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> ODENet:
    """Hidden units that follow an ordinary differential equation."""
    return _of_shape(ODENet, recipe, data, key=key)


def build_hyper_odenet(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> HyperODENet:
    """Weights that follow one too."""
    network_key, drift_key = jax.random.split(key)
    return HyperODENet(
        build_odenet(recipe, data, key=network_key),
        drift_widths=sizes(recipe.model.drift_widths, "drift_widths"),
        drift_scale=recipe.model.drift_scale,
        key=drift_key,
    )


def build_whitened(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> WhitenedSDEBNN:
    """An SDE-BNN as a network over numbers that are N(0, 1) a priori.

    Raises:
        ValueError: for modes that the solver's steps do not see, or a scale that is
            not positive.
    """
    modes, scale = recipe.model.path_modes, recipe.model.point_scale
    if not scale > 0:
        raise OptionError("{point_scale} must be positive, got {}.", scale)
    if modes is None:
        model = build_sdebnn(recipe, data, key=key)
        return whiten(model, GridIncrements(), point_scale=scale)
    begin, end = _window(recipe.model.noise_window)
    num_noisy = round((end - begin) / recipe.solver.dt)
    if not 1 <= modes <= num_noisy:
        raise OptionError(
            "{path_modes} {} must be from 1 to the {} steps of {dt} {} that have "
            "noise: give a number among these, or a smaller {dt}.",
            modes,
            num_noisy,
            recipe.solver.dt,
        )
    model = build_sdebnn(recipe, data, key=key)
    return whiten(model, LevyCiesielski(modes), point_scale=scale)


def _of_shape(kind: Any, recipe: Recipe, data: Data, **own: Any) -> Any:
    """`kind.for_images` or `kind.for_vectors`, whichever the data are."""
    options, widths = recipe.model, sizes(recipe.model.width, "width")
    common = {
        "activation": activation_from_name(options.activation),
        "time": TIME_LAYERS[options.time_layer.replace("-", "_")],
        "augment": options.augment,
        "integrator": build_integrator(recipe.solver),
        **own,
    }
    shape = data.example_shape
    if len(shape) == 1:
        _check_no_image_options(options)
        return kind.for_vectors(
            shape[0], data.num_outputs, width_sizes=widths, **common
        )
    if len(widths) != 1:
        raise OptionError(
            "{width} is {!r}, but images have one width, the channels inside a block: "
            "give one number, such as 32.",
            options.width,
        )
    return kind.for_images(
        shape,
        data.num_outputs,
        width=widths[0],
        blocks=sizes(options.blocks, "blocks"),
        readout_widths=sizes(options.readout, "readout"),
        space_to_depth_first=options.space_to_depth,
        stem=_stem(options, widths[0], data, key=own["key"]),
        is_normalised=options.normalised,
        **common,
    )


def _stem(
    options: ModelOptions, width: int, data: Data, *, key: PRNGKeyArray
) -> PatchStem | None:
    if options.stem == "none":
        return None
    if options.space_to_depth:
        raise OptionError(
            "{stem} {} stands in the place of {space_to_depth}, which is on here, "
            "maybe by the preset: switch that off, or leave {stem} out.",
            options.stem,
        )
    stem = PatchStem(
        data.example_shape[-1],
        width,
        activation=activation_from_name(options.activation),
        key=jax.random.fold_in(key, _STEM),
    )
    images = data.train.in_memory().x
    # A run that is read again has no rows, NaN for each: its weights replace these.
    return stem if np.isnan(images[:100]).all() else stem.whitened(images)


def _check_no_image_options(options: ModelOptions) -> None:
    default = ModelOptions()
    for name in ("blocks", "space_to_depth", "stem", "normalised"):
        if getattr(options, name) != getattr(default, name):
            raise OptionError(
                "{} is for images, and these data are rows of numbers: leave it out.",
                Option(name),
            )


def _window(text: str) -> tuple[float, float]:
    """The depths of `0-0.4`."""
    number = r"(\d+(?:\.\d*)?|\.\d+)"
    if (found := re.fullmatch(f"{number}-{number}", text)) is None:
        raise OptionError(
            "{noise_window} is {!r}, but must be two depths from 0 to 1 joined by a "
            "hyphen, such as 0-0.4.",
            text,
        )
    begin, end = map(float, found.groups())
    return begin, end


@dataclasses.dataclass(frozen=True)
class LayersAt:
    """Some layers of f_h: equal if they are the same ones, so that programs are too.

    Attributes:
        numbers: counted from 1.
    """

    numbers: tuple[int, ...]

    def __call__(self, f_h: Any) -> PyTree:
        """Those layers."""
        self.check(len(f_h.layers))
        return tuple(f_h.layers[number - 1] for number in self.numbers)

    def check(self, num_layers: int) -> None:
        """Refuse numbers of layers that f_h does not have.

        Args:
            num_layers: that it has.
        """
        if max(self.numbers) > num_layers:
            raise OptionError(
                "{random_layers} names layer {}, but f_h has {}: give numbers from 1 "
                "to that, such as {}.",
                max(self.numbers),
                num_layers,
                num_layers,
            )


def _random_layers(text: str) -> LayersAt | None:
    if text == "all":
        return None
    numbers = sizes(text, "random_layers")
    if not numbers:
        raise OptionError(
            "{random_layers} none leaves no weights random: give {model} "
            "deterministic {network} hyper-odenet for a network without noise."
        )
    return LayersAt(tuple(sorted(set(numbers))))
