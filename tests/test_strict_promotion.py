"""Our promotions fail; those of foreign code, called by us, do not."""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
import optax
import pytest


def test_our_dtype_promotion_fails():
    promote = lambda x: x + jnp.arange(2, dtype=jnp.int32)
    with pytest.raises(jax.dtypes.TypePromotionError, match="no available implicit"):
        promote(jnp.ones(2))
    with pytest.raises(jax.dtypes.TypePromotionError, match="no available implicit"):
        jax.jit(jax.vmap(promote))(jnp.ones((3, 2)))


def test_our_rank_promotion_fails():
    with pytest.raises(ValueError, match="rank_promotion='raise'"):
        jnp.add(jnp.ones((2, 3)), jnp.ones(3))


def test_foreign_dtype_promotion_passes():
    optimiser = optax.adam(optax.cosine_decay_schedule(0.1, 10))
    grads = jnp.array([1.0, -2.0])
    updates, _ = jax.jit(optimiser.update)(grads, optimiser.init(grads))
    assert jnp.allclose(updates, -0.1 * jnp.sign(grads), rtol=1e-5)


def test_foreign_rank_promotion_passes():
    normal = dist.Normal(jnp.array([0.0, 5.0]), jnp.ones(1))
    assert normal.sample(jax.random.key(0), (3,)).shape == (3, 2)
