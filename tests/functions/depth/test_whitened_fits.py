"""Samples and fits over a whitened SDE-BNN: random functions with a depth."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X as ROWS, small_model

from ornstein.data._base import Split
from ornstein.functions import (
    SWAG,
    AbstractRandomFunction,
    Deterministic,
    Ensemble,
    Integrator,
    LevyCiesielski,
    MCDropout,
    MeanField,
    WhitenedSDEBNN,
    trajectory,
    whiten,
    with_solver,
)
from ornstein.likelihood import Gaussian
from ornstein.mcmc import HMC
from ornstein.nn import MLP
from ornstein.prior import GaussianPrior
from ornstein.sampling import sample
from ornstein.sde import Fixed
from ornstein.train import fit

X = jnp.asarray(ROWS)
SPLIT = Split(ROWS, np.sin(ROWS.sum(axis=1, keepdims=True)))


def network(seed: int = 0) -> WhitenedSDEBNN:
    how = Integrator(stepsize=Fixed(0.25))
    model = small_model(num_inducing=0, integrator=how, key=jr.key(seed))
    return whiten(model, LevyCiesielski(4))


def mean_field() -> AbstractRandomFunction:
    model = MeanField(network(), GaussianPrior(1.0), init_scale=0.3)
    return fit(model, SPLIT, Gaussian(0.3), key=jr.key(1), num_epochs=3).model


def samples() -> AbstractRandomFunction:
    return sample(
        network(),
        SPLIT,
        Gaussian(0.3),
        kernel=HMC(num_integration_steps=3),
        prior=GaussianPrior(1.0),
        key=jr.key(1),
        num_chains=2,
        num_warmup=10,
        num_samples=5,
    )


def swag() -> AbstractRandomFunction:
    drawn = lambda a: a[None] + 0.1 * jr.normal(jr.key(3), (4, *a.shape))
    params = eqx.filter(network(), eqx.is_inexact_array)
    return SWAG.from_iterates(network(), jax.tree.map(drawn, params), rank=3)


FITS = {
    "MeanField": mean_field,
    "samples": samples,
    "SWAG": swag,
    "Ensemble": lambda: Ensemble([network(0), network(1)]),
    "Deterministic": lambda: Deterministic(network()),
}


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_a_fit_has_the_trajectory_of_its_draw_and_a_dial(make):
    """The last hidden units, read out, are the draw's output; finer steps move it.
    Catches (seen) a trajectory of another draw, and a dial that turns nothing."""
    model = make()
    key, index = jr.key(5), 3
    (states,) = trajectory(model, X, np.linspace(0, 1, 5), key=key, index=index)
    assert states.hidden.shape == (5, 6, 3)
    readout = model.network_at(index, key=key).readout.module()
    output = model(X, key=key, index=index).output
    np.testing.assert_allclose(readout(states.hidden[-1]), output, atol=1e-5)
    fine = with_solver(model, stepsize=Fixed(1 / 64))
    moved = jnp.abs(fine(X, key=key, index=index).output - output).max()
    assert 1e-6 < float(moved) < 0.5


def test_mean_field_over_a_path_spends_what_its_modes_say():
    """KL is ½ Σ (μ² + s² − 1 − ln s²) over all coordinates."""
    model = MeanField(network(), GaussianPrior(1.0), init_scale=0.3)
    arrays = jax.tree.leaves(eqx.filter(network(), eqx.is_inexact_array))
    squares = sum(float((a**2).sum()) for a in arrays)
    count = sum(a.size for a in arrays)
    kl = 0.5 * (squares + count * (0.09 - 1 - np.log(0.09)))
    assert float(model(X, key=jr.key(0), index=0).kl) == pytest.approx(kl, rel=1e-4)


def test_a_function_without_depth_has_no_trajectory():
    mlp = MLP(2, 1, (3,), key=jr.key(0))
    for model in (Deterministic(mlp), MCDropout(mlp, rate=0.1)):
        with pytest.raises(TypeError, match=r"needs a function that solves an equat"):
            trajectory(model, X, np.array([0.0, 1.0]), key=jr.key(0))
