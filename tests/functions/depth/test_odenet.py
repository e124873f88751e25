"""ODE networks against closed forms, and how rough their dynamics are.

Seen failing: a time derivative left out of the second derivative of f_h, moving weights
left out of it, a square without its mean, the drift network's units doubled.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import small_model
from jax.scipy.linalg import expm

from ornstein.data import Split
from ornstein.functions import (
    SWAG,
    Deterministic,
    Flipout,
    HyperODEBlock,
    HyperODENet,
    Integrator,
    LocalReparameterised,
    MeanField,
    ODEBlock,
    ODENet,
    PosteriorSamples,
    Roughness,
    WeightDrift,
    whiten,
    with_roughness,
)
from ornstein.functions.depth._block_equation import BlockEquation
from ornstein.functions.depth._hidden_units import DepthState, velocity
from ornstein.functions.depth._whitened import Standardised, WhitenedBlock
from ornstein.likelihood import Gaussian
from ornstein.nn import ConvBlock
from ornstein.sde import (
    SRA1,
    Adaptive,
    EulerHeun,
    Fixed,
    Heun,
    Midpoint,
    Milstein,
    OrnsteinUhlenbeck,
    ReversibleHeun,
    ShARK,
    StratonovichMilstein,
)
from ornstein.train import fit

FINE = Integrator(Midpoint(), Fixed(0.01))
A, C = 0.7, 0.4


class Linear(eqx.Module):
    """dh = h Aᵀ."""

    matrix: jax.Array

    def __call__(self, t: Any, h: jax.Array) -> jax.Array:
        return h @ self.matrix.T


def constant_drift(weights: Any, value: float) -> WeightDrift:
    """dw = value for every weight, whatever w and t."""
    unit = jax.tree.map(lambda _: 2.0, weights)
    drift = WeightDrift(
        weights, width_sizes=(2,), weight_scale=unit, drift_scale=unit, key=jr.key(0)
    )
    is_biases = lambda d: d.biases
    biases = jax.tree.map(lambda b: jnp.full_like(b, value / 2.0), drift.biases)
    return eqx.tree_at(is_biases, drift, biases)


def scalar(integrator: Integrator) -> ODEBlock:
    return ODEBlock(Linear(jnp.full((1, 1), A)), integrator)


def moving(integrator: Integrator) -> HyperODEBlock:
    """dh = (A + C t) h."""
    dynamics = Linear(jnp.full((1, 1), A))
    drift = constant_drift(eqx.filter(dynamics, eqx.is_inexact_array), C)
    return HyperODEBlock(dynamics, drift, integrator)


def rough(integrator: Integrator, order: int) -> Integrator:
    return with_roughness(integrator, order)


def test_a_linear_ode_is_the_matrix_exponential(getkey):
    matrix = 0.5 * jr.normal(getkey(), (3, 3))
    x = jr.normal(getkey(), (4, 3))
    network = ODENet((ODEBlock(Linear(matrix), FINE),), lambda h: h)
    # Steps are coarse where the drawn matrix is large.
    np.testing.assert_allclose(network(x), x @ expm(matrix).T, rtol=1e-3, atol=1e-3)


def test_moving_weights_have_their_closed_form(getkey):
    x = jr.normal(getkey(), (4, 1))
    ys, _ = moving(FINE).solve(x, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(
        ys.weights.matrix.ravel(), [A, A + C / 2, A + C], rtol=1e-5
    )
    growth = [1.0, math.exp(A / 2 + C / 8), math.exp(A + C / 2)]
    expected = jnp.outer(jnp.asarray(growth), x[:, 0])
    np.testing.assert_allclose(ys.hidden[..., 0], expected, rtol=1e-4)


def test_a_hyper_network_starts_as_the_network_that_it_is_made_of(getkey):
    plain = ODENet.for_images((8, 8, 2), 3, width=4, key=getkey())
    hyper = HyperODENet(plain, key=getkey())
    x = jr.normal(getkey(), (5, 8, 8, 2))
    np.testing.assert_allclose(plain(x), hyper(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_roughness_of_exponential_growth(getkey, order: int):
    """h = h₀ exp(A t), so that dᴷh/dtᴷ = Aᴷ h."""
    x = jr.normal(getkey(), (4, 1))
    _, report = scalar(rough(FINE, order)).solve(x, np.array([0.0, 1.0]))
    integral = (math.exp(2 * A) - 1) / (2 * A)
    expected = A ** (2 * order) * jnp.mean(x**2) * integral
    np.testing.assert_allclose(report.roughness, expected, rtol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_roughness_of_moving_weights(getkey, order: int):
    """h' = (A + C t) h, h'' = (C + (A + C t)²) h, by quadrature."""
    x = jr.normal(getkey(), (4, 1))
    _, report = moving(rough(FINE, order)).solve(x, np.array([0.0, 1.0]))
    t = np.linspace(0, 1, 2001)
    rate = A + C * t
    factor = rate if order == 1 else C + rate**2
    square = (factor * np.exp(A * t + C * t**2 / 2)) ** 2
    expected = np.mean(x**2) * np.trapezoid(square, t)
    np.testing.assert_allclose(report.roughness, expected, rtol=1e-3)


