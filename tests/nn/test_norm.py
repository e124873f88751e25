"""Normalisations against NumPy written out, and against PyTorch where it is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.nn import (
    BatchNorm,
    FilterResponseNorm,
    ThresholdedLinear,
    fan_ins,
    num_parameters,
    scale_parameters,
)


def images(seed, *shape):
    rng = np.random.default_rng(seed)
    scales, means = rng.uniform(0.5, 2, shape[-1]), rng.normal(size=shape[-1])
    return jnp.asarray(means + scales * rng.standard_normal(shape), jnp.float32)


def shaken_norm(**kwargs):
    """With a scale and an offset that are not 1 and 0."""
    norm = BatchNorm(3, **kwargs)
    scale, offset = jnp.array([0.5, -1.0, 2.0]), jnp.array([0.1, 0.2, -0.3])
    return eqx.tree_at(lambda n: (n.scale, n.offset), norm, (scale, offset))


def normalised(norm, x, mean, variance):
    x = (np.asarray(x) - mean) / np.sqrt(variance + norm.eps)
    return np.asarray(norm.scale) * x + np.asarray(norm.offset)


@eqx.filter_jit
def call(norm, x, state):
    return norm(x, state)


@pytest.mark.parametrize("shape", [(4, 5, 6, 3), (8, 3), (2, 2, 4, 4, 3)])
def test_batch_norm_is_its_formula(shape):
    """Catches a biased running variance, a swapped momentum, a lost scale."""
    norm = shaken_norm(momentum=0.7)
    state = eqx.nn.State(norm)
    mean, variance = np.zeros(3), np.ones(3)
    for seed in range(2):
        x = images(seed, *shape)
        y, state = call(norm, x, state)
        rows = np.asarray(x, np.float64).reshape(-1, 3)
        expected = normalised(norm, x, rows.mean(0), rows.var(0))
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
        mean = 0.7 * mean + 0.3 * rows.mean(0)
        variance = 0.7 * variance + 0.3 * rows.var(0, ddof=1)
    stored_mean, stored_variance = state.get(norm.index)
    np.testing.assert_allclose(stored_mean, mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(stored_variance, variance, rtol=1e-4)

    x = images(2, *shape)
    y, after = call(eqx.nn.inference_mode(norm), x, state)
    expected = normalised(norm, x, mean, variance)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    for old, new in zip((mean, variance), after.get(norm.index), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-4, atol=1e-6)


def test_batch_norm_is_torchs():
    """The gradients too: statistics of the batch are differentiated through."""
    torch = pytest.importorskip("torch")
    norm = shaken_norm()
    x, g = images(0, 4, 5, 6, 3), images(1, 4, 5, 6, 3)
    theirs = torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(np.array(norm.scale)))
        theirs.bias.copy_(torch.tensor(np.array(norm.offset)))
    first = lambda a: torch.tensor(np.moveaxis(np.array(a), -1, 1))
    last = lambda a: np.moveaxis(a.detach().numpy(), 1, -1)
    their_x = first(x).requires_grad_()
    their_y = theirs(their_x)
    (their_y * first(g)).sum().backward()

    def loss(arrays):
        norm, x = eqx.combine(arrays, rest)
        y, state = norm(x, eqx.nn.State(norm))
        return jnp.sum(y * g), (y, state.get(norm.index))

    arrays, rest = eqx.partition((norm, x), eqx.is_inexact_array)
    grads, (y, (mean, variance)) = jax.jit(jax.grad(loss, has_aux=True))(arrays)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    close(y, last(their_y))
    close(mean, theirs.running_mean.numpy())
    close(variance, theirs.running_var.numpy())
    close(grads[1], last(their_x.grad))
    close(grads[0].scale, theirs.weight.grad.numpy())
    close(grads[0].offset, theirs.bias.grad.numpy())


def test_batch_norm_far_from_zero():
    """Where the mean of squares less the squared mean has no digit left."""
    x = images(0, 1000, 3) + 1000
    norm = BatchNorm(3)
    y, _ = norm(x, eqx.nn.State(norm))
    np.testing.assert_allclose(jnp.std(y, 0), 1, atol=1e-3)


def test_running_statistics_are_no_path_for_gradients():
    norm = BatchNorm(3)

    def loss(x):
        _, state = norm(x, eqx.nn.State(norm))
        mean, variance = state.get(norm.index)
        return jnp.sum(mean) + jnp.sum(variance)

    grad = jax.jit(jax.grad(loss))(images(0, 8, 3))
    np.testing.assert_array_equal(grad, 0.0)


def test_batch_norm_refuses():
    norm = BatchNorm(3)
    with pytest.raises(ValueError, match=r"no state: call the network as `network\(x"):
        norm(images(0, 4, 3), None)
    with pytest.raises(ValueError, match="two numbers a channel"):
        norm(images(0, 1, 3), eqx.nn.State(norm))
    with pytest.raises(ValueError, match=r"`momentum` must be in \[0, 1\), got 1"):
        BatchNorm(3, momentum=1.0)


def test_batch_statistics_are_no_parameters():
    norm = BatchNorm(3)
    assert num_parameters(norm) == 6
    scaled = scale_parameters(norm, 0.0)
    mean, variance = eqx.nn.State(scaled).get(scaled.index)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_array_equal(variance, 1.0)
    assert jax.tree.leaves(fan_ins(norm)) == [1, 1]


def test_filter_response_norm_is_its_formula(getkey):
    """Catches statistics over the batch or the channels, and a lost |ε|."""
    x = images(0, 2, 4, 5, 3)
    norm = FilterResponseNorm(3)
    scale, offset = jr.normal(getkey(), (2, 3))
    learned = jnp.array(-0.5)
    where = lambda n: (n.scale, n.offset, n.learned_eps)
    norm = eqx.tree_at(where, norm, (scale, offset, learned))
    expected = np.empty(x.shape)
    for n in range(2):
        for c in range(3):
            channel = np.asarray(x[n, :, :, c], np.float64)
            size = np.sqrt((channel**2).sum() / 20 + 1e-6 + 0.5)
            expected[n, :, :, c] = float(scale[c]) * channel / size + float(offset[c])
    np.testing.assert_allclose(norm(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm(x[0]), expected[0], rtol=1e-4, atol=1e-5)
    assert float(FilterResponseNorm(3).learned_eps) == pytest.approx(1e-4)


def test_thresholded_linear():
    unit = ThresholdedLinear(3)
    unit = eqx.tree_at(lambda u: u.threshold, unit, jnp.array([-1.0, 0.0, 1.0]))
    x = jnp.array([[-2.0, -2.0, -2.0], [0.5, 0.5, 0.5]])
    expected = [[-1.0, 0.0, 1.0], [0.5, 0.5, 1.0]]
    np.testing.assert_array_equal(unit(x), expected)
