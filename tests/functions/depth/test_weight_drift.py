"""The bottleneck against a network on the flat vector of weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.functions import WeightDrift
from ornstein.nn import num_parameters


def make(num_weights: int, summary_size: int = 3) -> WeightDrift:
    """For a matrix of `num_weights` entries and a vector of two."""
    weights = {"a": jnp.zeros((num_weights // 2, 2)), "b": jnp.zeros(2), "c": None}
    return WeightDrift(
        weights,
        width_sizes=(2, 7, 3),
        summary_size=summary_size,
        weight_scale={"a": 0.5, "b": 2.0, "c": None},
        drift_scale={"a": 0.3, "b": 0.1, "c": None},
        key=jr.key(0),
    )


def test_parameters_are_linear_in_the_number_of_weights():
    """First and last width and a bias for each weight, and what does not grow: a
    full matrix would grow with the square."""
    sizes = np.array([10, 20, 40, 400])
    counts = np.array([num_parameters(make(n)) for n in sizes])
    per_weight = 2 + 3 + 1
    assert np.all(counts - per_weight * sizes == counts[0] - per_weight * 10)
    # 2 weights of b; layers (1 + 3 → 2), (2 → 7), (7 → 3).
    assert counts[0] == per_weight * 12 + (4 * 2 + 2) + (2 * 7 + 7) + (7 * 3 + 3)


def test_it_is_a_network_on_the_flat_vector():
    """Catches a leaf read or written in another order or (seen) unit, no t, no s."""
    drift = make(6)
    keys = jr.split(jr.key(1), 5)
    drawn = [jr.normal(k, (3, n)) for k, n in zip(keys, (6, 2), strict=False)]
    biases = jr.normal(keys[2], (3, 2)), jr.normal(keys[3], (2,))
    drift = eqx.tree_at(
        lambda d: [d.writes["a"], d.writes["b"], d.biases["a"], d.biases["b"]],
        drift,
        [*drawn, *biases],
    )
    w = {"a": jr.normal(keys[4], (3, 2)), "b": jnp.array([0.3, -1.0]), "c": None}
    summary = jnp.array([0.5, -0.2, 1.5])
    found = drift(jnp.array(0.4), w, summary)

    flat = np.concatenate([np.ravel(w["a"]) / 0.5, np.ravel(w["b"]) / 2.0])
    first = np.concatenate(
        [drift.reads["a"], drift.reads["b"], drift.read_rest.layers[0].weight[:1]]
    )
    rest = drift.read_rest.layers[0]
    z = np.concatenate([flat, [0.4]]) @ first
    z = np.tanh(z + summary @ rest.weight[1:] + rest.bias)
    one, two = drift.hidden.layers
    z = np.tanh(np.tanh(z @ one.weight + one.bias) @ two.weight + two.bias)
    last = np.concatenate([drift.writes["a"], drift.writes["b"]], axis=1)
    out = z @ last + np.concatenate([np.ravel(b) for b in biases])
    np.testing.assert_allclose(np.ravel(found["a"]), 0.3 * out[:6], rtol=1e-4)
    np.testing.assert_allclose(found["b"], 0.1 * out[6:], rtol=1e-4)
    assert found["c"] is None


def test_it_starts_at_zero():
    drift = make(6)
    w = {"a": jnp.ones((3, 2)), "b": jnp.ones(2), "c": None}
    for leaf in jax.tree.leaves(drift(jnp.array(0.4), w, jnp.ones(3))):
        np.testing.assert_array_equal(leaf, 0.0)


@pytest.mark.parametrize("widths", [(), (3, 0), (-1,)])
def test_widths_are_checked(widths):
    with pytest.raises(ValueError, match=r"`width_sizes` must be one or more positive"):
        WeightDrift(
            jnp.zeros(2),
            width_sizes=widths,
            weight_scale=1.0,
            drift_scale=1.0,
            key=jr.key(0),
        )
