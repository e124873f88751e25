"""Recipes, presets, and the names that they choose from."""

import typing
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ornstein.data import load
from ornstein.functions import MeanField, Reparameterised, StickTheLandingKL
from ornstein.nn import ACTIVATIONS, MLP, TIME_LAYERS
from ornstein.prior import GaussianPrior, ScaleMixturePrior
from ornstein.recipe import (
    PRESETS,
    Recipe,
    _training,
    check_recipe,
    prepare,
    preset_recipe,
)
from ornstein.recipe._recipe import sizes
from ornstein.recipe.models import (
    _families as families,
    _integrators as integrators,
    _likelihoods as likelihoods,
    _networks as networks,
    _posthoc as posthoc,
)
from ornstein.recipe.options import _options as options_module
from ornstein.recipe.presets import HANDED_OVER

NAMES = {
    "ModelName": {*families.MODELS, *HANDED_OVER},
    "PriorName": set(families.PRIORS),
    "WeightNoiseName": set(families.WEIGHT_NOISES),
    "LikelihoodName": {"auto", *likelihoods.LIKELIHOODS},
    "NormName": set(networks.NORMS),
    "CurvatureName": {"auto", *posthoc.STRUCTURES},
    "MixtureKLName": set(families.MIXTURE_KLS),
    "ScheduleName": set(_training.SCHEDULES),
    "EstimatorName": set(integrators.ESTIMATORS),
    "SolverName": set(integrators.SOLVERS),
    "GradientName": set(integrators.GRADIENTS),
    "ActivationName": {*ACTIVATIONS, "swish"},
    "TimeLayerName": {name.replace("_", "-") for name in TIME_LAYERS},
}


@pytest.mark.parametrize("kind", NAMES)
def test_choices_are_what_can_be_built(kind: str):
    """Catches a name in the help that nothing answers to, and the reverse."""
    assert set(typing.get_args(getattr(options_module, kind))) == NAMES[kind]


@pytest.mark.parametrize(("model", "data", "preset"), PRESETS)
def test_presets_survive_json(model, data: str, preset):
    names = {"toy": "toy/cos", "vectors": "uci/yacht", "images": "cifar10"}
    recipe = preset_recipe(names.get(data, data), preset, model)
    assert Recipe.from_json(recipe.to_json()) == recipe
    check_recipe(recipe)  # nothing of another family's leaks in
    for option, value in PRESETS[model, data, preset].items():
        parts = recipe.to_json().values()
        assert [part[option] for part in parts if option in part] == [value]


OF_ROWS = [name for name, one in families.MODELS.items() if not one.takes_series]


@pytest.mark.parametrize("model", OF_ROWS)
@pytest.mark.parametrize("data", ["digits", "toy/cos"])
def test_presets_build(data: str, model):
    prepared = prepare(preset_recipe(data, model=model), load(data))
    assert prepared.data.name == data
    assert prepared.recipe.model.model == model


def test_changed_refuses_unknown_options():
    assert Recipe().changed(sigma=0.7).model.sigma == 0.7
    with pytest.raises(ValueError, match="no option 'colour'"):
        Recipe().changed(colour="blue")


@pytest.mark.parametrize(
    ("model", "changes", "option"),
    [
        ("deterministic", {"sigma": 0.3}, "sigma"),
        ("mc-dropout", {"kl_weight": 0.5}, "kl_weight"),
        ("ensemble", {"sigma": 0.5}, "sigma"),
        ("mean-field", {"dropout": 0.3}, "dropout"),
        ("sdebnn", {"weight_noise": "flipout"}, "weight_noise"),
        ("sdebnn", {"network": "lenet"}, "network"),
        ("deterministic", {"num_components": 8}, "num_components"),
        ("mean-field", {"noise_learning_rate": 1.0}, "noise_learning_rate"),
        ("implicit", {"init_scale": 0.1}, "init_scale"),
        ("sdebnn", {"latent_size": 8}, "latent_size"),
        ("latent-sde", {"dt": 0.5}, "dt"),
        ("latent-ode", {"context_size": 8}, "context_size"),
    ],
)
def test_options_of_another_family_are_refused(model, changes, option):
    """Catches an option that is passed over in silence."""
    recipe = preset_recipe("digits", model=model)
    check_recipe(recipe.changed(epochs=3))
    with pytest.raises(
        ValueError, match=f"`{option}` does nothing for `(model|network)`"
    ):
        check_recipe(recipe.changed(**changes))


