"""Against `lax.conv_general_dilated` and its own gradients, in float64 and float32."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax import lax

from ornstein.nn import conv2d, conv2d_transpose
from ornstein.nn.conv import _winograd
from ornstein.nn.conv._forms import (
    cpu_input_gradient,
    cpu_kernel_gradient,
    plain_input_gradient,
    plain_kernel_gradient,
)
from ornstein.nn.conv._geometry import Geometry


def reference(x, kernel, stride=1, padding: Any = "SAME"):
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def normal(key, shape, dtype: Any = np.float64):
    """NumPy's, because `jax.random.normal` compiles for seconds for each shape."""
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    return jnp.asarray(rng.standard_normal(shape), dtype)


def random_pair(
    key, *, images=(2, 6, 5), taps=3, channels=(3, 4), dtype: Any = np.float64
):
    x_key, kernel_key = jr.split(key)
    x = normal(x_key, (*images, channels[0]), dtype)
    return x, normal(kernel_key, (taps, taps, *channels), dtype)


def assert_close(got, expected, tolerance=1e-12):
    """The largest error, relative to the largest entry."""
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(
            a, b, rtol=0, atol=tolerance * max(1.0, float(jnp.max(jnp.abs(b))))
        ),
        got,
        expected,
    )


# Channels choose the form: bands (few), shifts of x or g, Winograd's (many), a
# convolution; so do kernels
# of 1×1 or as large as the image, and tiny images. Sizes 6×5 and 7×4: odd and even in
# both places; stride 2 leaves remainders.
CASES = [
    # taps, stride, padding, channels, images
    (3, 1, "SAME", (3, 4), (2, 6, 5)),
    (3, 1, "SAME", (16, 3), (2, 7, 4)),
    (3, 1, "SAME", (9, 16), (2, 6, 5)),
    (3, 2, "SAME", (3, 4), (2, 6, 5)),
    (3, 2, "SAME", (16, 3), (2, 7, 4)),
    (3, 2, "SAME", (9, 16), (2, 6, 4)),
    (1, 1, "SAME", (3, 4), (2, 6, 5)),
    (1, 2, "SAME", (40, 3), (2, 7, 4)),
    (5, 1, "SAME", (1, 4), (2, 6, 5)),
    (5, 1, "SAME", (3, 2), (2, 6, 5)),
    (5, 2, "SAME", (9, 16), (2, 7, 4)),
    (2, 2, "SAME", (9, 19), (2, 6, 5)),
    (2, 1, "SAME", (10, 4), (2, 6, 5)),
    (3, 3, "SAME", (5, 9), (2, 7, 5)),
    (3, 2, "VALID", (5, 9), (2, 6, 5)),
    (3, 2, "VALID", (4, 3), (2, 6, 4)),
    (3, 1, ((2, 0), (0, 3)), (5, 9), (2, 6, 5)),
    (3, 1, ((2, 0), (0, 3)), (5, 2), (2, 6, 5)),
    (3, 2, "SAME", (1, 4), (2, 7, 9)),
    (5, 1, "VALID", (1, 6), (2, 8, 10)),
    (3, 1, ((2, 0), (0, 3)), (1, 2), (2, 6, 5)),
    (3, 1, "SAME", (9, 10), (2, 2, 2)),
    (3, 2, "SAME", (9, 10), (2, 4, 3)),
    (4, 1, "VALID", (9, 10), (2, 4, 4)),
    (1, 1, "SAME", (9, 40), (2, 3, 2)),
    (3, 1, "SAME", (32, 33), (3, 6, 5)),
    (3, 1, ((2, 0), (0, 3)), (65, 64), (3, 5, 7)),
    (3, 1, "VALID", (64, 70), (3, 9, 6)),
]


