"""Pooling and paddings against XLA's own, PyTorch's, and loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ornstein.nn import Conv2d, MaxPool, adaptive_average_pool, max_pool


def images(*shape):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)


@pytest.mark.parametrize(
    ("size", "window", "stride", "padding"), [(8, 3, 2, 1), (9, 3, 2, 0), (6, 2, 3, 1)]
)
def test_overlapping_maxima_are_reduce_window(size, window, stride, padding):
    """With their gradient; catches a wrong last window and zeros as padding."""
    x = images(2, size, size + 1, 3) - 5  # so that padded zeros would win

    def reference(x):
        pads = ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0))
        windows = (1, window, window, 1), (1, stride, stride, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, *windows, pads)

    @jax.jit
    def both(x):
        y, pull = jax.vjp(MaxPool(window, stride=stride, padding=padding), x)
        expected, expected_pull = jax.vjp(reference, x)
        g = jnp.sin(expected)
        return (y, *pull(g)), (expected, *expected_pull(g))

    for actual, expected in zip(*both(x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_maxima_side_by_side_are_the_general_ones(window):
    """With their gradient; catches rows and columns of a square exchanged."""
    x = images(2, 24, 12, 3)
    y, pull = jax.vjp(lambda x: max_pool(x, window), x)
    expected, expected_pull = jax.vjp(lambda x: max_pool(x, window, stride=window), x)
    np.testing.assert_array_equal(y, expected)
    g = jnp.sin(y)
    np.testing.assert_array_equal(*pull(g), *expected_pull(g))


def test_max_pool_refuses():
    x = images(1, 4, 4, 1)
    with pytest.raises(ValueError, match="padding of at most half a window"):
        max_pool(x, 3, stride=2, padding=2)
    with pytest.raises(ValueError, match="does not fit images of 4 by 4"):
        max_pool(x, 5, stride=1)


@pytest.mark.parametrize(("height", "width", "size"), [(7, 5, 3), (2, 3, 4), (6, 6, 1)])
def test_adaptive_average_is_the_mean_of_each_window(height, width, size):
    """Catches windows that don't overlap, and those that lose the last pixel."""
    x = images(2, height, width, 3)
    expected = np.empty((2, size, size, 3))
    for i in range(size):
        for j in range(size):
            rows = slice(i * height // size, int(np.ceil((i + 1) * height / size)))
            cols = slice(j * width // size, int(np.ceil((j + 1) * width / size)))
            expected[:, i, j] = np.asarray(x)[:, rows, cols].mean((1, 2))
    actual = adaptive_average_pool(x, size)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    torch = pytest.importorskip("torch")
    theirs = torch.nn.functional.adaptive_avg_pool2d(
        torch.tensor(np.moveaxis(np.array(x), -1, 1)), size
    )
    theirs = np.moveaxis(theirs.numpy(), 1, -1)
    np.testing.assert_allclose(actual, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("padding", "pads"), [("VALID", 0), (2, 2), (0, 0), ("SAME", None)]
)
def test_paddings_of_a_convolution(padding, pads, getkey):
    """With stride 2 on an even side, where "SAME" and one zero a side differ."""
    layer = Conv2d(3, 4, 5, stride=2, padding=padding, key=getkey())
    x = images(2, 8, 9, 3)
    expected = lax.conv_general_dilated(
        x,
        layer.weight,
        (2, 2),
        "SAME" if pads is None else ((pads, pads),) * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", ["same", -1, 1.5])
def test_refuses_other_paddings(padding, getkey):
    with pytest.raises((ValueError, TypeError), match="padding"):
        Conv2d(3, 4, 3, padding=padding, key=getkey())