def test_options_reach_the_function():
    """Catches a prior, noise, rate or width that is read from the wrong option."""
    data = load("digits")

    def build_one(model, **changes):
        recipe = preset_recipe("digits", model=model).changed(width="7-5", **changes)
        return families.build_model(recipe, data, key=jax.random.key(0))

    mean_field = build_one(
        "mean-field",
        prior="scale-mixture",
        weight_scale=1.5,
        narrow_scale=0.1,
        mixture=0.25,
        init_scale=0.03,
        weight_noise="plain",
        estimator="stl",
    )
    assert mean_field.prior == ScaleMixturePrior(0.25, wide_scale=1.5, narrow_scale=0.1)
    assert isinstance(mean_field.noise, Reparameterised)
    assert isinstance(mean_field.kl, StickTheLandingKL)
    for scale in jax.tree.leaves(mean_field.family.scale):
        np.testing.assert_allclose(scale, 0.03, rtol=1e-5)
    dropout = build_one("mc-dropout", dropout=0.4, input_dropout=0.2)
    assert (dropout.rate, dropout.input_rate) == (0.4, 0.2)
    assert build_one("ensemble", num_members=3).num_strata == 3
    network = build_one("deterministic", activation="elu").network.network
    assert [layer.weight.shape for layer in network.layers] == [
        (64, 7),
        (7, 5),
        (5, 10),
    ]
    assert network.activations[0] is ACTIVATIONS["elu"]


def test_draws_that_favour_a_member_are_refused():
    recipe = preset_recipe("digits", model="ensemble").changed(num_members=3)
    with pytest.raises(ValueError, match="give a multiple of 3"):
        prepare(recipe, load("digits"))


def test_weight_decay_spares_biases():
    """Optax's own rule on the matrices; Adam elsewhere."""
    params = {"w": jnp.ones((2, 2)), "b": jnp.ones(2), "scale": jnp.ones(())}
    zeros = jax.tree.map(jnp.zeros_like, params)
    options = options_module.TrainingOptions(weight_decay=0.1)
    rules: Any = _training._optimisers(options)
    assert rules["noise"] is optax.adam  # nodes have a prior
    optimiser = rules["weights"](lambda step: 0.5)
    updates: Any
    updates, _ = optimiser.update(zeros, optimiser.init(params), params)
    np.testing.assert_allclose(updates["w"], -0.5 * 0.1)
    np.testing.assert_allclose([*updates["b"], updates["scale"]], 0.0)


@pytest.mark.parametrize("optimiser", ["adam", "nesterov", "muon"])
def test_weight_decay_spares_standard_deviations(optimiser):
    """Catches (seen, of adam and nesterov) a decay of the numbers before the softplus,
    whose 0 is a standard deviation of 0.69; and means without one."""
    model = MeanField(MLP(2, 1, (3,), key=jax.random.key(0)), GaussianPrior(1.0))
    params = eqx.filter(model, eqx.is_inexact_array)
    zeros = jax.tree.map(jnp.zeros_like, params)
    options = options_module.TrainingOptions(weight_decay=0.1, optimiser=optimiser)
    rules: Any = _training._optimisers(options)
    rule = rules["weights"](lambda step: 0.5)
    updates: Any
    updates, _ = rule.update(zeros, rule.init(params), params)
    for leaf in jax.tree.leaves(updates.family.rho):
        np.testing.assert_array_equal(leaf, 0.0)
    for layer in updates.family.mean.layers:
        assert float(jnp.abs(layer.weight).min()) > 0


@pytest.mark.parametrize(("optimiser", "rate"), [("adam", 1e-3), ("muon", 4e-3)])
@pytest.mark.parametrize("preset", ["cpu", "paper"])
def test_another_optimiser_does_not_take_the_rates_of_sgd(optimiser, rate, preset):
    """Catches (seen) Adam at a rate of 0.05, its nodes at 0.2, from which it learns
    nothing."""
    own = preset_recipe("cifar10", preset, "implicit").training
    assert own.optimiser == "nesterov"
    assert own.learning_rate > 0.04
    other = preset_recipe("cifar10", preset, "implicit", optimiser=optimiser).training
    assert (other.optimiser, other.weight_decay) == (optimiser, 0)
    assert _training.learning_rates(other) == pytest.approx(
        {"weights": rate, "noise": 1e-3}
    )
    assert other.kl_warmup == own.kl_warmup


@pytest.mark.parametrize("model", ["deterministic", "ensemble", "mean-field", "sdebnn"])
def test_sgd_does_not_take_the_rates_of_adam(model):
    """Catches (seen) SGD at a thousandth, which learns next to nothing."""
    own = preset_recipe("digits", model=model, optimiser="nesterov").training
    assert (own.optimiser, own.learning_rate) == ("nesterov", 0.02)
    assert own.noise_learning_rate is None


def test_ivon_has_its_options():
    """Catches one that stays in the recipe."""
    own = {"init_hessian": 0.5, "hessian_decay": 0.99, "learning_rate": 0.2}
    options = options_module.TrainingOptions(optimiser="ivon", **own)
    rule: Any = _training._optimisers(options)
    assert {name: getattr(rule, name) for name in own} == own
    assert rule.hessian_rate(1000) == pytest.approx(0.01)


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
        with pytest.raises(ValueError, match="`width`"):
            sizes(wrong, "width")


def test_sequences_are_refused():
    """By a model of rows: in a sentence, not deep inside a network."""
    with pytest.raises(ValueError, match="two-points holds sequences"):
        prepare(preset_recipe("toy/two-points"))
