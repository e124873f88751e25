"""Plain layers, shapes, activations and adapters against NumPy and Equinox."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.nn import (
    ACTIVATIONS,
    MLP,
    Augment,
    ChannelsFirst,
    Conv2d,
    ConvTranspose2d,
    Linear,
    PerExample,
    Swish,
    activation_from_name,
    average_pool,
    depth_to_space,
    fan_ins,
    max_pool,
    num_parameters,
    scale_parameters,
    space_to_depth,
    tanh,
)


def images(*shape):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)


def with_bias(layer):
    """Biases start at zero, where a forgotten one does not show."""
    bias = jnp.arange(1.0, 1 + layer.out_size)
    return eqx.tree_at(lambda layer: layer.bias, layer, bias)


def test_linear_on_any_leading_axes(getkey):
    layer = with_bias(Linear(3, 4, key=getkey()))
    x = images(2, 5, 3)
    expected = np.einsum("abi,io->abo", x, layer.weight) + np.asarray(layer.bias)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer(x[0, 0]), expected[0, 0], rtol=1e-5, atol=1e-6)
    assert Linear(3, 4, use_bias=False, key=getkey()).bias is None


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_are_equinox_ones(transposed, getkey):
    """Equinox's transposed convolution needs its padding said, and a flipped kernel."""
    x = images(2, 6, 4, 3)
    if transposed:
        ours = with_bias(ConvTranspose2d(3, 5, 3, key=getkey()))
        theirs = eqx.nn.ConvTranspose2d(
            3, 5, 3, stride=2, padding=((0, 1), (0, 1)), key=getkey()
        )
        weight = jnp.flip(ours.weight, (0, 1)).transpose(3, 2, 0, 1)
    else:
        ours = with_bias(Conv2d(3, 5, 3, key=getkey()))
        theirs = eqx.nn.Conv2d(3, 5, 3, padding=1, key=getkey())
        weight = ours.weight.transpose(3, 2, 0, 1)
    assert ours.bias is not None
    parameters = (weight, ours.bias.reshape(-1, 1, 1))
    theirs = eqx.tree_at(lambda layer: (layer.weight, layer.bias), theirs, parameters)
    expected = ChannelsFirst(theirs)(x)
    np.testing.assert_allclose(ours(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours(x[0]), expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "fan_in"),
    [
        (lambda key: Linear(400, 300, key=key), 400),
        (lambda key: Conv2d(30, 40, 3, stride=2, key=key), 270),
        (lambda key: ConvTranspose2d(30, 40, 3, key=key), 68),
    ],
)
def test_initial_weights_have_variance_one_over_fan_in(make, fan_in):
    layer = make(jr.key(0))
    assert layer.fan_in == fan_in
    z = jnp.var(layer.weight) * fan_in - 1
    assert abs(z) < 4.5 * (2 / layer.weight.size) ** 0.5
    assert not jnp.any(layer.bias)
    # Inputs of variance 1 give outputs of variance 1, away from the border; over a
    # transposed convolution's pixels on average.
    y = layer(images(16, 9, 9, layer.in_size))
    y = y[..., 2:-2, 2:-2, :] if layer.num_pixel_axes else y
    assert abs(float(jnp.var(y)) - 1) < 0.15


def test_constructors_refuse_sizes_below_one(getkey):
    with pytest.raises(ValueError, match="`in_size` must be at least 1, got 0"):
        Linear(0, 2, key=getkey())
    with pytest.raises(ValueError, match="`kernel_size` must be at least 1"):
        Conv2d(1, 2, 0, key=getkey())
    with pytest.raises(ValueError, match="`stride` must be at least 1"):
        ConvTranspose2d(1, 2, 3, stride=0, key=getkey())


def test_mlp_is_its_formula(getkey):
    mlp = MLP(3, 2, [5], activation=jnp.sin, key=getkey())
    mlp = eqx.tree_at(lambda m: m.layers, mlp, tuple(map(with_bias, mlp.layers)))
    x = images(4, 3)
    first, last = mlp.layers
    hidden = np.sin(np.asarray(x @ first.weight) + np.asarray(first.bias))
    expected = hidden @ np.asarray(last.weight) + np.asarray(last.bias)
    np.testing.assert_allclose(mlp(x), expected, rtol=1e-4, atol=1e-5)
    assert num_parameters(mlp) == 3 * 5 + 5 + 5 * 2 + 2
    assert not jnp.any(MLP(3, 2, [5], output_scale=0.0, key=getkey())(x))


def test_parameters_of_any_module(getkey):
    ours, theirs = Conv2d(2, 4, 3, key=getkey()), eqx.nn.Linear(5, 7, key=getkey())
    module = (ours, theirs, jnp.tanh, 3, Swish())
    assert num_parameters(module) == 2 * 4 * 9 + 4 + 35 + 7 + 1
    got = jax.tree.leaves(fan_ins(module))
    assert got == [18, 18, 5, 1, 1]
    doubled = scale_parameters(module, 2.0)
    assert jnp.array_equal(doubled[1].weight, 2 * theirs.weight)
    assert doubled[3] == 3


