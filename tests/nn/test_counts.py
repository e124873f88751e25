"""How many nodes and parameters the field's networks have, and what they refuse."""

import functools

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pytest

from ornstein.nn import (
    IMAGENET_HEAD,
    VGG16,
    AlexNet,
    LeNet,
    ResNet,
    WideResNet,
    layers_of,
    num_nodes,
    num_parameters,
)

KEY = jr.key(0)


# Table 1 of Trinh et al. (2020): weights as printed, rounded; nodes exactly.
@pytest.mark.parametrize(
    ("build", "printed", "unit", "nodes"),
    [
        (lambda: LeNet(key=KEY), 42, 1e3, 207),  # 23 nodes are printed: see below
        (lambda: AlexNet(key=KEY), 61, 1e6, 18_307),
        (lambda: VGG16(10, key=KEY), 15, 1e6, 5_251),
        (
            lambda: VGG16(1000, head=IMAGENET_HEAD, norm=None, key=KEY),
            138,
            1e6,
            36_995,
        ),
        (lambda: ResNet(50, 1000, key=KEY), 26, 1e6, 24_579),
        (lambda: WideResNet(28, 10, 10, key=KEY), 36, 1e6, 9_475),
    ],
)
def test_counts_are_table_1(build, printed, unit, nodes):
    """Nothing is allocated: these hold 300 M numbers together."""
    network = eqx.filter_eval_shape(build)
    assert round(num_parameters(network) / unit) == printed
    assert num_nodes(network) == nodes


def test_nodes_of_lenet_in_table_1_are_the_convolutions():
    """The 23 printed (P10): the definition in the caption counts 120 + 64 more."""
    lenet = eqx.filter_eval_shape(lambda: LeNet(key=KEY))
    assert num_parameters(lenet) == 41_806
    assert num_nodes(lenet.features) == 23
    assert num_nodes(lenet.head) == 120 + 64


# As PyTorch counts `torchvision.models`.
@pytest.mark.parametrize(
    ("build", "number"),
    [
        (lambda: AlexNet(key=KEY), 61_100_840),
        (
            lambda: VGG16(1000, head=IMAGENET_HEAD, norm=None, key=KEY),
            138_357_544,
        ),
        (lambda: ResNet(18, 1000, key=KEY), 11_689_512),
        (lambda: ResNet(34, 1000, key=KEY), 21_797_672),
        (lambda: ResNet(50, 1000, key=KEY), 25_557_032),
    ],
)
def test_parameters_of_torchvision(build, number):
    assert num_parameters(eqx.filter_eval_shape(build)) == number


@pytest.mark.parametrize(("width", "factor"), [(2, 4), (4, 16), (8, 64)])
def test_width_of_lenet(width, factor):
    """Figure 4's four sizes: 41,806, 165k, 657k, 2.6 M."""
    network = eqx.filter_eval_shape(lambda: LeNet(width=width, key=KEY))
    assert num_parameters(network) == pytest.approx(factor * 41_806, rel=0.03)


def test_no_bias_before_a_normalisation():
    build = functools.partial(ResNet, 8, 10, width=1 / 8, key=KEY)
    with_norm = eqx.filter_eval_shape(build)
    assert [a.bias is None for a in layers_of(with_norm)] == [True] * 9 + [False]
    without = eqx.filter_eval_shape(lambda: build(norm=None))
    assert all(a.bias is not None for a in layers_of(without))


@pytest.mark.parametrize(
    ("build", "shape", "match"),
    [
        (lambda: LeNet(key=KEY), (32, 32, 1), "takes images of 28 by 28"),
        (lambda: VGG16(3, width=1 / 64, key=KEY), (28, 28, 3), "multiples of 32"),
        (lambda: AlexNet(3, width=1 / 64, key=KEY), (62, 80, 3), "at least 63 by 63"),
    ],
)
def test_refuses_images(build, shape, match):
    with pytest.raises(ValueError, match=match):
        eqx.filter_eval_shape(lambda: build()(jnp.zeros((2, *shape))))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: WideResNet(28, 0, 10, key=KEY), "`widen` must be at least 1"),
        (lambda: WideResNet(27, 10, 10, key=KEY), r"6n \+ 4 .*got 27"),
        (lambda: ResNet(21, 10, key=KEY), r"6n \+ 2 .*got 21"),
        (lambda: ResNet(18, 10, pre_activation=True, key=KEY), "depths 6n . 2"),
        (lambda: LeNet(width=0, key=KEY), "`width` must be positive, got 0"),
    ],
)
def test_refuses_shapes_of_networks(build, match):
    with pytest.raises(ValueError, match=match):
        build()
