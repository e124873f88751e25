"""Drifts of a latent path by themselves: the pull to an observation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from ornstein.functions import (
    BridgeDrift,
    ContextDrift,
    LatentODE,
    LatentSDE,
    NetDrift,
    NoRecognition,
)

NOISE, DIFFUSION, VALUE = 0.3, 0.7, 1.4


def bridge(slack: float) -> BridgeDrift:
    """To a level that is the context's only number."""
    drift = BridgeDrift(1, 2, (), slack=slack, key=jr.key(0))
    (layer,) = drift.pull.layers
    layer = eqx.tree_at(
        lambda layer: (layer.weight, layer.bias),
        layer,
        (jnp.array([[1.0, 0.0]]), jnp.zeros(2)),
    )
    return eqx.tree_at(lambda drift: drift.pull.layers, drift, (layer,))


@pytest.mark.parametrize("wait", [0.0, 0.05, 2.0])
def test_pull_is_exact_for_brownian_motion(wait: float):
    r"""$g^2 \partial_z \log p(y | z_t = z)$ by differentiation.

    Catches a wait among the levels, a slack that is not r at first, another sign.
    """

    def log_prob(z):
        variance = NOISE**2 + DIFFUSION**2 * wait
        return -((VALUE - z) ** 2) / (2 * variance)

    drift = bridge(NOISE**2 / DIFFUSION**2)
    z = jnp.array([-0.4])
    found = drift(0.0, z, jnp.array([VALUE, wait]))
    exact = DIFFUSION**2 * jax.grad(lambda z: log_prob(z[0]))(z)
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_network_beside_the_pull_sees_everything():
    """Catches a rest that is dropped, or does not see time or wait."""
    drift = BridgeDrift(2, 4, (3,), slack=0.1, key=jr.key(0))
    rest = ContextDrift(2, 4, (3,), output_scale=1.0, key=jr.key(1))
    other = eqx.tree_at(lambda drift: drift.rest, drift, rest)
    at = (0.3, jnp.array([0.1, -0.2]), jnp.arange(4.0))
    np.testing.assert_allclose(other(*at) - drift(*at), rest(*at), rtol=1e-4)


def test_bad_slack():
    with pytest.raises(ValueError, match="`slack` must be one positive number"):
        BridgeDrift(1, 2, (), slack=0.0, key=jr.key(0))


@pytest.mark.parametrize("kind", [LatentSDE, LatentODE])
def test_start_drift_scales_the_network_at_first(kind):
    z = jnp.array([0.5, -2.0])

    def drift(scale):
        options = {"activation": jax.nn.softplus, "start_drift": scale}
        model = kind.make(NoRecognition(2), 1, **options, key=jr.key(0))
        return model.prior_drift if kind is LatentSDE else model.drift

    whole = drift(1.0)
    assert isinstance(whole, NetDrift)
    assert np.all(np.abs(whole(0.0, z)) > 0)
    np.testing.assert_allclose(drift(0.1)(0.0, z), 0.1 * whole(0.0, z), rtol=1e-5)
    np.testing.assert_array_equal(drift(0.0)(0.0, z), np.zeros(2))
