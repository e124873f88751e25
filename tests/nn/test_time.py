"""Time-dependent layers against the formulas of their docstrings, written literally."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.functions._layers import ScaledInputs
from ornstein.nn import (
    TIME_LAYERS,
    Blend,
    Concat,
    ConcatCoord,
    ConcatSquash,
    Conv2d,
    ConvBlock,
    ConvTranspose2d,
    Gated,
    Hyper,
    Ignore,
    Linear,
    NormedConvBlock,
    Squash,
    Swish,
    TimeMLP,
    fan_ins,
)

T = 0.7

LAYERS = {
    "linear": lambda key: Linear(3, 4, key=key),
    "conv": lambda key: Conv2d(3, 4, 3, key=key),
    "strided": lambda key: Conv2d(3, 4, 3, stride=2, key=key),
    "transposed": lambda key: ConvTranspose2d(3, 4, 3, key=key),
}


def randomised(module, seed=0):
    """New values for all parameters: what starts at zero must matter too."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: (
            jnp.asarray(rng.standard_normal(leaf.shape), leaf.dtype)
            if eqx.is_inexact_array(leaf)
            else leaf
        ),
        module,
    )


def inputs(name, lead=(2,)):
    shape = (*lead, 3) if name == "linear" else (*lead, 6, 4, 3)
    return jnp.asarray(np.random.default_rng(1).standard_normal(shape), jnp.float32)


def channels(x, *maps):
    """`x` with further channels, literally concatenated."""
    maps = [jnp.broadcast_to(m, x.shape[:-1])[..., None] for m in maps]
    return jnp.concatenate([x, *maps], -1)


def widened(layer, weight):
    """The layer that takes the further channels."""
    weight = jnp.concatenate([layer.weight, weight], -2)
    return eqx.tree_at(lambda layer: layer.weight, layer, weight)


def sigmoid(x):
    return 1 / (1 + jnp.exp(-x))


def concat(m, x):
    time = jnp.full((1,) * (x.ndim - 1), T, x.dtype)
    return widened(m.layer, m.time_weight)(channels(x, time))


def concat_coord(m, x):
    rows = jnp.linspace(-1, 1, 6, dtype=x.dtype).reshape(1, 6, 1)
    columns = jnp.linspace(-1, 1, 4, dtype=x.dtype).reshape(1, 1, 4)
    time = jnp.full((1, 1, 1), T, x.dtype)
    return widened(m.layer, m.coord_weight)(channels(x, time, rows, columns))


def expanded(v, y):
    return v.reshape((1,) * (y.ndim - 1) + (-1,))


def squash(m, x):
    y = m.layer(x)
    return y * sigmoid(expanded(m.gate_weight * T + m.gate_bias, y))


def concat_squash(m, x):
    return squash(m, x) + expanded(m.time_bias * T, squash(m, x))


def hyper(m, x):
    hidden = jnp.tanh(m.hidden_weight * T + m.hidden_bias)
    layer = m.layer
    for k in range(hidden.size):
        head = jax.tree.map(lambda leaf, k=k: hidden[k] * leaf[k], m.heads)
        layer = jax.tree.map(jnp.add, layer, head)
    return layer(x)


FAMILY = {
    "blend": (
        Blend.from_layer,
        lambda m, x: (1 - T) * m.layer0(x) + T * m.layer1(x),
    ),
    "concat": (Concat, concat),
    "concat_coord": (ConcatCoord, concat_coord),
    "concat_squash": (ConcatSquash, concat_squash),
    "gated": (Gated.from_layer, lambda m, x: m.layer_f(x) * sigmoid(m.layer_g(x))),
    "hyper": (functools.partial(Hyper, width_size=2), hyper),
    "ignore": (Ignore, lambda m, x: m.layer(x)),
    "squash": (Squash, squash),
}


MAPS = ("concat", "concat_coord")  # whose new channels depend on stride and border


def test_the_table_names_the_family():
    assert set(TIME_LAYERS) == set(FAMILY)


CASES = [
    *[(name, layer) for name in FAMILY for layer in ("linear", "conv")],
    *[(name, layer) for name in MAPS for layer in ("strided", "transposed")],
]
CASES.remove(("concat_coord", "linear"))


