"""The weights of an epoch's batches."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.train import GeometricSplit, UniformSplit


@pytest.mark.parametrize("num_batches", [1, 2, 7, 60])
def test_geometric_weights_are_the_printed_ones(num_batches):
    """2^(M - i) / (2^M - 1) in exact arithmetic; they add up to 1, as uniform ones."""
    batches = jnp.arange(num_batches)
    found = jax.vmap(lambda i: GeometricSplit().factor(i, num_batches))(batches)
    exact = [
        float(Fraction(num_batches * 2 ** (num_batches - i), 2**num_batches - 1))
        for i in range(1, num_batches + 1)
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    np.testing.assert_allclose(np.mean(found), 1.0, rtol=1e-6)
    assert UniformSplit().factor(batches[0], num_batches) == 1.0


def test_ten_thousand_batches_do_not_overflow():
    factor = lambda i: GeometricSplit().factor(i, 10_000)
    found = jax.vmap(factor)(jnp.arange(10_000))
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[:2], [5_000, 2_500], rtol=1e-5)
    np.testing.assert_allclose(np.mean(found), 1.0, rtol=1e-5)