@pytest.mark.parametrize(("taps", "stride", "padding", "channels", "images"), CASES)
@pytest.mark.usefixtures("x64")
def test_conv2d_is_lax_conv(getkey, taps, stride, padding, channels, images):
    """Catches each wrong pad, tap order and phase."""
    x, kernel = random_pair(getkey(), images=images, taps=taps, channels=channels)
    ours = functools.partial(conv2d, stride=stride, padding=padding)
    theirs = functools.partial(reference, stride=stride, padding=padding)
    g = normal(getkey(), jax.eval_shape(theirs, x, kernel).shape)

    def value_and_pullback(conv):
        def call(x, kernel, g):
            y, pullback = jax.vjp(conv, x, kernel)
            return y, *pullback(g)

        return jax.jit(call)(x, kernel, g)

    assert_close(value_and_pullback(ours), value_and_pullback(theirs))


@pytest.mark.parametrize("pads", [((1, 1), (1, 1)), ((2, 0), (0, 3)), ((0, 0), (0, 0))])
@pytest.mark.parametrize("num_tiles_at_once", [1, 12, 1000])
@pytest.mark.usefixtures("x64")
def test_winograd_is_the_convolution(getkey, monkeypatch, pads, num_tiles_at_once):
    """Catches a wrong tile at an odd edge, and images lost or added between chunks.

    Five images of 4 × 3 tiles: one at a time, and two with an empty one at the end.
    """
    each = 16 * (5 + 7) * 8
    monkeypatch.setattr(_winograd, "_CHUNK_BYTES", 2 * num_tiles_at_once * each)
    geometry = Geometry(1, pads, (7, 6), (3, 3))
    x, kernel = random_pair(getkey(), images=(5, 7, 6), channels=(5, 7))
    y, pullback = jax.vjp(lambda *a: reference(*a, padding=pads), x, kernel)
    g = normal(getkey(), y.shape)
    assert_close(_winograd.conv(geometry, x, kernel), y)
    assert_close(_winograd.kernel_gradient(geometry, x, g), pullback(g)[1])


def test_winograd_rounds_as_it_says(getkey):
    """Catches a form whose float32 is worse than 1e-5 of the largest value."""
    geometry = Geometry(1, ((1, 1), (1, 1)), (16, 16), (3, 3))
    x, kernel = random_pair(
        getkey(), images=(8, 16, 16), channels=(64, 64), dtype=np.float32
    )
    assert _winograd.conv_pays(geometry, 64, 64, x.dtype)
    y, pullback = jax.vjp(reference, x, kernel)
    g = normal(getkey(), y.shape, np.float32)
    largest = lambda a: float(jnp.max(jnp.abs(a)))
    for ours, theirs in (
        (_winograd.conv(geometry, x, kernel), y),
        (_winograd.kernel_gradient(geometry, x, g), pullback(g)[1]),
    ):
        assert largest(ours - theirs) < 1e-5 * largest(theirs)
    assert not _winograd.conv_pays(geometry, 64, 64, jnp.bfloat16)


