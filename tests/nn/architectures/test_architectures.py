"""The field's networks against slow obvious twins of what they compute."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax import lax

from ornstein.nn import (
    VGG16,
    AlexNet,
    BatchNorm,
    ChannelsFirst,
    FilterResponseNorm,
    LeNet,
    Linear,
    ResNet,
    ThresholdedLinear,
    VGGHead,
    WideResNet,
    he_normal,
    layers_of,
)

KEY = jr.key(0)


def nodes_of(tree, kind):
    is_kind = lambda node: isinstance(node, kind)
    return list(filter(is_kind, jax.tree.leaves(tree, is_leaf=is_kind)))


def convolve(layer, x, stride, pad):
    y = lax.conv_general_dilated(
        x,
        layer.weight,
        (stride, stride),
        ((pad, pad), (pad, pad)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y if layer.bias is None else y + layer.bias.reshape(1, 1, 1, -1)


def normalise(norm, x):
    mean = x.mean((0, 1, 2), keepdims=True)
    variance = x.var((0, 1, 2), keepdims=True)
    row = lambda v: v.reshape(1, 1, 1, -1)
    return row(norm.scale) * (x - mean) / jnp.sqrt(variance + 1e-5) + row(norm.offset)


def maxima(x, window, stride, pad):
    pads = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    shape, strides = (1, window, window, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, shape, strides, pads)


def twin_of_resnet(layers, norms, x, *, is_imagenet, kinds):
    """Post-activation: `kinds` has a stride and whether it projects, by block.

    Layers and normalisations come one after another in the order in which PyTorch's
    modules list theirs: branch first, then the projection.
    """
    layer, norm = iter(layers), iter(norms)

    def conv(x, stride, pad):
        return normalise(next(norm), convolve(next(layer), x, stride, pad))

    x = jax.nn.relu(conv(x, 2, 3) if is_imagenet else conv(x, 1, 1))
    if is_imagenet:
        x = maxima(x, 3, 2, 1)
    for stride, projects, is_bottleneck in kinds:
        if is_bottleneck:
            y = jax.nn.relu(conv(x, 1, 0))
            y = jax.nn.relu(conv(y, stride, 1))
            y = conv(y, 1, 0)
        else:
            y = jax.nn.relu(conv(x, stride, 1))
            y = conv(y, 1, 1)
        x = jax.nn.relu((conv(x, stride, 0) if projects else x) + y)
    head = next(layer)
    return x.mean((1, 2)) @ head.weight + head.bias.reshape(1, -1)


def twin_of_wide_resnet(layers, norms, x, *, kinds):
    layer, norm = iter(layers), iter(norms)
    conv = lambda x, stride, pad: convolve(next(layer), x, stride, pad)
    x = conv(x, 1, 1)
    for stride, projects in kinds:
        h = jax.nn.relu(normalise(next(norm), x))
        y = conv(h, stride, 1)
        y = conv(jax.nn.relu(normalise(next(norm), y)), 1, 1)
        x = (conv(h, stride, 0) if projects else x) + y
    x = jax.nn.relu(normalise(next(norm), x))
    head = next(layer)
    return x.mean((1, 2)) @ head.weight + head.bias.reshape(1, -1)


@eqx.filter_jit
def twin(network, x, **kwargs):
    of = twin_of_wide_resnet if isinstance(network, WideResNet) else twin_of_resnet
    return of(layers_of(network), nodes_of(network, BatchNorm), x, **kwargs)


def made(build, key):
    """In one compilation, and shaken: biases and offsets of 0 would not be missed."""
    return eqx.filter_jit(lambda key: shaken(build(key=key), jr.fold_in(key, 1)))(key)


def shaken(network, key):
    keys = itertools.count()
    shake = lambda a: a + 0.3 * jr.normal(jr.fold_in(key, next(keys)), a.shape)
    norms = lambda n: [m for b in nodes_of(n, BatchNorm) for m in (b.scale, b.offset)]
    biases = lambda n: [a.bias for a in layers_of(n) if a.bias is not None]
    where = lambda n: norms(n) + biases(n)
    return eqx.tree_at(where, network, [shake(a) for a in where(network)])


@eqx.filter_jit
def call(network, x, state):
    return network(x, state)


BASIC, BOTTLENECK = False, True
CIFAR_BLOCKS = [(1, False, BASIC), (2, True, BASIC), (2, True, BASIC)]
IMAGENET_BLOCKS = [
    *([(1, False, BASIC)] * 2),
    *([(2, True, BASIC), (1, False, BASIC)] * 3),
]


@pytest.mark.parametrize(
    "is_imagenet", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_resnet_is_its_twin(is_imagenet, getkey):
    """Catches a stride or pad out of place, an activation too many, wrong order."""
    depth, width, kinds = (
        (18, 1 / 16, IMAGENET_BLOCKS) if is_imagenet else (8, 1 / 4, CIFAR_BLOCKS)
    )
    network = made(functools.partial(ResNet, depth, 5, width=width), getkey())
    x = jr.normal(getkey(), (8, 18, 16, 3))
    y, _ = call(network, x, eqx.nn.State(network))
    expected = twin(network, x, is_imagenet=is_imagenet, kinds=kinds)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_bottleneck_is_its_twin(getkey):
    """The first four blocks of a ResNet-50: projections without and with a stride."""

    def build(key):
        network = ResNet(50, 5, width=1 / 16, key=key)
        new = (network.blocks[:4], Linear(32, 5, key=key))
        return eqx.tree_at(lambda n: (n.blocks, n.classifier), network, new)

    network = made(build, getkey())
    kinds = [(1, True, True), (1, False, True), (1, False, True), (2, True, True)]
    x = jr.normal(getkey(), (8, 32, 32, 3))
    y, _ = call(network, x, eqx.nn.State(network))
    expected = twin(network, x, is_imagenet=True, kinds=kinds)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-3)


def test_wide_resnet_is_its_twin(getkey):
    """The projection starts from the activated input, the identity does not."""
    network = made(functools.partial(WideResNet, 10, 1, 5), getkey())
    x = jr.normal(getkey(), (4, 16, 16, 3))
    kinds = [(1, False), (2, True), (2, True)]
    y, _ = call(network, x, eqx.nn.State(network))
    np.testing.assert_allclose(y, twin(network, x, kinds=kinds), rtol=1e-3, atol=1e-3)


def test_wide_resnet_of_width_1_is_the_pre_activated_resnet():
    """Their names differ by the two layers of depth that WRN counts."""
    wide = made(functools.partial(WideResNet, 10, 1, 10), KEY)
    plain = made(functools.partial(ResNet, 8, 10, pre_activation=True), KEY)
    for a, b in zip(layers_of(wide), layers_of(plain), strict=True):
        np.testing.assert_array_equal(a.weight, b.weight)
    assert len(nodes_of(wide, BatchNorm)) == len(nodes_of(plain, BatchNorm)) == 7


def plain_vgg(network, x, num_pixels):
    """Written out, of the original's thirteen convolutions and three linear layers."""
    layers = iter(layers_of(network))
    for num_convs in (2, 2, 3, 3, 3):
        for _ in range(num_convs):
            x = jax.nn.relu(convolve(next(layers), x, 1, 1))
        x = maxima(x, 2, 2, 0)
    assert x.shape[1:3] == (num_pixels, num_pixels)
    x = x.reshape(x.shape[0], -1)
    for i in range(3):
        layer = next(layers)
        x = x @ layer.weight + layer.bias.reshape(1, -1)
        x = jax.nn.relu(x) if i < 2 else x
    return x


