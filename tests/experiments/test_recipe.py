"""Recipes, presets, and the names that they choose from."""

import typing

import pytest

from ornstein.data import load
from ornstein.experiments import (
    PRESETS,
    Recipe,
    _build as build,
    _recipe as recipe_module,
    prepare,
    preset_recipe,
)
from ornstein.experiments._recipe import sizes
from ornstein.nn import ACTIVATIONS, TIME_LAYERS

NAMES = {
    "ModelName": set(build.MODELS),
    "LikelihoodName": {"auto", *build.LIKELIHOODS},
    "EstimatorName": set(build.ESTIMATORS),
    "SolverName": set(build.SOLVERS),
    "GradientName": set(build.GRADIENTS),
    "ActivationName": {*ACTIVATIONS, "swish"},
    "TimeLayerName": {name.replace("_", "-") for name in TIME_LAYERS},
}


@pytest.mark.parametrize("kind", NAMES)
def test_choices_are_what_can_be_built(kind: str):
    """Catches a name in the help that nothing answers to, and the reverse."""
    assert set(typing.get_args(getattr(recipe_module, kind))) == NAMES[kind]


@pytest.mark.parametrize(("data", "preset"), PRESETS)
def test_presets_survive_json(data: str, preset):
    names = {"toy": "toy/cos", "vectors": "uci/yacht", "images": "cifar10"}
    recipe = preset_recipe(names.get(data, data), preset)
    assert Recipe.from_json(recipe.to_json()) == recipe
    for option, value in PRESETS[data, preset].items():
        parts = recipe.to_json().values()
        assert [part[option] for part in parts if option in part] == [value]


@pytest.mark.parametrize("data", ["digits", "toy/cos"])
def test_presets_build(data: str):
    prepared = prepare(preset_recipe(data), load(data))
    assert prepared.data.name == data


def test_changed_refuses_unknown_options():
    assert Recipe().changed(sigma=0.7).model.sigma == 0.7
    with pytest.raises(ValueError, match="no option 'colour'"):
        Recipe().changed(colour="blue")


@pytest.mark.parametrize(
    ("part", "option", "value", "match"),
    [
        ("solver", "solver", "rk9", "must be one of euler"),
        ("model", "colour", 1, "no option 'colour'"),
    ],
)
def test_json_of_another_version_is_refused(part, option, value, match):
    saved = Recipe().to_json()
    saved[part][option] = value
    with pytest.raises(ValueError, match=match):
        Recipe.from_json(saved)


def test_sizes():
    assert sizes("2-128-2", "width") == (2, 128, 2)
    assert sizes("none", "width") == ()
    for wrong in ("", "0", "2--2", "2-x"):
        with pytest.raises(ValueError, match="--width"):
            sizes(wrong, "width")
