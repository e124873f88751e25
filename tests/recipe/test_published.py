"""The recipes of table 1: what ships can be built, and what is wrong is refused."""

import json
from pathlib import Path

import jax
import pytest

from ornstein.evaluation import num_trained
from ornstein.prediction import FittedModel
from ornstein.recipe import Recipe, check_recipe, list_recipes, load_recipe, prepare
from ornstein.recipe._published import (
    count_parameters,
    load_row,
    network_recipe,
    recipe_names,
)
from ornstein.recipe._sampling import SampleRecipe

SCALES = ("quick", "gpu", "full")
MODELS = {
    *("resnet-32", "mean-field-resnet-32", "deep-ensemble", "hmc", "odenet"),
    *("hyper-odenet", "mean-field-odenet", "mean-field-hyper-odenet", "sdebnn"),
    *("sdebnn-stl", "partial-sdebnn", "inducing-sdebnn"),
}


def write(path: Path, **changes) -> str:
    options = {"model": "sdebnn", "width": "4", "epochs": 1}
    content = {"about": "mine", "quick": {"seeds": [0, 1], "options": options}}
    path.write_text(json.dumps(content | changes))
    return str(path)


def test_every_row_of_the_table_has_its_recipes():
    """Catches an option that a row's family would pass over, and a row that is not."""
    assert {data: set(models) for data, models in recipe_names("quick").items()} == {
        "mnist": MODELS,
        "cifar10": MODELS,
        "mocap": {"latent-sde", "latent-ode"},
    }
    hours = recipe_names("hours")
    assert set(hours) == {"cifar10"}
    for model in hours["cifar10"]:
        check_recipe(network_recipe(load_row("cifar10", model, "hours").recipe))
    for data in ("mnist", "cifar10"):
        for model in MODELS:
            for scale in SCALES:
                row = load_row(data, model, scale)
                assert row.about
                assert isinstance(row.recipe, SampleRecipe) == (model == "hmc")
                assert row.recipe.data.data == data
                check_recipe(network_recipe(row.recipe))
            repeated = model in {"sdebnn", "sdebnn-stl", "resnet-32"}
            assert (
                load_recipe(data, model, "quick")[0] == ((0, 1, 2)[: 1 + 2 * repeated])
            )


def test_twins_differ_in_one_option():
    """Catches a comparison of two things that changed."""
    (_, plain), (_, stl) = (load_recipe("mnist", m, "quick") for m in _TWINS)
    assert plain.changed(estimator="stl") == stl
    _, partial = load_recipe("mnist", "partial-sdebnn", "quick")
    assert plain.changed(random_layers="4") == partial


_TWINS = ("sdebnn", "sdebnn-stl")


def test_the_twin_of_hours_is_the_same_network():
    """Catches a twin of another architecture, prior, budget or augmentation."""
    names = ("sdebnn", "sdebnn-without-noise")
    noisy, still = (load_recipe("cifar10", name, "hours")[1] for name in names)
    own = {"model": "map", "test_draws": 1}
    own |= {name: getattr(Recipe().weights, name) for name in _OF_NOISE}
    assert noisy.changed(**own) == still


_OF_NOISE = ("weight_noise", "random_weights", "init_scale")


def test_counts_from_shapes_are_those_of_the_model(tmp_path: Path):
    """Catches frozen numbers that are counted, and traced ones that are not."""
    for options in (
        {"model": "sdebnn", "width": "4"},
        {"model": "mean-field", "network": "odenet", "weight_noise": "plain"}
        | {"width": "4"},
    ):
        quick = {"seeds": [0], "options": options}
        path = write(tmp_path / "mine.json", quick=quick)
        _, recipe = load_recipe("digits", path, "quick")
        prepared = prepare(recipe)
        fit = FittedModel(prepared.model, prepared.likelihood)
        assert count_parameters(recipe, (8, 8, 1)) == num_trained(fit) > 0


def test_counts_of_a_latent_model_are_those_of_the_model(data_dir: Path):
    _, recipe = load_recipe("mocap", "latent-sde", "quick")
    prepared = prepare(recipe.changed(data_dir=str(data_dir)))
    fit = FittedModel(prepared.model, prepared.likelihood)
    assert count_parameters(recipe, (300, 50)) == num_trained(fit) == 28_479


