"""Muon: orthogonal steps of matrices and kernels, Adam's of all else."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from ornstein import nn
from ornstein.data import Split
from ornstein.functions import Deterministic, MeanField
from ornstein.likelihood import Gaussian
from ornstein.train import fit, muon

RATE = 0.01


def first_step(params):
    rule = muon()(RATE)
    grads = jax.tree.map(lambda a: jr.normal(jr.key(a.size), a.shape), params)
    updates, _ = rule.update(grads, rule.init(params), params)
    return grads, updates


def matrices(a):
    """(how many, rows, columns), as the docstring of `muon` reads the axes."""
    if a.ndim in (2, 4):
        a = a[None]
    return np.asarray(a.reshape(len(a), -1, a.shape[-1]), np.float64)


def assert_orthogonal(g, step):
    left, _, right = np.linalg.svd(-g, full_matrices=False)
    rotated = left.T @ step @ right.T
    # Five steps of Newton and Schulz bring them to 0.7 to 1.2.
    size = np.diag(rotated)
    assert size.max() < 2 * size.min()
    np.testing.assert_allclose(rotated, np.diag(size), atol=1e-5)
    assert 0.6 < np.sqrt(np.mean(step**2)) / (0.2 * RATE) < 1.3


@pytest.mark.parametrize("shape", [(12, 30), (3, 12, 7), (3, 3, 4, 8), (2, 3, 3, 4, 8)])
def test_steps_are_orthogonal(shape):
    """All singular values alike, in the gradient's directions; also of each mode."""
    grads, updates = first_step({"a": jnp.zeros(shape)})
    for g, step in zip(*map(matrices, (grads["a"], updates["a"])), strict=True):
        assert_orthogonal(g, step)


def test_kernels_of_equinox_have_their_outputs_first():
    """Also several at once, as members of an ensemble are; biases are vectors."""
    make = lambda key: eqx.nn.Conv2d(5, 4, 3, key=key)
    for layer in (make(jr.key(0)), jax.vmap(make)(jr.split(jr.key(0), 3))):
        params = eqx.filter(layer, eqx.is_inexact_array)
        grads, updates = first_step(params)
        kernels = [a.weight.reshape(-1, 4, 45) for a in (grads, updates)]
        for g, step in zip(*map(matrices, kernels), strict=True):
            assert_orthogonal(g, step)
        adam = optax.nadam(RATE / 4)
        by_adam, _ = adam.update(grads, adam.init(params))
        np.testing.assert_allclose(updates.bias, by_adam.bias, rtol=1e-4)


def test_vectors_and_spreads_move_by_adam():
    """No matrix is made of them, and a quarter of the rate is theirs."""
    model = MeanField(nn.MLP(6, 2, (5,), key=jr.key(0)))
    params = eqx.filter(model.family, eqx.is_inexact_array)
    grads, updates = first_step(params)
    adam = optax.nadam(RATE / 4)
    by_adam, _ = adam.update(grads, adam.init(params))
    assert_same = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4)
    jax.tree.map(assert_same, updates.rho, by_adam.rho)
    for leaf, other in zip(
        jax.tree.leaves(updates.mean), jax.tree.leaves(by_adam.mean), strict=True
    ):
        if leaf.ndim == 1:
            assert_same(leaf, other)
        else:
            assert not np.allclose(leaf, other, rtol=0.1)


def test_fits():
    """A regression that it solves to its noise."""
    key = jr.key(3)
    x = np.asarray(jr.normal(key, (256, 4)))
    y = np.sin(x @ np.array([[1.0], [0.5], [-1.0], [0.2]]))
    found = fit(
        Deterministic(nn.MLP(4, 1, (32, 32), key=key)),
        Split(x.astype(np.float32), y.astype(np.float32)),
        Gaussian(0.1),
        key=key,
        num_epochs=60,
        batch_size=64,
        optimiser=muon(1e-3),
        learning_rate=0.02,
    )
    mean = found.model.network(jnp.asarray(x, jnp.float32))
    assert np.mean((mean - y) ** 2) < 0.02 * np.var(y)