def test_vgg_is_its_twin(getkey):
    """On four last pixels, whose order the head must keep."""
    side, num_pixels = 64, 2
    head = VGGHead(num_pixels, (64, 32))
    build = functools.partial(VGG16, 5, width=1 / 16, head=head, norm=None)
    network = made(build, getkey())
    x = jr.normal(getkey(), (2, side, side, 3))
    expected = eqx.filter_jit(plain_vgg)(network, x, num_pixels)
    actual = eqx.filter_jit(network)(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


@eqx.filter_jit
def plain_lenet(network, x):
    layers = iter(layers_of(network))
    x = maxima(jax.nn.relu(convolve(next(layers), x, 1, 0)), 2, 2, 0)
    x = maxima(jax.nn.relu(convolve(next(layers), x, 1, 0)), 2, 2, 0)
    x = jax.nn.relu(convolve(next(layers), x, 1, 0)).reshape(x.shape[0], -1)
    hidden, last = layers
    x = jax.nn.relu(x @ hidden.weight + hidden.bias.reshape(1, -1))
    return x @ last.weight + last.bias.reshape(1, -1)


def test_lenet_is_its_twin(getkey):
    """Also on two leading axes, and on none."""
    network = made(LeNet, getkey())
    x = jr.normal(getkey(), (4, 28, 28, 1))
    expected = plain_lenet(network, x)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)

    @eqx.filter_jit
    def all_ways(network, x):
        return network(x), network(x.reshape(2, 2, 28, 28, 1)), network(x[0])

    many, by_two, one = all_ways(network, x)
    close(many, expected)
    close(by_two, expected.reshape(2, 2, 10))
    close(one, expected[0])


