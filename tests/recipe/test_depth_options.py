"""Options of networks that solve an equation over depth."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ornstein as orn
from ornstein.data import Data, Split, load
from ornstein.functions import HyperODENet, ODENet, Reparameterised, Roughness
from ornstein.functions.depth._integrator import has_integrator
from ornstein.nn import NormedConvBlock, PatchStem
from ornstein.recipe import (
    build_network,
    check_recipe,
    prepare,
    preset_recipe,
    preset_sampling,
)
from ornstein.recipe._training import fit_options
from ornstein.recipe.models import build_model
from ornstein.recipe.models._depth_networks import LayersAt


@pytest.fixture(scope="module")
def toy() -> Data:
    return load("toy/cos")


def images(side: int) -> Data:
    split = Split(np.zeros((10, side, side, 1), np.float32), np.arange(10, dtype="i4"))
    return Data("photos", "classification", split, split, None, 10, tuple("abcdefghij"))


def build(data: Data, model: Any, network: str | None = None, **options) -> Any:
    name = "digits" if data.name == "photos" else data.name
    recipe = preset_recipe(name, model=model, network=network).changed(**options)
    return build_model(recipe, data, key=jax.random.key(3))


def test_names_build_their_networks(toy: Data):
    """A direct call's output. Catches an option that is not read."""
    key = jax.random.key(3)
    direct = ODENet.for_vectors(
        1,
        1,
        width_sizes=(5,),
        augment=3,
        integrator=orn.Integrator(orn.sde.Heun(), orn.sde.Fixed(0.25)),
        key=key,
    )
    options = {"width": "5", "augment": 3, "solver": "heun", "dt": 0.25}
    ours = build(toy, "deterministic", "odenet", **options).network
    x = jnp.asarray(toy.test.x)
    np.testing.assert_array_equal(ours(x), direct(x))
    network_key, drift_key = jax.random.split(key)
    start = build_network(
        preset_recipe("toy/cos", model="deterministic", network="odenet"),
        toy,
        key=network_key,
    )
    direct = HyperODENet(start, drift_widths=(7,), drift_scale=0.3, key=drift_key)
    options = {"drift_widths": "7", "drift_scale": 0.3}
    ours = build(toy, "deterministic", "hyper-odenet", **options).network
    assert eqx.tree_equal(ours, direct)
    sdebnn = orn.SDEBNN.for_vectors(
        1,
        1,
        width_sizes=(5,),
        augment=3,
        prior=orn.WeightPrior(sigma=0.3, rate=0.7, scale=1.5),
        integrator=orn.Integrator(orn.sde.Heun(), orn.sde.Fixed(0.25)),
        key=key,
    )
    options = {"width": "5", "augment": 3, "solver": "heun", "dt": 0.25}
    options |= {"sigma": 0.3, "rate": 0.7, "prior_scale": 1.5, "absolute_sigma": False}
    for modes, coordinates in ((None, None), (3, orn.LevyCiesielski(3))):
        ours = build(toy, "deterministic", "sdebnn", path_modes=modes, **options)
        assert eqx.tree_equal(ours.network, orn.whiten(sdebnn, coordinates))
    wider = build(toy, "deterministic", "sdebnn", point_scale=3.0, **options)
    assert eqx.tree_equal(wider.network, orn.whiten(sdebnn, point_scale=3.0))


def test_images_are_normalised_on_request():
    """In `train` and, by default, in chains over whitened weights."""
    options = {"normalised": True, "blocks": "1-1", "num_inducing": 0}
    model = build(images(8), "sdebnn", **options)
    block = next(b for b in model.layers if hasattr(b, "process"))
    assert isinstance(block.dynamics, NormedConvBlock)
    for data, halved in (("digits", False), ("mnist", True)):
        recipe = preset_sampling(data, network="sdebnn").recipe
        assert recipe.model.normalised
        assert recipe.model.space_to_depth is halved
        assert recipe.model.point_scale == 6.0
    assert not preset_sampling("uci/yacht", network="sdebnn").recipe.model.normalised


