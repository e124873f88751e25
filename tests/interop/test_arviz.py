"""Samples as ArviZ sees them."""

import dataclasses
import sys

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
from arviz_import import import_arviz

import ornstein as orn
from ornstein.functions import PosteriorSamples, r_hat
from ornstein.interop import to_arviz
from ornstein.nn import PerExample


def linear_samples():
    network = PerExample(eqx.nn.Linear(2, 1, key=jr.key(0)))
    params, frame = eqx.partition(network, eqx.is_inexact_array)
    rng = np.random.default_rng(0)
    draw = lambda a: rng.normal(size=(4, 50, *a.shape)).astype("float32")
    scale = eqx.filter(orn.Gaussian(1.0, learn_scale=True), eqx.is_array)
    positions = jax.tree.map(draw, (params, scale))
    info = {
        "energy": rng.normal(size=(4, 50)),
        "is_divergent": rng.random((4, 50)) < 0.1,
        "is_sampling": np.ones((4, 50), bool),
    }
    likelihood = eqx.filter(
        orn.Gaussian(1.0, learn_scale=True), eqx.is_array, inverse=True
    )
    return PosteriorSamples(frame, likelihood, positions, info=info)


def test_arviz_sees_the_same_chains():
    """Catches chains and draws that are swapped, and statistics under no name."""
    arviz = import_arviz()
    samples = linear_samples()
    x = np.ones((3, 2), "float32")
    data = to_arviz(samples, x=x)
    assert dict(data.posterior.sizes)["chain"] == 4
    assert dict(data.posterior.sizes)["draw"] == 50
    weight, bias, log_scale = jax.tree.leaves(samples.positions)
    np.testing.assert_array_equal(data.posterior["module.weight"], weight)
    np.testing.assert_array_equal(data.posterior["likelihood.log_scale"], log_scale)
    function = np.einsum("csoi,ri->csro", weight, x) + bias[:, :, None]
    np.testing.assert_allclose(data.posterior["function"], function, rtol=1e-5)
    theirs = arviz.rhat(data.posterior)["module.bias"].to_numpy()
    np.testing.assert_allclose(r_hat(bias), theirs, rtol=0.01)
    np.testing.assert_array_equal(
        data.sample_stats["diverging"], samples.info["is_divergent"]
    )
    np.testing.assert_allclose(arviz.bfmi(data), samples.e_bfmi(), rtol=0.01)


def test_energies_of_batches_are_no_energy_of_arvizs():
    """Catches (seen) an E-BFMI of the noise of batches."""
    import_arviz()
    samples = linear_samples()
    energy = samples.info["energy"]
    info = samples.info | {"gradient_norm": np.ones((4, 50))}
    stats = to_arviz(dataclasses.replace(samples, info=info)).sample_stats
    np.testing.assert_array_equal(stats["batch_energy"], energy)
    assert "energy" not in stats


def test_without_arviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"ornstein\[arviz\]"):
        to_arviz(linear_samples())
