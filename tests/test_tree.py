"""Trees of parameters in fewer arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein._tree import all_finite, copied, normal_like, pack, unpack

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


def test_copies_are_arrays_of_their_own():
    """Catches (seen) memory that a donated copy takes away, and types left weak."""
    tree = TREE | {
        "key": jax.random.key(1),
        "weak": jnp.asarray(2.0) * 1.0,
        "no": "text",
    }
    copy = copied(tree)
    assert jax.tree.structure(copy) == jax.tree.structure(tree)
    arrays = [a for a in jax.tree.leaves(copy) if isinstance(a, jax.Array)]
    assert not any(getattr(a, "weak_type", False) for a in arrays)
    # Arrays with a place of their own would have a program compiled twice.
    assert not any(a.committed for a in arrays)
    jax.jit(lambda arrays: jax.tree.map(jnp.array, arrays), donate_argnums=0)(arrays)
    for given in jax.tree.leaves(tree):
        assert not isinstance(given, jax.Array) or not given.is_deleted()
    np.testing.assert_array_equal(tree["a"], TREE["a"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_number_is_found(bad: float):
    """Catches a leaf that is passed over, and an empty one taken for a bad one."""
    assert all_finite(TREE)
    assert all_finite({"no": None, "count": np.arange(3)})
    late = np.array([0.0, bad], np.float32)
    for array in (late, jnp.asarray(late), jnp.asarray(late, jnp.bfloat16)):
        assert not all_finite(TREE | {"late": array})
