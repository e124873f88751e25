"""Networks by name, and the options of implicit ones."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from ornstein import nn
from ornstein.data import Data, Split
from ornstein.functions import ImplicitBNN, MonteCarloKL
from ornstein.nn import num_parameters
from ornstein.recipe import (
    build_network,
    check_recipe,
    first_rows,
    prepare,
    preset_recipe,
)
from ornstein.recipe._training import fit_options
from ornstein.recipe.models import build_model
from ornstein.train import Constant, Linear


def images(side: int, channels: int = 3, num_rows: int = 40) -> Data:
    x = np.random.default_rng(0).normal(size=(num_rows, side, side, channels))
    y = np.arange(num_rows, dtype=np.int32) % 10
    split = Split(x.astype(np.float32), y)
    names = tuple("abcdefghij")
    return Data("photos", "classification", split, split, None, 10, names)


@pytest.mark.parametrize(
    ("name", "options", "direct"),
    [
        ("mlp", {"width": "7"}, lambda k: nn.MLP(3072, 10, (7,), key=k)),
        (
            "vgg16",
            {"network_width": 0.05, "norm": "none"},
            lambda k: nn.VGG16(10, width=0.05, norm=None, key=k),
        ),
        ("resnet-8", {}, lambda k: nn.ResNet(8, 10, key=k)),
        (
            "resnet-8",
            {"network_width": 0.5, "norm": "frn"},
            lambda k: nn.ResNet(
                8,
                10,
                width=0.5,
                norm=nn.FilterResponseNorm,
                activation=nn.ThresholdedLinear,
                key=k,
            ),
        ),
        (
            "wide-resnet-10-2",
            {"norm": "none"},
            lambda k: nn.WideResNet(10, 2, 10, norm=None, initialise=nn.fixup, key=k),
        ),
    ],
)
def test_names_build_their_networks(name: str, options: dict, direct):
    """Parameters equal those of a direct call. Catches an option that is not read."""
    data, key = images(32), jax.random.key(1)
    recipe = preset_recipe("cifar10", model="deterministic", network=name)
    network = build_network(recipe.changed(**options), data, key=key)
    if name == "mlp":
        network = network.network  # type: ignore[attr-defined]
    arrays = [eqx.filter(n, eqx.is_array) for n in (network, direct(key))]
    for ours, theirs in zip(*map(jax.tree.leaves, arrays), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_lenet_and_alexnet_have_their_sizes():
    """41,806 parameters of LeNet. Catches classes or channels of other data."""
    recipe = preset_recipe("mnist", model="implicit")
    assert recipe.network.network == "lenet"
    lenet = build_network(recipe, images(28, 1), key=jax.random.key(0))
    assert num_parameters(lenet) == 41_806
    recipe = preset_recipe("cifar10", model="implicit", network="alexnet")
    recipe = recipe.changed(network_width=0.02)
    alexnet: Any = build_network(recipe, images(64), key=jax.random.key(0))
    assert alexnet.features[0].weight.shape[-2] == 3
    assert alexnet.head[-1].bias.shape == (10,)


def test_options_reach_the_mixture():
    """Catches an option that is read as another, or not at all."""
    recipe = preset_recipe("cifar10", model="implicit", network="mlp").changed(
        num_components=5,
        node_prior_scale=0.7,
        init_spread=0.0,
        bias_noise=True,
        mixture_kl="monte-carlo",
        width="6",
    )
    data = images(4)
    model: Any = build_model(recipe, data, key=jax.random.key(0))
    assert isinstance(model, ImplicitBNN)
    assert (model.num_strata, model.prior_scale) == (5, 0.7)
    assert isinstance(model.kl, MonteCarloKL)
    np.testing.assert_array_equal(model.mixture.mean, 1.0)
    assert model.num_nodes == 48 + 6 + 6 + 10  # inputs of two layers, their biases


def test_training_options_of_table_2():
    """Rates, decay and schedules of both labels. Catches nodes that are annealed."""
    recipe = preset_recipe("cifar100", "paper", "implicit")
    options = fit_options(recipe, images(32))
    assert options["learning_rate"] == {"weights": 0.05, "noise": 1.6}
    assert options["schedule"]["weights"] == Linear(0.5, 0.9, 0.01)
    assert options["schedule"]["noise"] == Constant()
    assert options["num_draws"] == 2
    assert options["kl"].warmup == pytest.approx(2 / 3)
    params = np.ones(3, np.float32)
    for label, expected in {"weights": -3e-4 * 1.9, "noise": 0.0}.items():
        transform = options["optimiser"][label](1.0)
        step: Any = transform.update(0 * params, transform.init(params), params)[0]
        np.testing.assert_allclose(step, expected, rtol=1e-5)
    wide = preset_recipe("cifar10", "paper", "implicit", "wide-resnet-28-10")
    assert wide.training.noise_learning_rate == 2.4
    assert wide.implicit.node_prior_scale == 0.1
    assert wide.implicit.num_components == 16
    twin = preset_recipe("cifar10", "paper", "deterministic", "wide-resnet-28-10")
    assert (twin.training.learning_rate, twin.training.kl_warmup) == (0.1, 0.0)
    check_recipe(twin)


def test_presets_follow_the_network():
    """Catches widths of an MLP left beside another network, where they are refused."""
    for model in ("mean-field", "implicit", "ensemble", "deterministic", "mc-dropout"):
        for network in ("mlp", "lenet", "vgg16", "resnet-20"):
            check_recipe(preset_recipe("mnist", model=model, network=network))
    assert (
        preset_recipe("mnist", model="implicit", network="mlp").model.width != "16-16"
    )


REFUSED = {
    "unknown": ("digits", "lenet5", {}, "is not one of mlp, hierarchical, lenet"),
    "depth": ("digits", "wide-resnet-27-1", {}, r"must be 6n \+ 4 .* got 27"),
    "depth of a resnet": ("digits", "resnet-21", {}, r"6n \+ 2 .* got 21"),
    "no images": ("toy/cos", "lenet", {}, "lenet takes images, and the rows of toy"),
    "wrong size": ("digits", "lenet", {}, "takes images of 28 by 28"),
    "components": ("digits", None, {"batch_size": 7}, "7 rows cannot be dealt to 8"),
    "parts": ("digits", None, {"accumulate": 32}, "4 rows cannot be dealt to 8"),
    "no components": ("digits", None, {"num_components": 0}, "at least 1, got 0"),
    "scale": ("digits", None, {"node_prior_scale": 0.0}, "must be positive, got 0"),
    "rate": ("digits", None, {"noise_learning_rate": -1.0}, "`noise_learning_rate`"),
    "draws": ("digits", None, {"test_draws": 12}, "components.*multiple of 8"),
    "width": ("digits", "resnet-8", {"network_width": 0.0}, "`network_width` must be"),
    "norm": ("digits", None, {"norm": "frn"}, "`norm` does nothing for `network` mlp"),
    "mlp's": ("digits", "resnet-8", {"width": "9"}, "`width` does nothing for `netw"),
    "pretrained": (
        "digits",
        "resnet-8",
        {"pretrained": "x.safetensors"},
        "`pretrained` does nothing for `network` resnet-8",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str):
    name, network, changes, match = REFUSED[case]
    with pytest.raises(ValueError, match=match):
        prepare(preset_recipe(name, "cpu", "implicit", network).changed(**changes))


def test_members_cannot_share_batch_statistics():
    recipe = preset_recipe("cifar10", model="ensemble", network="resnet-8")
    check_recipe(recipe)  # its preset says filter response normalisation
    with pytest.raises(ValueError, match="give `norm` frn or `norm` none"):
        check_recipe(recipe.changed(norm="batch"))


def test_first_rows_are_standardised_by_themselves():
    """Catches a scaling of rows that were left out, and rows in another order."""
    recipe = preset_recipe("digits", model="deterministic")
    whole = prepare(recipe).data
    part = prepare(recipe.changed(train_rows=200, test_rows=30)).data
    assert (len(part.train), len(part.test)) == (200, 30)
    np.testing.assert_allclose(part.train.x.mean(), 0, atol=1e-5)
    np.testing.assert_allclose(part.train.x.std(), 1, rtol=1e-5)
    np.testing.assert_array_equal(part.train.y, whole.train.y[:200])
    for split in ("train", "test"):
        ours, all_of_them = getattr(part, split), getattr(whole, split)
        np.testing.assert_allclose(
            part.x_scaling.undo(ours.x),
            whole.x_scaling.undo(all_of_them.x[: len(ours)]),
            atol=1e-4,
        )


def test_first_rows_refuses():
    data = images(4)
    with pytest.raises(ValueError, match="`train_rows` 41 is not among the 40"):
        first_rows(data, 41, None)
    with pytest.raises(ValueError, match="have no 'f'.*give more `train_rows`"):
        first_rows(data, 5, None)