def test_space_to_depth_by_hand_and_back():
    x = jnp.arange(2 * 4 * 6 * 3.0).reshape(2, 4, 6, 3)
    y = space_to_depth(x)
    assert y.shape == (2, 2, 3, 12)
    expected = [x[0, 2:4, 4:6].reshape(-1)]
    assert jnp.array_equal(y[0, 1, 2], expected[0])
    assert jnp.array_equal(depth_to_space(y), x)
    assert jnp.array_equal(depth_to_space(space_to_depth(x[0])), x[0])
    nine = jnp.arange(9 * 9 * 2.0).reshape(9, 9, 2)
    assert jnp.array_equal(depth_to_space(space_to_depth(nine, 3), 3), nine)


def test_pools_are_lax_reduce_window():
    x = images(2, 6, 4, 3)
    window = ((1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    top = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, *window)
    mean = jax.lax.reduce_window(x, 0.0, jax.lax.add, *window) / 4
    np.testing.assert_array_equal(max_pool(x), top)
    np.testing.assert_allclose(average_pool(x), mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fn", [space_to_depth, average_pool, max_pool])
def test_odd_sizes_are_refused(fn):
    with pytest.raises(ValueError, match="5 by 4 pixels don't divide .* pad or crop"):
        fn(jnp.ones((5, 4, 1)))
    with pytest.raises(ValueError, match="needs a multiple of 4 channels, got 6"):
        depth_to_space(jnp.ones((4, 4, 6)))


def test_augment_appends_zeros():
    x = images(2, 3)
    y = Augment(2)(x)
    assert jnp.array_equal(y, jnp.concatenate([x, jnp.zeros((2, 2))], 1))
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        Augment(-1)


def test_activations_by_formula():
    x = np.linspace(-3, 3, 7).astype(np.float32)
    softplus = np.log1p(np.exp(x))
    formulas = {
        "elu": np.where(x > 0, x, np.expm1(x)),
        "mish": x * np.tanh(softplus),
        "rbf": np.exp(-(x**2)),
        "relu": np.maximum(x, 0),
        "silu": x / (1 + np.exp(-x)),
        "softplus": softplus,
        "tanh": np.tanh(x),
        "swish": x / (1 + np.exp(-x * np.log1p(np.exp(0.5)))),
    }
    assert {*ACTIVATIONS, "swish"} == set(formulas)
    for name, expected in formulas.items():
        got = activation_from_name(name)(jnp.asarray(x))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, err_msg=name)
    with pytest.raises(ValueError, match="no activation 'gelu': choose one of elu"):
        activation_from_name("gelu")


def test_swish_is_trained_by_layer(getkey):
    mlp = MLP(2, 1, [3, 3], activation=Swish(), key=getkey())
    grads = eqx.filter_grad(lambda mlp: jnp.sum(mlp(images(4, 2))))(mlp)
    first, second = (activation.rho for activation in grads.activations)
    assert first != 0
    assert second != 0
    assert first != second


def test_adapters_equal_a_loop(getkey):
    linear = eqx.nn.Linear(3, 2, key=getkey())
    x = images(2, 4, 3)
    looped = jnp.stack([jnp.stack([linear(row) for row in rows]) for rows in x])
    np.testing.assert_allclose(PerExample(linear)(x), looped, rtol=1e-5, atol=1e-6)
    timed = PerExample(lambda t, x: t * linear(x))
    np.testing.assert_allclose(timed(2.0, x), 2 * looped, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(PerExample(linear)(x[0, 0]), looped[0, 0], rtol=1e-5)
    flat = ChannelsFirst(lambda image: image[1].reshape(-1))
    pictures = images(2, 2, 4, 5, 3)
    assert jnp.array_equal(flat(pictures), pictures[..., 1].reshape(2, 2, 20))
    with pytest.raises(ValueError, match="An example has 2 axes and `x` only 1"):
        PerExample(linear, num_axes=2)(jnp.ones(3))


def test_tanh_is_differentiated_as_numpy_says_and_keeps_one_array(x64):
    """Catches a wrong derivative, and a residual beside the value."""
    x = jnp.linspace(-3, 3, 7)
    slope = jax.vmap(jax.grad(tanh))(x)
    np.testing.assert_allclose(slope, 1 - np.tanh(x) ** 2, rtol=1e-12)
    curve = jax.vmap(jax.grad(jax.grad(tanh)))(x)
    exact = -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(curve, exact, rtol=1e-12, atol=1e-14)

    _, pull = jax.vjp(tanh, jnp.ones(1000))
    kept = [leaf.size for leaf in jax.tree.leaves(pull)]
    assert sum(kept) <= 1000