@eqx.filter_jit
def plain_alexnet(network, x):
    layers = iter(layers_of(network))
    relu = jax.nn.relu
    x = maxima(relu(convolve(next(layers), x, 4, 2)), 3, 2, 0)
    x = maxima(relu(convolve(next(layers), x, 1, 2)), 3, 2, 0)
    for _ in range(3):
        x = relu(convolve(next(layers), x, 1, 1))
    x = maxima(x, 3, 2, 0)
    assert x.shape[1:3] == (6, 6)
    x = x.reshape(x.shape[0], -1)
    for i, layer in enumerate(layers):
        x = x @ layer.weight + layer.bias.reshape(1, -1)
        x = relu(x) if i < 2 else x
    return x


@pytest.mark.slow
def test_alexnet_is_its_twin(getkey):
    network = made(functools.partial(AlexNet, 5, width=1 / 16), getkey())
    x = jr.normal(getkey(), (1, 224, 224, 3))
    expected = plain_alexnet(network, x)
    actual = eqx.filter_jit(network)(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


def test_state_is_threaded_through(getkey):
    """Every normalisation moves its own statistics; inference leaves all of them."""
    network = made(functools.partial(ResNet, 8, 5, width=1 / 4), getkey())
    norms = nodes_of(network, BatchNorm)
    assert len(norms) == 9
    x = jr.normal(getkey(), (8, 18, 16, 3))
    _, state = call(network, x, eqx.nn.State(network))
    means = [np.asarray(state.get(norm.index)[0]) for norm in norms]
    assert all(np.any(mean != 0) for mean in means)
    first = convolve(layers_of(network)[0], x, 1, 1)
    expected = 0.1 * first.mean((0, 1, 2))
    np.testing.assert_allclose(means[0], expected, rtol=1e-3, atol=1e-5)
    _, after = call(eqx.nn.inference_mode(network), x, state)
    for mean, norm in zip(means, norms, strict=True):
        np.testing.assert_array_equal(after.get(norm.index)[0], mean)
    with pytest.raises(ValueError, match="got no state"):
        network(x)


def test_other_normalisations_and_activations(getkey):
    """A class gets its channels, here of every place; one image is independent."""
    choices = dict(norm=FilterResponseNorm, activation=ThresholdedLinear)
    network = made(functools.partial(WideResNet, 10, 1, 5, **choices), getkey())
    sizes = [n.scale.size for n in nodes_of(network, FilterResponseNorm)]
    assert sizes == [16, 16, 16, 32, 32, 64, 64]
    units = [u.threshold.size for u in nodes_of(network, ThresholdedLinear)]
    assert units == sizes
    x = jr.normal(getkey(), (2, 16, 16, 3))
    both, one = eqx.filter_jit(lambda net, x: (net(x), net(x[0])))(network, x)
    np.testing.assert_allclose(both[0], one, rtol=1e-3, atol=1e-4)


def test_he_normal_has_variance_2_over_fan_in():
    """Ours and Equinox's; what is no layer's weight stays."""
    keys = jr.split(jr.key(1), 4)
    network = (
        Linear(300, 400, key=keys[0]),
        ChannelsFirst(eqx.nn.Conv2d(20, 60, 3, groups=2, key=keys[1])),
        eqx.nn.Linear(300, 400, key=keys[2]),
        BatchNorm(5),
    )
    new = eqx.filter_jit(he_normal)(network, key=keys[3])
    for layer, fan_in in zip(layers_of(new), (300, 90, 300), strict=True):
        ratio = float(jnp.var(layer.weight)) * fan_in / 2
        assert abs(ratio - 1) < 4.5 * (2 / layer.weight.size) ** 0.5
    np.testing.assert_array_equal(layers_of(new)[2].bias, layers_of(network)[2].bias)
    np.testing.assert_array_equal(new[3].scale, network[3].scale)