class Level(eqx.Module):
    """dh = the weight, whatever h."""

    weight: jax.Array

    def __call__(self, t: Any, h: jax.Array) -> jax.Array:
        return self.weight * jnp.ones_like(h)


def test_weights_without_noise_move_in_the_second_derivative():
    """h' = w and w' = -1.5 w of an SDE-BNN without noise: h'' = -1.5 w. Catches (seen)
    weights that stand still where the derivative along depth is taken."""
    weights, point = eqx.partition(Level(jnp.array(3.0)), eqx.is_inexact_array)
    integrator = rough(FINE, 2)
    zero = lambda t, w, summary: jax.tree.map(jnp.zeros_like, w)
    process = OrnsteinUhlenbeck(rate=1.5, scale=1.0)
    equation = BlockEquation(point, zero, process, None, integrator)
    state = DepthState(jnp.ones((1, 1)), jnp.zeros(()), weights)
    moved = equation.drift(jnp.array(0.0), state, None)
    assert moved.roughness == pytest.approx(4.5**2)
    number = jax.tree.map(lambda _: 1.0, weights)
    block = WhitenedBlock(
        start=weights,
        path=None,
        points=Standardised.of(point, 1.0),
        coordinates=None,
        start_scale=number,
        sigma=number,
        rate=1.5,
        integrator=integrator,
        reverts_to_start=False,
        window=(0.0, 1.0),
    )
    _, report = block.solve(jnp.ones((1, 1)), np.array([0.0, 1.0]))
    expected = 4.5**2 * (1 - math.exp(-3)) / 3
    assert report.roughness == pytest.approx(expected, rel=1e-3)


def test_the_second_derivative_of_convolutions_is_that_of_differences(getkey, x64):
    """Forward mode stops at our convolutions; the reverse of the reverse doesn't."""
    block = ConvBlock(2, 3, key=getkey())
    block = jax.tree.map(
        lambda a: a.astype(float) if eqx.is_inexact_array(a) else a, block
    )
    h, t, e = jr.normal(getkey(), (2, 4, 4, 2)), jnp.asarray(0.3), 1e-4
    _, square = velocity(block, t, h, rough(FINE, 2))
    dh = block(t, h)
    second = (block(t + e, h + e * dh) - block(t - e, h - e * dh)) / (2 * e)
    np.testing.assert_allclose(square, jnp.mean(second**2), rtol=1e-6)


def test_what_a_solve_costs():
    x = jnp.ones((2, 1))
    ts = np.array([0.0, 1.0])
    fixed = Integrator(Midpoint(), Fixed(0.25))
    assert scalar(fixed).solve(x, ts)[1].num_drift_evaluations == 8
    loose, tight = (Integrator(Heun(), Adaptive(tol, tol)) for tol in (1e-2, 1e-6))
    costs = [
        int(scalar(how).solve(x, ts)[1].num_drift_evaluations) for how in (loose, tight)
    ]
    assert costs[0] < costs[1]
    reversible = Integrator(ReversibleHeun(), Fixed(0.25))
    gap = scalar(reversible).solve(x, ts)[1].reversible_gap
    assert 0 < gap < 0.1