@pytest.mark.slow
def test_the_partial_row_has_fewer_numbers():
    counts = {}
    for row in list_recipes():
        if (row["data"], row["scale"]) == ("mnist", "quick"):
            counts[row["model"]] = row["num_parameters"]
    assert counts["sdebnn"] == 160_816  # what `results/mnist.json` has
    assert counts["partial-sdebnn"] < counts["sdebnn"] < counts["inducing-sdebnn"]
    assert counts["mean-field-odenet"] == 2 * counts["odenet"]


def test_own_file_at_its_scale(tmp_path: Path):
    seeds, recipe = load_recipe("digits", write(tmp_path / "a.json"), "quick")
    assert seeds == (0, 1)
    expected = Recipe().changed(data="digits", model="sdebnn", width="4", epochs=1)
    assert recipe == expected


QUICK = {"seeds": [0], "options": {"model": "sdebnn"}}
REFUSED = {
    "key": ({"medium": QUICK}, "a.json has the unknown key 'medium'"),
    "entry": ({"quick": QUICK | {"colour": 1}}, "quick has the unknown key 'colour'"),
    "missing": ({"quick": {"options": {}}}, "quick lacks the key 'seeds'"),
    "no object": ({"quick": [1]}, '"quick" must hold "seeds"'),
    "option": (
        {"quick": QUICK | {"options": {"colour": "blue"}}},
        "a.json, quick: There is no option 'colour'",
    ),
    "choice": (
        {"quick": QUICK | {"options": {"solver": "rk9"}}},
        "`solver` is 'rk9', but must be one of euler",
    ),
    "type": (
        {"quick": QUICK | {"options": {"epochs": "8"}}},
        "`epochs` is '8', but must be a whole number",
    ),
    "number": (
        {"quick": QUICK | {"options": {"rtol": "x"}}},
        "`rtol` is 'x', but must be a number or null",
    ),
    "data": (
        {"quick": QUICK | {"options": {"data": "mnist"}}},
        "'data' is not a recipe's: `data` says",
    ),
    "seed": (
        {"quick": QUICK | {"options": {"seed": 3}}},
        "'seed' is not a recipe's: \"seeds\" has",
    ),
    "seeds": ({"quick": QUICK | {"seeds": [1, 1]}}, "a seed that is repeated"),
    "no seeds": ({"quick": QUICK | {"seeds": []}}, "must be a list of whole numbers"),
    "sampler's": (
        {"quick": QUICK | {"options": {"kernel": "hmc", "epochs": 1}}},
        "no option 'epochs': `ornstein sample --help`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str, tmp_path: Path):
    changes, match = REFUSED[case]
    with pytest.raises(ValueError, match=match):
        load_recipe("digits", write(tmp_path / "a.json", **changes), "quick")


def test_refuses_names_files_and_scales_that_are_not(tmp_path: Path):
    with pytest.raises(ValueError, match="no recipe 'forest' for mnist: give .*deep"):
        load_recipe("mnist", "forest", "quick")
    with pytest.raises(ValueError, match="no recipes for 'svhn', only for cifar10"):
        load_recipe("svhn", "sdebnn", "quick")
    with pytest.raises(FileNotFoundError, match="no recipe gone.json"):
        load_recipe("mnist", "gone.json", "quick")
    with pytest.raises(ValueError, match="lacks the key 'gpu'"):
        load_recipe("digits", write(tmp_path / "a.json"), "gpu")
    (tmp_path / "cut.json").write_text('{"about": ')
    with pytest.raises(ValueError, match="cut.json is not JSON"):
        load_recipe("digits", str(tmp_path / "cut.json"), "quick")


def test_seeds_decide_initial_parameters(tmp_path: Path):
    """Catches a seed that is not passed on."""
    _, recipe = load_recipe("digits", write(tmp_path / "a.json"), "quick")
    models = [prepare(recipe.changed(seed=seed)).model for seed in (0, 1)]
    first, second = (jax.tree.leaves(model.readout)[0] for model in models)
    assert (first != second).any()
