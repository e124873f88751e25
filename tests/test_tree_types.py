"""Leaves of annotated trees are checked, and together."""

import jax.numpy as jnp
import pytest
from beartype import beartype
from jaxtyping import Array, Float, PyTree, TypeCheckError, jaxtyped


@jaxtyped(typechecker=beartype)
def of_vectors(tree: PyTree[Float[Array, " size"] | None]) -> None:
    del tree


@pytest.mark.parametrize(
    "leaf", [jnp.ones(2, int), jnp.ones((2, 2)), jnp.ones(3), "text"]
)
def test_a_leaf_of_another_type_or_shape_is_refused(leaf):
    """Catches (seen) checks that pass whatever a tree holds."""
    of_vectors({"a": jnp.ones(2), "b": [jnp.zeros(2), None]})
    with pytest.raises(TypeCheckError, match="parameter 'tree'"):
        of_vectors({"a": jnp.ones(2), "b": [leaf, None]})