@pytest.mark.parametrize("taps", [2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.usefixtures("x64")
def test_conv2d_transpose_is_lax_conv_transpose(getkey, taps, stride):
    """Also at a kernel smaller than the stride, where whole phases are zero."""
    x, kernel = random_pair(getkey(), images=(2, 4, 3), taps=taps, channels=(3, 5))
    if taps < stride:
        # XLA's own padding is another one there: zeros inserted by hand.
        wide = jnp.zeros((2, 4, stride, 3, stride, 3)).at[:, :, 0, :, 0].set(x)
        wide = wide.reshape(2, 4 * stride, 3 * stride, 3)
        flipped = jnp.flip(kernel, (0, 1))
        expected = reference(wide, flipped, 1, ((taps - 1, 0),) * 2)
    else:
        expected = lax.conv_transpose(
            x,
            kernel.swapaxes(2, 3),
            (stride, stride),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            transpose_kernel=True,
        )
    assert expected.shape == (2, 4 * stride, 3 * stride, 5)
    assert_close(conv2d_transpose(x, kernel, stride=stride), expected)


@pytest.mark.parametrize(("taps", "stride"), [(1, 2), (3, 1), (3, 2), (5, 2), (4, 3)])
@pytest.mark.usefixtures("x64")
def test_strided_and_transposed_are_adjoint(getkey, taps, stride):
    x, kernel = random_pair(getkey(), images=(2, 3, 4), taps=taps, channels=(3, 5))
    y = normal(getkey(), (2, 3 * stride, 4 * stride, 5))
    down = conv2d(y, kernel.swapaxes(2, 3), stride=stride)
    up = conv2d_transpose(x, kernel, stride=stride)
    assert_close(jnp.vdot(down, x), jnp.vdot(y, up))


@pytest.mark.usefixtures("x64")
def test_gradients_of_conv2d_transpose_and_second_order(getkey):
    """The trio's own rules, against XLA's for the same functions."""
    x, kernel = random_pair(getkey(), images=(1, 4, 3), channels=(2, 3))
    g = normal(getkey(), (1, 8, 6, 3))

    def transpose_reference(x, kernel):
        kernel = kernel.swapaxes(2, 3)
        (y,) = jax.linear_transpose(lambda y: reference(y, kernel, 2), g)(x)
        return y

    def penalty(conv):
        """A function of the gradient, so that its gradient is of second order."""
        gradients = jax.grad(lambda x, k: jnp.sum(jnp.sin(conv(x, k)) * g), (0, 1))
        return lambda x, k: sum(jnp.sum(a**3) for a in gradients(x, k))

    ours = functools.partial(conv2d_transpose, stride=2)
    for wrap in (lambda conv: lambda x, k: jnp.sum(conv(x, k) ** 2 * g), penalty):
        got = jax.jit(jax.grad(wrap(ours), (0, 1)))(x, kernel)
        expected = jax.jit(jax.grad(wrap(transpose_reference), (0, 1)))(x, kernel)
        assert_close(got, expected)


@pytest.mark.parametrize(
    ("x_axis", "kernel_axis", "stride"),
    [(0, None, 1), (None, 0, 2), (0, 0, 1), (1, 2, 2)],
)
@pytest.mark.usefixtures("x64")
def test_vmap_and_gradients_through_it(getkey, x_axis, kernel_axis, stride):
    """Values, gradients of a vmap, vmap of gradients: all equal XLA's own, one by one.

    Catches a rule that folds what it must loop over, and the other way round.
    """
    x, kernel = random_pair(getkey(), channels=(9, 10))
    if x_axis is not None:
        x = jnp.stack([x, jnp.flip(x, 1)], x_axis)
    if kernel_axis is not None:
        kernel = jnp.stack([kernel, kernel**2], kernel_axis)

    def loss(conv):
        return lambda x, k: jnp.sum(jnp.sin(conv(x, k, stride=stride)))

    def one(array, axis, i):
        return array if axis is None else jnp.take(array, i, axis)

    def vmapped(x, kernel):
        values = jax.vmap(loss(conv2d), (x_axis, kernel_axis))
        gradients = jax.vmap(jax.grad(loss(conv2d), (0, 1)), (x_axis, kernel_axis))
        of_total = jax.grad(lambda *pair: jnp.sum(values(*pair)), (0, 1))
        return values(x, kernel), gradients(x, kernel), of_total(x, kernel)

    values, gradients, of_total = jax.jit(vmapped)(x, kernel)
    expected_of_total = jax.tree.map(jnp.zeros_like, (x, kernel))
    expect = jax.jit(jax.value_and_grad(loss(reference), (0, 1)))
    for i in range(2):

        def pair(x, kernel, i=i):
            return one(x, x_axis, i), one(kernel, kernel_axis, i)

        expected = expect(*pair(x, kernel))
        assert_close((values[i], (gradients[0][i], gradients[1][i])), expected)
        back = jax.linear_transpose(pair, x, kernel)(expected[1])
        expected_of_total = jax.tree.map(jnp.add, expected_of_total, back)
    assert_close(of_total, expected_of_total)


@pytest.mark.usefixtures("x64")
def test_vmap_over_one_operand_of_the_gradients(getkey):
    """Images or cotangents alone: the kernel's gradient must not fold them."""
    x, kernel = random_pair(getkey(), images=(2, 2, 6, 5), channels=(9, 10))
    g = normal(getkey(), (2, 2, 6, 5, 10))

    def run(conv):
        def gradients(x, g):
            return jax.vjp(conv, x, kernel)[1](g)

        over_x, over_g = (jax.vmap(gradients, axes) for axes in ((0, None), (None, 0)))
        return jax.jit(lambda: (over_x(x, g[0]), over_g(x[0], g)))()

    assert_close(run(conv2d), run(reference))


@pytest.mark.usefixtures("x64")
def test_vmap_of_vmap_in_a_scan(getkey):
    """Draws over examples, in a loop: the rule meets its own output."""
    kernels = normal(getkey(), (2, 3, 3, 4, 4)) / 10
    x = normal(getkey(), (3, 1, 5, 4, 4))

    def run(conv):
        def loss(kernels):
            over_images = jax.vmap(conv, (0, None))
            y = lax.fori_loop(
                0,
                2,
                lambda _, y: jax.vmap(over_images)(y, kernels),
                jnp.stack([x, x]),
            )
            return jnp.sum(y**2)

        return jax.jit(jax.value_and_grad(loss))(kernels)

    assert_close(run(conv2d), run(reference))


def test_float32_and_leading_axes(getkey):
    x, kernel = random_pair(
        getkey(), images=(2, 3, 8, 8), channels=(16, 16), dtype=np.float32
    )

    def flat(x, kernel):
        y = reference(x.reshape(6, 8, 8, 16), kernel, 2)
        return y.reshape(2, 3, 4, 4, 16)

    ours = jax.jit(jax.value_and_grad(lambda *a: jnp.sum(conv2d(*a, stride=2) ** 2)))
    theirs = jax.jit(jax.value_and_grad(lambda *a: jnp.sum(flat(*a) ** 2)))
    assert_close(ours(x, kernel), theirs(x, kernel), 1e-5)
    assert_close(conv2d(x[0, 0], kernel), reference(x[0, :1], kernel)[0], 1e-5)
    assert conv2d(x, kernel).dtype == jnp.float32


@pytest.mark.usefixtures("x64")
def test_forms_for_other_platforms_agree_with_the_cpu_forms(getkey):
    """What a GPU would run, run here."""
    geometry = Geometry(2, ((1, 1), (0, 1)), (7, 6), (3, 3))
    x, kernel = random_pair(getkey(), images=(2, 7, 6), channels=(9, 10))
    g = normal(getkey(), (2, *geometry.out_shape, 10))
    assert_close(
        plain_input_gradient(geometry, g, kernel),
        cpu_input_gradient(geometry, g, kernel),
    )
    assert_close(
        plain_kernel_gradient(geometry, x, g), cpu_kernel_gradient(geometry, x, g)
    )


def test_lowered_for_a_gpu_it_is_one_plain_convolution():
    """Per draw under `vmap` grouped, without a loop; on the CPU a loop."""
    x, kernels = jnp.ones((2, 6, 6, 4)), jnp.ones((3, 3, 3, 4, 4))

    def text(platform):
        traced = jax.jit(jax.vmap(conv2d, (None, 0))).trace(x, kernels)
        return traced.lower(lowering_platforms=(platform,)).as_text()

    assert "stablehlo.while" in text("cpu")
    assert "stablehlo.while" not in text("cuda")
    assert text("cuda").count("stablehlo.convolution") == 1


def test_bad_input():
    x, kernel = jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 2, 2))
    with pytest.raises(ValueError, match="`stride` must be a positive integer, got 0"):
        conv2d(x, kernel, stride=0)
    with pytest.raises(ValueError, match="`stride` must be a positive integer"):
        conv2d_transpose(x, kernel, stride=0)
    with pytest.raises(ValueError, match='must be "SAME", "VALID" or pairs'):
        conv2d(x, kernel, padding="same")
    with pytest.raises(ValueError, match="does not fit images"):
        conv2d(x, jnp.ones((5, 5, 2, 2)), padding="VALID")
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: conv2d(x, kernel), (x,), (x,))
