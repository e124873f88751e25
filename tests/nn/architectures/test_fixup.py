"""Fixup against what its authors prove of it."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from ornstein.nn import (
    FixupLayer,
    Linear,
    ResNet,
    WideResNet,
    fixup,
    he_normal,
    layers_of,
    num_nodes,
    num_parameters,
)
from ornstein.nn.architectures._residual import ResidualBlock


def small_resnet(depth, **kwargs):
    return ResNet(depth, 10, width=1 / 8, norm=None, key=jr.key(0), **kwargs)


def vector_network(num_blocks, layers_a_branch=2, *, initialise, size=40):
    """Residual, of linear layers: what Fixup does is the same, and compiles at once."""

    def build(key):
        keys = iter(jr.split(key, 2 + num_blocks * layers_a_branch))
        linear = lambda out=size: Linear(size, out, key=next(keys))
        stem, blocks = linear(), []
        for _ in range(num_blocks):
            branch = [linear()]
            for _ in range(layers_a_branch - 1):
                branch += [jax.nn.relu, linear()]
            blocks.append(ResidualBlock(tuple(branch), (), (jax.nn.relu,)))
        return (stem, jax.nn.relu, *blocks, linear(1))

    return eqx.filter_jit(lambda key: initialise(build(key), key=key))(jr.key(0))


@pytest.mark.parametrize("pre_activation", [False, True])
def test_every_branch_is_zero_at_first(pre_activation, getkey):
    build = lambda: small_resnet(8, initialise=fixup, pre_activation=pre_activation)
    network = eqx.filter_jit(build)()
    x = jr.normal(getkey(), (2, 4, 4, 3))
    h = jnp.abs(jr.normal(getkey(), (2, 4, 4, 2)))
    apply = lambda network, x, h: (network(x), network.blocks[0](h, None)[0])
    logits, same = eqx.filter_jit(apply)(network, x, h)
    np.testing.assert_array_equal(logits, 0.0)
    np.testing.assert_array_equal(same, h)


@pytest.mark.parametrize(("num_layers", "power"), [(2, -1 / 2), (3, -1 / 4)])
def test_weights_are_rescaled_by_the_number_of_branches(num_layers, power):
    """L^(-1/(2m-2)), with L = 9."""
    *_, block, _ = vector_network(9, num_layers, initialise=fixup)
    *scaled, last = (m.layer for m in block.branch if isinstance(m, FixupLayer))
    assert len(scaled) == num_layers - 1
    for layer in scaled:
        expected = 2 / layer.fan_in * 9 ** (2 * power)
        ratio = float(jnp.mean(jnp.square(layer.weight))) / expected
        assert abs(ratio - 1) < 4.5 * (2 / layer.weight.size) ** 0.5
    np.testing.assert_array_equal(last.weight, 0.0)


def test_scalars_are_where_the_paper_has_them():
    """Four and a multiplier a branch; one a projection, the stem and the classifier."""
    fixed = eqx.filter_eval_shape(lambda: small_resnet(20, initialise=fixup))
    plain = eqx.filter_eval_shape(lambda: small_resnet(20))
    num_biases = sum(a.bias.size for a in layers_of(plain)[:-1])
    expected = num_parameters(plain) - num_biases + 9 * 5 + 2 + 2
    assert num_parameters(fixed) == expected
    assert num_nodes(fixed) == num_nodes(plain)
    assert [a.bias is None for a in layers_of(fixed)] == [True] * 21 + [False]


def test_scalars_act_as_the_formula_says(getkey):
    layer = Linear(3, 2, use_bias=False, key=getkey())
    x = jr.normal(getkey(), (4, 3))
    numbers = {"shift": 0.5, "scale": -2.0, "offset": 3.0}
    fixed = FixupLayer(layer, **{k: jnp.array(v) for k, v in numbers.items()})
    expected = -2 * (np.asarray(x) + 0.5) @ np.asarray(layer.weight) + 3
    np.testing.assert_allclose(fixed(x), expected, rtol=1e-4, atol=1e-5)


def gradient_norm(network, x):
    """Of a sum of logits, with a classifier that is not zero."""
    head = lambda n: layers_of(n)[-1].weight
    network = eqx.tree_at(head, network, jnp.full((40, 1), 0.1))
    params, rest = eqx.partition(network, eqx.is_inexact_array)

    @jax.jit
    def loss(params):
        h = x
        for module in eqx.combine(params, rest):
            h = module(h, None)[0] if isinstance(module, ResidualBlock) else module(h)
        return jnp.mean(h)

    return float(optax.tree.norm(jax.grad(loss)(params)))


def test_gradients_do_not_grow_with_depth():
    """They do without Fixup: by about √2 a block."""
    x = jr.normal(jr.key(1), (16, 40))
    growth = {}
    for initialise in (fixup, he_normal):
        shallow, deep = (
            gradient_norm(vector_network(num_blocks, initialise=initialise), x)
            for num_blocks in (2, 18)
        )
        growth[initialise] = deep / shallow
    assert growth[fixup] < 2
    assert growth[he_normal] > 20


def test_refuses():
    build = functools.partial(eqx.filter_eval_shape, WideResNet, 10, 1, 10)
    with pytest.raises(ValueError, match="give `norm=None` too"):
        build(initialise=fixup, key=jr.key(0))
    with pytest.raises(ValueError, match="rescales residual branches, and `Linear`"):
        fixup(Linear(2, 2, key=jr.key(0)), key=jr.key(1))
    with pytest.raises(ValueError, match="two layers or more in a residual branch"):
        vector_network(2, 1, initialise=fixup)