def test_presets_are_the_sdebnn_s_architecture_and_budget():
    ours = preset_recipe("mnist", model="deterministic", network="odenet")
    theirs = preset_recipe("mnist")
    for name in ("width", "space_to_depth", "augment", "blocks"):
        assert getattr(ours.model, name) == getattr(theirs.model, name)
    for name in ("epochs", "learning_rate", "ema"):
        assert getattr(ours.training, name) == getattr(theirs.training, name)
    assert ours.solver == theirs.solver
    for model in ("deterministic", "ensemble", "mean-field"):
        for network in ("odenet", "hyper-odenet", "sdebnn"):
            for data in ("digits", "mnist", "cifar10", "toy/cos", "uci/yacht"):
                check_recipe(preset_recipe(data, "cpu", model, network))
            if (model, network) != ("mean-field", "sdebnn"):  # refused
                check_recipe(preset_recipe("cifar10", "paper", model, network))
    paper = preset_recipe("cifar10", "paper", "mean-field", "odenet")
    assert (paper.training.kl_weight, paper.training.epochs) == (1e-3, 200)


def test_mean_field_draws_weights_once(toy: Data):
    model = build(toy, "mean-field", "odenet")
    assert isinstance(model.noise, Reparameterised)
    assert has_integrator(model)


def test_random_layers_and_window_reach_the_blocks():
    """Numbers count layers of f_h from 1. Catches one too many, and a lost window."""
    model = build(images(8), "sdebnn", random_layers="4-2", noise_window="0-0.4")
    block = next(b for b in model.layers if hasattr(b, "process"))
    assert block.window == (0.0, 0.4)
    assert block.where == LayersAt((2, 4))
    chosen = block.where(block.dynamics)
    assert chosen == (block.dynamics.layers[1], block.dynamics.layers[3])
    num_random = len(jax.tree.leaves(block.initial_scale))
    assert num_random == len(jax.tree.leaves(chosen)) > 0
    # Equal from one build to the next, or each would be compiled anew.
    again = build(images(8), "sdebnn", random_layers="2-4")
    assert hash(again.layers[1].where) == hash(block.where)


def test_roughness_reaches_fit(toy: Data):
    recipe = preset_recipe("toy/cos", model="deterministic", network="odenet")
    assert fit_options(recipe, toy)["regularise_dynamics"] is None
    rough = recipe.changed(regularise_dynamics=0.3, roughness_order=2)
    assert fit_options(rough, toy)["regularise_dynamics"] == Roughness(0.3, 2)


