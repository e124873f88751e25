"""Pruning by |mean| / scale, and the file of what is left."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein import nn
from ornstein.functions import Deterministic, MeanField, NormalFamily, Pruned, prune
from ornstein.train import CheckpointError, load_sparse, save_sparse


def random_function(seed: int = 0, **options) -> MeanField:
    """A mean-field MLP whose means and scales have nothing to do with each other."""
    w_key, s_key = jax.random.split(jax.random.key(seed))
    network = nn.MLP(20, 5, [50], activation=jax.nn.relu, key=w_key)
    scale = lambda mean: jnp.exp(jax.random.normal(s_key, mean.shape) - 3)
    return MeanField(network, init_scale=scale, **options)


def flat(tree) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("fraction", [0.0, 0.75, 0.98])
def test_removes_the_smallest_ratios(fraction):
    """By a sort of its own; a weight that stays is drawn as before, one that goes is 0.

    Catches the largest removed instead, |mean| * scale, and rho for the scale.
    """
    function = random_function()
    mean = flat(function.family.mean)
    ratio = abs(mean) / np.log1p(np.exp(flat(function.family.rho)))
    num_removed = int(fraction * ratio.size)
    removed = np.zeros(ratio.size, bool)
    removed[sorted(range(ratio.size), key=lambda i: ratio[i])[:num_removed]] = True

    pruned = prune(function, fraction)
    before = flat(function.family.sample(key=jax.random.key(1)))
    after = flat(pruned.family.sample(key=jax.random.key(1)))
    np.testing.assert_array_equal(after, np.where(removed, 0.0, before))
    assert pruned.num_removed == num_removed
    assert pruned.num_weights == ratio.size - num_removed
    assert pruned.num_parameters == 2 * (ratio.size - num_removed)


@pytest.mark.parametrize("number", [float, np.float64])
def test_decimal_fractions_are_exact(number):
    """Of 100 weights 0.29 are 29: the product of floats, rounded down, is 28."""
    function = MeanField(nn.Linear(9, 10, key=jax.random.key(0)))
    removed = [prune(function, number(p / 100)).num_removed for p in range(100)]
    assert removed == list(range(100))
    assert prune(function, 0.0).num_removed == 0


def test_predicts_as_the_network_with_zeros():
    """The draw of (key, index) with the removed weights zeroed by hand."""
    function, key = random_function(), jax.random.key(3)
    pruned = prune(function, 0.6)
    x = jax.random.normal(jax.random.key(4), (7, 20))
    params = function.family.sample(key=jax.random.fold_in(key, 2))
    zeroed = jax.tree.map(lambda w, keep: jnp.where(keep, w, 0.0), params, pruned.kept)
    draw = pruned(x, key=key, index=2)
    expected = eqx.combine(zeroed, function.rest)(x)
    np.testing.assert_allclose(draw.output, expected, rtol=1e-5, atol=1e-6)
    assert set(jax.tree.leaves(pruned.labels())) == {"frozen"}


def test_points_stay():
    network = nn.MLP(20, 5, [50], activation=jax.nn.relu, key=jax.random.key(0))
    function = MeanField(network, where=lambda net: net.layers[-1])
    pruned = prune(function, 0.5)
    num_random, num_all = 50 * 5 + 5, nn.num_parameters(network)
    assert pruned.num_weights == num_random - num_random // 2
    assert pruned.num_parameters == 2 * pruned.num_weights + num_all - num_random
    np.testing.assert_array_equal(flat(pruned.rest), flat(function.rest))


def test_a_scale_of_zero_ranks_by_its_mean():
    """Single precision rounds tiny scales to 0: no 0 / 0."""
    family = NormalFamily(
        [jnp.array([0.0, 1.0, 2.0])], [jnp.array([-200.0, -1e3, 0.0])]
    )
    function = eqx.tree_at(lambda f: f.family, random_function(), family)
    np.testing.assert_array_equal(prune(function, 0.4).kept[0], [False, True, True])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_file_keeps_the_survivors(tmp_path, dtype):
    """Bit for bit, into a network that started elsewhere."""
    cast = lambda tree: jax.tree.map(
        lambda a: a.astype(dtype) if eqx.is_inexact_array(a) else a, tree
    )
    function, other = cast(random_function(0)), cast(random_function(1))
    pruned = prune(function, 0.9)
    save_sparse(tmp_path / "net.npz", pruned)
    for like in (other, prune(other, 0.2)):
        loaded = load_sparse(tmp_path / "net.npz", like)
        for a, b in zip(jax.tree.leaves(loaded), jax.tree.leaves(pruned), strict=True):
            np.testing.assert_array_equal(a, b)


def test_file_keeps_points_and_empty_leaves(tmp_path):
    network = nn.MLP(20, 5, [50], activation=jax.nn.relu, key=jax.random.key(0))
    last = lambda net: net.layers[-1]
    function = MeanField(network, where=last)
    biasless = eqx.tree_at(lambda f: last(f.family.mean).bias, function, jnp.zeros(5))
    pruned = prune(biasless, 0.5)
    assert not np.any(last(pruned.kept).bias)
    save_sparse(tmp_path / "net.npz", pruned)
    like = MeanField(nn.scale_parameters(network, 2.0), where=last)
    loaded = load_sparse(tmp_path / "net.npz", like)
    assert eqx.tree_equal(loaded, pruned)


def test_size_falls_with_the_fraction(tmp_path):
    """At most 10 bytes a survivor (mean, rho, a gap of 2), and a fixed head."""
    network = nn.MLP(300, 10, [200], activation=jax.nn.relu, key=jax.random.key(0))
    function = MeanField(network)
    sizes = {}
    for fraction in (0.0, 0.75, 0.95, 0.98):
        pruned = prune(function, fraction)
        path = tmp_path / f"{fraction}.npz"
        save_sparse(path, pruned)
        sizes[fraction] = path.stat().st_size
        assert sizes[fraction] < 10 * pruned.num_weights + 5_000
    assert sizes[0.95] < 0.07 * sizes[0.0] + 5_000
    assert sizes[0.98] < sizes[0.95] < sizes[0.75] < sizes[0.0]


@pytest.mark.parametrize("fraction", [-0.1, 1.0, float("nan")])
def test_refuses_fractions(fraction):
    with pytest.raises(ValueError, match=r"`fraction` must be in \[0, 1\), got"):
        prune(random_function(), fraction)


def test_refuses_other_functions():
    network = nn.Linear(2, 1, key=jax.random.key(0))
    with pytest.raises(TypeError, match="got `Deterministic`: give a `MeanField`"):
        prune(Deterministic(network), 0.5)


def test_refuses_other_files(tmp_path):
    save_sparse(tmp_path / "net.npz", prune(random_function(), 0.5))
    other = MeanField(nn.Linear(2, 1, key=jax.random.key(0)))
    with pytest.raises(CheckpointError, match="holds another network"):
        load_sparse(tmp_path / "net.npz", other)
    whole = (tmp_path / "net.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="is no sparse file of ornstein's"):
        load_sparse(tmp_path / "half.npz", random_function())
    assert isinstance(load_sparse(tmp_path / "net.npz", random_function()), Pruned)
