"""What an SDE-BNN is compared with: without drift, without noise, its prior."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import (
    X,
    away_from_prior,
    blocks_of,
    draw,
    small_model,
    trajectory,
)

from ornstein.functions import (
    Integrator,
    WeightPrior,
    prior_of,
    without_drift,
    without_noise,
)
from ornstein.sde import (
    SRA1,
    EulerHeun,
    Fixed,
    Heun,
    Milstein,
    ShARK,
    StratonovichMilstein,
)


def test_without_drift_weights_move_as_under_the_prior():
    """The same path as of the model that has not learned a drift yet, and no path KL.
    A drift of one's own, without parameters, is silenced too: catches (seen)
    parameters times zero in place of the drift."""
    plain = small_model()
    expected = draw(plain, X, jr.key(1))
    own = lambda t, w, summary: jax.tree.map(jnp.ones_like, w)
    where = lambda m: m.layers[-1].drift
    for model in (away_from_prior(plain), eqx.tree_at(where, plain, own)):
        found = draw(without_drift(model), X, jr.key(1))
        np.testing.assert_allclose(found.output, expected.output, rtol=1e-5)
        assert float(found.terms["kl_path"]) == 0.0
        assert float(found.kl) == pytest.approx(float(expected.kl), rel=1e-6)
    assert float(draw(away_from_prior(plain), X, jr.key(1)).terms["kl_path"]) > 1.0


@pytest.mark.parametrize("reverts_to_start", [False, True])
def test_without_noise_is_an_ordinary_equation(reverts_to_start):
    """Euler's steps by hand from the mean of q(w0), whatever the key, at no KL.
    Catches (seen) a start that is still drawn."""
    prior = WeightPrior(rate=0.7, reverts_to_start=reverts_to_start)
    model = away_from_prior(small_model(prior=prior))
    twin = without_noise(model)
    found = draw(twin, X, jr.key(1))
    np.testing.assert_array_equal(found.output, draw(twin, X, jr.key(2)).output)
    assert float(found.kl) == float(found.terms["kl_path"]) == 0.0

    (block,) = blocks_of(model)
    augment = model.layers[0]
    start, static = eqx.partition(block.dynamics, eqx.is_inexact_array)
    w, h, z = start, augment(jnp.asarray(X)), augment(model.inducing)
    for k in range(5):
        t = jnp.asarray(0.2 * k)
        f_h = eqx.combine(w, static)
        nn = block.drift(t, w, z.reshape(-1))
        h, z = h + 0.2 * f_h(t, h), z + 0.2 * f_h(t, z)

        def step(w, n, w0):
            return w + 0.2 * (n - 0.7 * (w - w0 if reverts_to_start else w))

        w = jax.tree.map(step, w, nn, start)
    np.testing.assert_allclose(found.output, model.readout(h), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("solver", "apart"),
    [
        (Milstein(), 0.0),
        (EulerHeun(), 0.0),
        (StratonovichMilstein(), 0.0),
        (SRA1(), 3e-3),
        (ShARK(), 3e-3),
        (Heun(), 0.0),
    ],
    ids=lambda a: type(a).__name__,
)
def test_without_noise_a_solver_of_noise_alone_is_replaced(solver: Any, apart: float):
    """What the model itself tends to as σ does to 0, by the same formula or one of
    the same order. Catches (seen) a solver that is kept, and refuses; Euler's for
    `SRA1` would be 0.02 away."""
    prior = WeightPrior(sigma=1e-6, rate=2.0)
    how = Integrator(solver, Fixed(0.1))
    model = small_model(prior=prior, start_width=None, integrator=how)
    found = draw(without_noise(model), X, jr.key(1)).output
    np.testing.assert_allclose(
        found, draw(model, X, jr.key(1)).output, atol=apart + 2e-5
    )


PRIORS = {
    "absolute": WeightPrior(sigma=0.5, rate=2.0, scale=0.8, is_relative=False),
    "relative": WeightPrior(sigma=0.5, rate=2.0, scale=0.8),
    "brownian": WeightPrior(sigma=0.5, rate=0.0, scale=0.8),
    "reverting": WeightPrior(sigma=0.5, rate=2.0, scale=0.8, reverts_to_start=True),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("relative"),
        pytest.param("absolute"),
        pytest.param("brownian", marks=pytest.mark.slow),
        pytest.param("reverting", marks=pytest.mark.slow),
    ],
)
def test_prior_of_draws_from_the_prior(name):
    """w(0) ~ N(0, ρ²), and w(1) as the Euler chain's recursion has it, leaf by leaf.
    Catches units of σ, a mean that is not forgotten (seen), q's spread."""
    prior, num_draws = PRIORS[name], 600
    model = prior_of(
        away_from_prior(
            small_model(prior=prior, integrator=Integrator(stepsize=Fixed(0.1)))
        )
    )
    paths = eqx.filter_jit(
        jax.vmap(
            lambda k: model.trajectory(jnp.asarray(X[:1]), np.array([0.0, 1.0]), key=k)
        )
    )
    (ys,) = paths(jr.split(jr.key(2), num_draws))
    for layer, num_inputs in zip(ys.weights.layers, (3 + 1, 5 + 1), strict=True):
        scale = 0.8 / num_inputs**0.5 if prior.is_relative else 0.8
        sigma = 0.5 * scale if prior.is_relative else 0.5
        moved, at_1 = 0.0, scale**2
        for _ in range(10):
            at_1 = at_1 * (1 - 0.1 * prior.rate) ** 2 + 0.1 * sigma**2
            moved = moved * (1 - 0.1 * prior.rate) ** 2 + 0.1 * sigma**2
        if prior.reverts_to_start:
            at_1 = scale**2 + moved
        for w in jax.tree.leaves(layer):
            for values, variance in ((w[:, 0], scale**2), (w[:, 1], at_1)):
                values = np.asarray(values, float).reshape(-1)
                error = np.sqrt(variance / values.size)
                assert abs(values.mean()) < 4.5 * error
                ratio = np.mean(values**2) / variance
                assert abs(ratio - 1) < 4.5 * np.sqrt(2 / values.size), name