ODENET = ("deterministic", "odenet")
WHITENED = ("mean-field", "sdebnn")
REFUSED = {
    "dropout": (("mc-dropout", "odenet"), {}, "`model` mc-dropout puts noise on the"),
    "flipout": (
        ("mean-field", "odenet"),
        {"weight_noise": "flipout"},
        "`weight_noise` flipout would draw anew.*give `weight_noise` plain",
    ),
    "local": (
        ("mean-field", "hyper-odenet"),
        {"weight_noise": "local"},
        "give `weight_noise` plain",
    ),
    "drift": (ODENET, {"drift_widths": "3"}, "`drift_widths` does nothing for `netw"),
    "sigma": (ODENET, {"sigma": 0.4}, "`sigma` does nothing for `network` odenet"),
    "sigma of an MLP": (
        ("mc-dropout", "mlp"),
        {"sigma": 0.4},
        "`sigma` does nothing for `network` mlp",
    ),
    "modes of a drift network": (
        ("sdebnn", None),
        {"path_modes": 4},
        "`path_modes` does nothing for `model` sdebnn",
    ),
    "points of a drift network": (
        ("sdebnn", None),
        {"point_scale": 3.0},
        "`point_scale` does nothing for `model` sdebnn",
    ),
    "drift of a whitened network": (
        WHITENED,
        {"drift_widths": "3"},
        "`drift_widths` does nothing for `network` sdebnn",
    ),
    "tolerance of a whitened network": (
        WHITENED,
        {"rtol": 0.1},
        "`rtol` does nothing for `network` sdebnn",
    ),
    "modes": (
        WHITENED,
        {"path_modes": 8, "dt": 0.25},
        "from 1 to the 4 steps of `dt` 0.25 that have noise",
    ),
    "images' blocks for rows": (
        WHITENED,
        {"normalised": True},
        "`normalised` is for images, and these data are rows",
    ),
    "no prior of points": (WHITENED, {"point_scale": 0.0}, "`point_scale` must be pos"),
    "no modes": (WHITENED, {"path_modes": 0}, "`path_modes` 0 must be from 1"),
    "modes in a window": (
        WHITENED,
        {"path_modes": 3, "dt": 0.25, "noise_window": "0-0.5"},
        "from 1 to the 2 steps",
    ),
    "prior of standard normals": (
        WHITENED,
        {"weight_scale": 4.0},
        "with `weight_scale` 4 is another prior: give `prior` gaussian",
    ),
    "kind of prior": (WHITENED, {"prior": "laplace"}, "`prior` laplace .*another prio"),
    "gradient along a given path": (
        WHITENED,
        {"gradient": "backsolve"},
        "`gradient` backsolve is not for `network` sdebnn",
    ),
    "step of an MLP": (
        ("deterministic", "mlp"),
        {"dt": 0.05},
        "`dt` does nothing for `network` mlp",
    ),
    "roughness of an MLP": (
        ("deterministic", "mlp"),
        {"regularise_dynamics": 0.1},
        "`regularise_dynamics` does nothing for `network` mlp",
    ),
    "order alone": (ODENET, {"roughness_order": 2}, "add `regularise_dynamics` 0.01"),
    "draws of one part": (
        ("mean-field", "mlp"),
        {"draw_per_part": True},
        "`accumulate` 1 leaves it whole: give `accumulate` 4",
    ),
    "negative": (ODENET, {"regularise_dynamics": -1.0}, "must not be negative, got -1"),
    "solver": (ODENET, {"solver": "sra1"}, "`solver` sra1 is for equations with noise"),
    "no layers": (("sdebnn", None), {"random_layers": "none"}, "leaves no weights ran"),
    "layers": (("sdebnn", None), {"random_layers": "all-1"}, "whole numbers joined by"),
    "window": (("sdebnn", None), {"noise_window": "0.5-0.2"}, "0 <= begin < end <= 1"),
    "steps": (
        ("sdebnn", None),
        {"noise_window": "0-0.33"},
        "does not divide the",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str, toy: Data):
    (model, network), changes, match = REFUSED[case]
    recipe = preset_recipe("toy/cos", "cpu", model, network)
    with pytest.raises(ValueError, match=match):
        prepare(recipe.changed(**changes), toy)


def test_sizes_that_cannot_be_halved_are_refused():
    for model, network in (("sdebnn", None), ODENET):
        with pytest.raises(ValueError, match="Images of 14 by 14 cannot be halved 2 t"):
            build(images(14), model, network, space_to_depth=True)


def test_a_stem_is_built_and_halves():
    """Of the images that train; in the place of `space_to_depth`."""
    photos = images(16)
    rng = np.random.default_rng(0)
    split = Split(rng.normal(size=(10, 16, 16, 1)).astype("f"), photos.train.y)
    photos = dataclasses.replace(photos, train=split)
    stems = {"stem": "patches", "normalised": True, "augment": 0, "width": "6"}
    stems["space_to_depth"] = False
    for model, network in (("sdebnn", None), ("deterministic", "sdebnn"), ODENET):
        found = build(photos, model, network, **stems)
        network_of = found if network is None else found.network
        first = network_of.layers[0]
        stem = first.module() if hasattr(first, "module") else first
        assert isinstance(stem, PatchStem)
        expected = stem.whitened(split.x).patches.weight
        np.testing.assert_allclose(stem.patches.weight, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="`stem` patches stands in the place of"):
        build(photos, "sdebnn", **(stems | {"space_to_depth": True}))
    with pytest.raises(ValueError, match="`stem` is for images"):
        build(load("toy/cos"), "sdebnn", stem="patches")