@pytest.mark.parametrize(("name", "layer"), CASES)
def test_formula(name, layer, getkey):
    """Catches a gate, a bias map or a border that differs from the literal formula."""
    make, formula = FAMILY[name]
    module = randomised(make(LAYERS[layer](getkey()), key=getkey()))
    x = inputs(layer)

    @eqx.filter_jit
    def values_and_gradients(fn, x):
        loss = eqx.filter_grad(lambda m: jnp.sum(jnp.sin(fn(m, x))))
        return fn(module, x), loss(module)

    got = values_and_gradients(lambda m, x: m(T, x), x)
    expected = values_and_gradients(formula, x)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert jnp.any(a != 0)  # every parameter is used
        bound = 1e-4 * float(jnp.max(jnp.abs(b)))
        np.testing.assert_allclose(a, b, rtol=0, atol=bound)
    # Time as an array, no leading axis and two of them.
    single = eqx.filter_jit(module)(jnp.float32(T), x[0])
    many = eqx.filter_jit(module)(T, x[None])
    np.testing.assert_allclose(single, expected[0][0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(many[0], expected[0], rtol=1e-3, atol=1e-4)


def test_initial_scales():
    """The new channel's kernel is distributed as the old ones; Hyper starts near θ₀."""
    layer = Linear(50, 4000, key=jr.key(0))
    weight = Concat(layer, key=jr.key(1)).time_weight
    assert abs(50 * float(jnp.var(weight)) - 1) < 4.5 * (2 / weight.size) ** 0.5
    x = jnp.ones((1, 50))
    change = Hyper(layer, key=jr.key(2))(1.0, x) - layer(x)
    assert 0 < float(jnp.std(change)) < 0.2 * float(jnp.std(layer(x)))


def test_fan_ins_count_the_concatenated_channels(getkey):
    conv = ConvTranspose2d(8, 4, 3, key=getkey())
    assert set(jax.tree.leaves(fan_ins(Concat(conv, key=getkey())))) == {20}  # 9·9/4
    coord = ConcatCoord(Conv2d(2, 4, 3, key=getkey()), key=getkey())
    assert set(jax.tree.leaves(fan_ins(coord))) == {45}
    squash = Squash(Linear(5, 4, key=getkey()), key=getkey())
    assert jax.tree.leaves(fan_ins(squash)) == [5, 5, 1, 1]


def test_blend_of_noisy_layers_is_a_blend_of_them(getkey):
    """Catches (seen) masks of inputs that are blended, too, as the weights are."""
    blend = randomised(Blend.from_layer(Linear(3, 4, key=getkey()), key=getkey()))
    scales = (jnp.array([2.0, 0.5, 1.0]), jnp.array([0.1, 3.0, 1.0]))
    layers = [
        ScaledInputs(layer, scale)
        for layer, scale in zip((blend.layer0, blend.layer1), scales, strict=True)
    ]
    noisy = eqx.tree_at(lambda b: (b.layer0, b.layer1), blend, layers)
    x = inputs("linear")
    first, second = (x * scale[None] for scale in scales)
    expected = 0.7 * blend.layer0(first) + 0.3 * blend.layer1(second)
    np.testing.assert_allclose(noisy(0.3, x), expected, rtol=1e-4, atol=1e-5)


def test_bad_pairs(getkey):
    first, second = Linear(3, 4, key=getkey()), Linear(3, 5, key=getkey())
    for pair in (Blend, Gated):
        with pytest.raises(ValueError, match="Both layers must have the same shape"):
            pair(first, second)
    with pytest.raises(TypeError, match=r"needs a convolution.*: use `Concat`"):
        ConcatCoord(first, key=getkey())
    with pytest.raises(ValueError, match="`width_size` must be at least 1, got 0"):
        Hyper(first, width_size=0, key=getkey())


@pytest.mark.parametrize("time", [Concat, Blend.from_layer])
def test_time_mlp_is_its_formula(time, getkey):
    net = randomised(TimeMLP(3, [5, 4], activation=jnp.sin, time=time, key=getkey()))
    first, second, last = net.layers
    h = inputs("linear")
    expected = last(T, jnp.sin(second(T, jnp.sin(first(T, h)))))
    np.testing.assert_allclose(net(T, h), expected, rtol=1e-4, atol=1e-4)
    still = TimeMLP(3, [5], time=time, output_scale=0.0, key=getkey())
    assert not jnp.any(still(T, h))


def test_conv_block_is_its_formula(getkey):
    block = randomised(ConvBlock(3, 4, activation=Swish(), key=getkey()))
    h = inputs("conv")

    @jax.jit
    def formula(x):
        for layer, activation in zip(block.layers[:3], block.activations, strict=True):
            x = activation(concat(layer, x))
        return concat(block.layers[3], x)

    expected = formula(h)
    assert expected.shape == h.shape
    scale = float(jnp.max(jnp.abs(expected)))
    got = eqx.filter_jit(block)(T, h)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * scale)
    still = ConvBlock(3, 4, output_scale=0.0, key=getkey())
    assert not jnp.any(eqx.filter_jit(still)(T, h))
    with pytest.raises(ValueError, match="must be even, got 5 by 4: pad the images"):
        block(T, jnp.ones((1, 5, 4, 3)))


def test_normed_conv_block_is_its_formula(getkey):
    """Of an odd size too. Catches (seen) a norm after the nonlinearity left out."""
    block = NormedConvBlock(3, 4, activation=jnp.sin, key=getkey())
    shifted = lambda norm, by: eqx.tree_at(lambda n: n.offset, norm, norm.offset + by)
    norms = (shifted(block.norms[0], 0.3), shifted(block.norms[1], -0.2))
    block = eqx.tree_at(lambda b: b.norms, block, norms)

    def normed(x, offset):
        square = np.mean(np.square(x), (-3, -2), keepdims=True)
        return x / np.sqrt(square + 1e-6 + 1e-4) + offset

    h = np.random.default_rng(1).standard_normal((2, 5, 4, 3)).astype(np.float32)
    first, second = block.layers
    inner = np.sin(first(T, jnp.asarray(normed(h, 0.3))))
    expected = second(T, jnp.asarray(normed(inner, -0.2)))
    np.testing.assert_allclose(block(T, jnp.asarray(h)), expected, atol=2e-5)