def test_a_method_reports_what_its_network_solved():
    """Catches `SWAG` and `PosteriorSamples` that drop the report (seen: `None`)."""
    network = ODENet.for_vectors(2, 1, width_sizes=(4,), key=jr.key(0))
    params, fixed = eqx.partition(network, eqx.is_inexact_array)
    iterates = jax.tree.map(lambda a: jnp.stack([a, a]), params)
    chains = jax.tree.map(lambda a: a[None], iterates)
    for model in (
        Deterministic(network),
        MeanField(network),
        SWAG.from_iterates(network, iterates, rank=2),
        PosteriorSamples(fixed, Gaussian(1.0), (chains, None), info={}),
    ):
        draw = model(jnp.ones((3, 2)), key=jr.key(1), index=0)
        assert draw.report.num_drift_evaluations == 20


def test_a_penalty_makes_dynamics_smoother():
    # Over 50 keys the ratio was 0.06 to 0.55.
    x_key, network_key, key = jr.split(jr.key(0), 3)
    x = jr.normal(x_key, (64, 2))
    split = Split(np.asarray(x), np.asarray(jnp.sin(3 * x[:, :1])))
    network = ODENet.for_vectors(2, 1, integrator=Integrator(), key=network_key)
    found = [
        fit(
            Deterministic(network),
            split,
            Gaussian(0.1),
            key=key,
            num_epochs=60,
            batch_size=64,
            learning_rate=1e-2,
            regularise_dynamics=Roughness(weight),
        ).history["roughness"][-1]
        for weight in (1e-6, 10.0)
    ]
    assert found[1] < 0.5 * found[0]


@pytest.mark.parametrize("estimator", [LocalReparameterised(), Flipout()])
def test_outputs_drawn_at_every_step_are_refused(estimator):
    network = ODENet.for_vectors(2, 1, key=jr.key(0))
    with pytest.raises(ValueError, match="must meet the same weights"):
        MeanField(network, noise=estimator)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_inputs_of_fewer_digits_than_the_weights(x64, dtype):
    """As splits hold them, under `jax_enable_x64`: hidden units have the weights' type.
    Caught (seen): a scan whose carry changed its type."""
    x, key = jnp.ones((4, 2), dtype), jr.key(0)
    models = {
        "SDEBNN": lambda: small_model()(x, key=key).output,
        "whitened": lambda: whiten(small_model())(x),
        "ODENet": lambda: ODENet.for_vectors(2, 1, key=key)(x),
        "HyperODENet": lambda: HyperODENet(
            ODENet.for_vectors(2, 1, key=key), drift_widths=(2,), key=key
        )(x),
    }
    with jax.numpy_dtype_promotion("standard"):
        for name, call in models.items():
            assert jax.eval_shape(call).dtype == jnp.float64, name


@pytest.mark.parametrize(
    "solver", [SRA1(), ShARK(), EulerHeun(), StratonovichMilstein(), Milstein()]
)
def test_solvers_of_noise_are_refused_without_any(solver):
    block = scalar(Integrator(solver, Fixed(0.25)))
    with pytest.raises(ValueError, match="is for equations with noise"):
        block.solve(jnp.ones((1, 1)), np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: with_roughness(small_model(), 2), "rough in depth"),
        (lambda: Roughness(0.0), "must be positive, got 0.0"),
        (lambda: Roughness(1.0, order=3), "must be 1 or 2, got 3"),
        (lambda: Integrator(roughness_order=3), "must be 0, 1 or 2, got 3"),
        (
            lambda: ODENet.for_images((7, 8, 1), 2, key=jr.key(0)),
            "cannot be halved 1 times",
        ),
    ],
)
def test_bad_input(make, message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_without_an_equation_has_no_dynamics():
    with pytest.raises(TypeError, match="got MLP"):
        with_roughness(eqx.nn.MLP(1, 1, 1, 1, key=jr.key(0)), 1)