def test_prior_of_leaves_a_point_where_it_is():
    model = away_from_prior(small_model(start_width=None))
    (ys,) = trajectory(prior_of(model), X, jr.key(1))
    (block,) = blocks_of(model)
    weights = jax.tree.leaves(eqx.filter(block.dynamics, eqx.is_inexact_array))
    for a, b in zip(weights, jax.tree.leaves(ys.weights), strict=True):
        np.testing.assert_array_equal(a, b[0])


def test_prior_of_leaves_points_beside_random_weights():
    """Two steps of Euler by hand, f_h's last layer random and its first a point.
    Catches (seen) the points of `where` set to zero, and with them all of f_h."""
    model = away_from_prior(
        small_model(
            where=lambda f_h: f_h.layers[-1],
            integrator=Integrator(stepsize=Fixed(0.5)),
        )
    )
    twin = prior_of(model)
    (ys,) = eqx.filter_jit(
        lambda m: m.trajectory(jnp.asarray(X), np.array([0.0, 0.5, 1.0]), key=jr.key(1))
    )(twin)
    (block,), (now,) = blocks_of(model), blocks_of(twin)
    (first, last), h = block.dynamics.layers, model.layers[0](jnp.asarray(X))
    for k in range(2):
        at_k = jax.tree.map(lambda a, k=k: a[k], ys.weights)
        at_k = eqx.combine(at_k.layers[-1], last)
        depth = jnp.asarray(0.5 * k)
        hidden = block.dynamics.activations[0](first(depth, h))
        h = h + 0.5 * at_k(depth, hidden)
        np.testing.assert_allclose(ys.hidden[k + 1], h, rtol=1e-4, atol=1e-5)
    points = lambda b: jax.tree.leaves(b.dynamics.layers[0])
    for a, b in zip(points(block), points(now), strict=True):
        np.testing.assert_array_equal(a, b)
    for centre in jax.tree.leaves(now.dynamics.layers[-1]):
        np.testing.assert_array_equal(centre, jnp.zeros_like(centre))


def test_a_prior_reverts_to_the_start_that_was_drawn():
    r"""Next to no noise: $w$ stays at the drawn $w_0$, which is not the mean of
    $q(w_0)$. Catches (seen) a prior that reverts to that mean, by which $w(1)$ would be
    $(1 - 0.2 \cdot 2)^5$ of the way from it."""
    prior = WeightPrior(sigma=1e-5, rate=2.0, reverts_to_start=True)
    model = small_model(prior=prior, start_width=1.0)
    (block,) = blocks_of(model)
    (ys,) = trajectory(model, X, jr.key(3))
    means = jax.tree.leaves(eqx.filter(block.dynamics, eqx.is_inexact_array))
    for mean, w in zip(means, jax.tree.leaves(ys.weights), strict=True):
        away = np.asarray(w - mean[None], float)
        size = np.max(np.abs(away[0]))
        assert size > 0.1
        np.testing.assert_allclose(away, away[:1].repeat(6, 0), atol=1e-3 * size)
