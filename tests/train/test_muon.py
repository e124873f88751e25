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
from ornstein.functions import Deterministic, Ensemble, ImplicitBNN, MeanField
from ornstein.likelihood import Gaussian
from ornstein.prior import fan_in_prior
from ornstein.train import fit, muon

RATE = 0.01


def first_step(params):
    rule = muon()(RATE)
    grads = jax.tree.map(lambda a: jr.normal(jr.key(a.size), a.shape), params)
    updates, _ = rule.update(grads, rule.init(params), params)
    return grads, updates


def matrices(a, num_axes):
    """(how many, rows, columns), out features last."""
    num = a.size // int(np.prod(a.shape[a.ndim - num_axes :]))
    return np.asarray(a.reshape(num, -1, a.shape[-1]), np.float64)


def assert_orthogonal(g, step):
    left, _, right = np.linalg.svd(-g, full_matrices=False)
    rotated = left.T @ step @ right.T
    # Five steps of Newton and Schulz bring them to 0.7 to 1.2.
    size = np.diag(rotated)
    assert size.max() < 2 * size.min()
    np.testing.assert_allclose(rotated, np.diag(size), atol=1e-5)
    assert 0.6 < np.sqrt(np.mean(step**2)) / (0.2 * RATE) < 1.3


LAYERS = {
    "linear": lambda key: nn.Linear(12, 30, key=key),
    "tall": lambda key: nn.Linear(30, 12, key=key),
    "kernel": lambda key: nn.Conv2d(4, 8, 3, key=key),
    "transposed": lambda key: nn.ConvTranspose2d(4, 8, 3, key=key),
    "equinox": lambda key: eqx.nn.Linear(7, 12, key=key),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("members", [(), (3,), (2, 2)])
def test_steps_are_orthogonal(name, members):
    """All singular values alike, in the gradient's directions; of each member alone."""
    make = LAYERS[name]
    layer = make(jr.key(0))
    for size in members:
        layer = jax.tree.map(lambda a, n=size: jnp.stack([a] * n), layer)
    params = eqx.filter(layer, eqx.is_inexact_array)
    grads, updates = first_step(params)
    num_axes = make(jr.key(0)).weight.ndim
    for g, step in zip(
        matrices(grads.weight, num_axes),
        matrices(updates.weight, num_axes),
        strict=True,
    ):
        assert_orthogonal(g, step)
    adam = optax.nadam(RATE / 4)
    by_adam, _ = adam.update(grads, adam.init(params))
    np.testing.assert_allclose(updates.bias, by_adam.bias, rtol=1e-4)


class Normed(eqx.Module):
    first: nn.Linear
    norm: nn.FilterResponseNorm
    last: nn.Linear

    def __init__(self, key):
        self.first = nn.Linear(6, 5, key=key)
        self.norm = nn.FilterResponseNorm(5)
        self.last = nn.Linear(5, 2, key=key)

    def __call__(self, x):
        return self.last(self.norm(self.first(x)))


def test_members_move_as_if_alone():
    """Biases and norms of an ensemble are no matrices, nested or not."""
    model = Ensemble([Normed(key) for key in jr.split(jr.key(0), 3)])
    params = eqx.filter(model, eqx.is_inexact_array)
    grads, updates = first_step(params)
    rule = muon()(RATE)
    first = lambda tree: jax.tree.map(lambda a: a[0], tree)
    own, _ = rule.update(first(grads), rule.init(first(params)), first(params))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7),
        first(updates),
        own,
    )


def test_nodes_and_bare_arrays_move_by_adam():
    """A mixture's means are (components, nodes), and no matrix."""
    model = ImplicitBNN(nn.MLP(6, 2, (5,), key=jr.key(0)), key=jr.key(0))
    params = eqx.filter(model.mixture, eqx.is_inexact_array)
    grads, updates = first_step(params)
    adam = optax.nadam(RATE / 4)
    by_adam, _ = adam.update(grads, adam.init(params))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), updates, by_adam
    )


def test_kernels_of_equinox_have_their_outputs_first():
    """Also several at once, as members of an ensemble are; biases are vectors."""
    make = lambda key: eqx.nn.Conv2d(5, 4, 3, key=key)
    for layer in (make(jr.key(0)), jax.vmap(make)(jr.split(jr.key(0), 3))):
        params = eqx.filter(layer, eqx.is_inexact_array)
        grads, updates = first_step(params)
        kernels = [a.weight.reshape(-1, 4, 45) for a in (grads, updates)]
        for g, step in zip(*(matrices(a, 2) for a in kernels), strict=True):
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


def test_a_prior_in_the_place_of_a_weight():
    """`FanInPrior` and its kin have one for each array."""
    network = nn.MLP(6, 2, (5,), key=jr.key(0))
    params = eqx.filter(MeanField(network, fan_in_prior(network)), eqx.is_inexact_array)
    first_step(params)


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
