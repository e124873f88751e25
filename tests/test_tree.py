"""Trees of parameters in fewer arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein._tree import normal_like, pack, unpack

TREE = {
    "a": jnp.arange(6.0).reshape(2, 3),
    "b": [jnp.ones((2**14 + 1,)), jnp.asarray(7.0), None],
    "c": jnp.arange(3, dtype=jnp.bfloat16),
    "d": jnp.zeros((0, 4)),
    "e": jnp.full((2, 2), 5.0),
}


def test_what_is_packed_comes_back():
    """Catches a large array that is copied, and types that are mixed."""
    packed = pack(TREE)
    assert [a.shape for a in packed] == [(6 + 1 + 0 + 4,), (2**14 + 1,), (3,)]
    assert packed[1] is TREE["b"][0]
    back = unpack(packed, TREE)
    assert jax.tree.structure(back) == jax.tree.structure(TREE)
    for ours, given in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
        assert ours.dtype == given.dtype
        np.testing.assert_array_equal(ours, given)


@pytest.mark.parametrize("tree", [{}, {"a": jnp.asarray(1.0)}], ids=["none", "one"])
def test_few_arrays(tree):
    assert jax.tree.structure(unpack(pack(tree), tree)) == jax.tree.structure(tree)


def test_normals_are_independent_across_arrays(getkey):
    """Catches a draw that several arrays share in full."""
    tree = {"a": jnp.zeros((50, 60)), "b": jnp.zeros((50, 60)), "c": jnp.zeros(20_000)}
    drawn = normal_like(tree, key=getkey())
    assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, tree)
    for a in jax.tree.leaves(drawn):
        assert abs(float(a.mean())) < 0.1
        assert float(a.std()) == pytest.approx(1.0, abs=0.06)
    a, b, c = (np.ravel(drawn[name]) for name in "abc")
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.1
    assert abs(np.corrcoef(a, c[:3000])[0, 1]) < 0.1
