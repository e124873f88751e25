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
    GridIncrements,
    Integrator,
    LevyCiesielski,
    MCDropout,
    MeanField,
    PosteriorSamples,
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
from ornstein.sde import Adaptive, Fixed, Grid, Heun
from ornstein.train import fit

X = jnp.asarray(ROWS)
SPLIT = Split(ROWS, np.sin(ROWS.sum(axis=1, keepdims=True)))


def network(seed: int = 0, coordinates=None) -> WhitenedSDEBNN:
    how = Integrator(stepsize=Fixed(0.25))
    model = small_model(num_inducing=0, integrator=how, key=jr.key(seed))
    return whiten(model, LevyCiesielski(4) if coordinates is None else coordinates)


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


def over_increments() -> WhitenedSDEBNN:
    return network(coordinates=GridIncrements())


def samples_over_increments() -> PosteriorSamples:
    """Two of each of two chains, as `sample` would keep them."""
    params, rest = eqx.partition(over_increments(), eqx.is_inexact_array)
    positions = jax.tree.map(lambda a: jnp.ones((2, 2, *a.shape)), (params, None))
    return PosteriorSamples(rest, Gaussian(0.3), positions, info={})


FITS_OF_INCREMENTS = {"network": over_increments, "samples": samples_over_increments}


@pytest.mark.parametrize("make", FITS_OF_INCREMENTS.values(), ids=FITS_OF_INCREMENTS)
@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"solver": "heun"}, TypeError, r"`solver` must be .*got 'heun': .*=Heun\(\)"),
        ({"stepsize": 0.1}, TypeError, r"`stepsize` must be .* got 0.1: .*=Fixed\("),
        ({"gradient": Heun()}, TypeError, r"`gradient` must be .*got Heun.*=Backprop"),
        ({"stepsize": Adaptive()}, ValueError, "known beforehand, got `Adaptive`: use"),
        (
            {"solver": Heun(), "stepsize": Adaptive()},
            ValueError,
            r"known beforehand, got `Adaptive`: use `Fixed\(dt\)`",
        ),
        (
            {"stepsize": Grid(np.linspace(0, 1, 5))},
            ValueError,
            r"`Grid\(ts\)` is one: use `Fixed\(dt\)`",
        ),
        ({"stepsize": Fixed(0.3)}, ValueError, "0.3 does not divide the interval"),
        ({"stepsize": Fixed(0.125)}, ValueError, "dt one of 0.25, 0.5, 1; or `Levy"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_a_dial_that_a_path_does_not_have_is_refused(make, changes, error, said):
    """At once, and not by the next prediction. Catches (seen) an array of steps that
    was taken for a parameter without samples, and half steps that were let through."""
    with pytest.raises(error, match=said):
        with_solver(make(), **changes)


def test_steps_that_a_path_has_are_taken():
    """Twice as long ones, and substeps of no grid of one's own."""
    for make in FITS_OF_INCREMENTS.values():
        for stepsize in (Fixed(0.5), Grid(num_substeps=2)):
            model = with_solver(make(), stepsize=stepsize)
            is_integrator = lambda node: isinstance(node, Integrator)
            nodes = jax.tree.leaves(model, is_leaf=is_integrator)
            found = [a.stepsize for a in nodes if is_integrator(a)]
            assert found
            assert all(a == stepsize for a in found)
