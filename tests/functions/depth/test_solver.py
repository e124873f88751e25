"""`with_solver`: other numerics, the same function."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X, away_from_prior, draw, small_model

from ornstein.functions import Integrator, ODENet, WeightPrior, with_solver
from ornstein.nn import MLP
from ornstein.sde import (
    Adaptive,
    Backprop,
    Checkpointed,
    EulerMaruyama,
    Fixed,
    Grid,
    Heun,
    Midpoint,
    Reversible,
    ReversibleHeun,
)


def test_the_dial_changes_numerics_only():
    """Every array of the model stays; the integrator has the new choice, and keeps
    the others."""
    model = away_from_prior(small_model())
    turned = with_solver(model, solver=Midpoint())
    turned = with_solver(turned, stepsize=Fixed(0.1), gradient=Checkpointed(every=2))
    before, after = (
        jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (model, turned)
    )
    assert len(before) == len(after)
    assert all(a is b for a, b in zip(before, after, strict=True))
    integrator = turned.layers[-1].integrator
    assert isinstance(integrator.solver, Midpoint)
    assert integrator.stepsize.dt == 0.1
    assert isinstance(integrator.gradient, Checkpointed)
    back = with_solver(
        turned, solver=EulerMaruyama(), stepsize=Fixed(0.2), gradient=Backprop()
    )
    assert eqx.tree_equal(model, back)


def test_smaller_steps_on_one_path_converge():
    """First order, as noise is additive. Catches `noise_dt` that does not fix the
    path (seen): the differences would then not shrink."""
    model = away_from_prior(small_model())
    outputs = {}
    for num_steps in (8, 16, 32, 128):
        turned = with_solver(model, stepsize=Fixed(1 / num_steps, noise_dt=1 / 128))
        found = [draw(turned, X, jr.key(seed)).output for seed in range(24)]
        outputs[num_steps] = np.stack(found)
    error = {n: np.sqrt(np.mean((outputs[n] - outputs[128]) ** 2)) for n in (8, 16, 32)}
    assert error[8] < np.std(outputs[128]) / 4
    # (1/8 - 1/128) / (1/16 - 1/128) and so on.
    assert 1.7 < error[8] / error[16] < 2.6, error
    assert 1.8 < error[16] / error[32] < 2.9, error


@pytest.mark.slow
def test_reversible_gradients_are_backprops():
    """Of the whole model's every parameter, in single precision. Catches a parameter
    that the reverse pass does not reach, and (seen) a part of a cotangent left out:
    w0's mean and spread, the drift, Z."""
    model = away_from_prior(
        small_model(
            prior=WeightPrior(rate=1.0),
            integrator=Integrator(ReversibleHeun(), Fixed(0.2)),
        )
    )

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        found = model(jnp.asarray(X), key=jr.key(3))
        return jnp.mean(found.output**2) + found.kl / 100

    backprop = jax.tree.leaves(gradient(model))
    exact = jax.tree.leaves(gradient(with_solver(model, gradient=Reversible())))
    labels = model.labels()
    num_trained = sum(label == "weights" for label in jax.tree.leaves(labels))
    scale = max(float(np.abs(a).max()) for a in backprop)
    moved = [a for a in backprop if np.abs(a).max() > 1e-6]
    assert len(moved) >= num_trained
    for a, b in zip(backprop, exact, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5 * scale)


def test_reversible_gradients_of_convolutions_are_backprops():
    """Catches (seen) an array that a convolution holds and its program does not make,
    which `Reversible` cannot differentiate past.
    """
    how = Integrator(ReversibleHeun(), Fixed(0.5))
    net = ODENet.for_images(
        (4, 4, 1), 2, width=2, augment=1, integrator=how, key=jr.key(0)
    )
    gradient = eqx.filter_jit(
        eqx.filter_grad(lambda net: jnp.mean(net(jnp.ones((1, 4, 4, 1))) ** 2))
    )
    exact = gradient(with_solver(net, gradient=Reversible()))
    for a, b in zip(*map(jax.tree.leaves, (gradient(net), exact)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gradient": Reversible()}, "`Reversible` walks the solver backwards"),
        (
            {
                "solver": ReversibleHeun(),
                "stepsize": Adaptive(),
                "gradient": Reversible(),
            },
            "`Reversible` needs a fixed grid",
        ),
        ({"stepsize": Adaptive()}, "solver with an error estimate, which `EulerM"),
        (
            {"stepsize": Adaptive(), "solver": Midpoint(), "gradient": Reversible()},
            "Rev",
        ),
    ],
)
def test_impossible_pairs_are_refused(changes, message):
    """Before any solve, by `with_solver` itself (seen: Euler with adaptive steps was
    accepted, and failed at the first call)."""
    with pytest.raises(ValueError, match=message):
        with_solver(small_model(), **changes)


def test_possible_pairs_are_not():
    model = small_model()
    with_solver(model, solver=Heun(), stepsize=Adaptive())
    with_solver(model, solver=Midpoint(), stepsize=Grid(num_substeps=4))


def test_a_model_without_an_equation_is_refused():
    network = MLP(2, 1, (3,), key=jr.key(0))
    with pytest.raises(TypeError, match=r"differential equation.*`SDEBNN`, got MLP"):
        with_solver(network, stepsize=Fixed(0.1))
