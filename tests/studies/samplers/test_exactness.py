"""The exactness table: its oracles, some of its rows, and faults that turn rows red.

A reused key is found by `jax.debug_key_reuse`, not by moments: see
tests/mcmc/test_kernels.py and tests/sgmcmc/test_kernels.py.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ornstein.exactness._cases import (
    CONSTANT_SGD,
    command_line_cases,
    expanded_claims,
    linear_cases,
    logistic_claims,
)
from ornstein.exactness._chains import (
    Plan,
    compare,
    estimate,
    extrapolate,
    known,
    run_chains,
    warm_state,
)
from ornstein.exactness._expanded_weight import expanded_weight
from ornstein.exactness._moment_equation import (
    drift_map,
    gradient_map,
    kick_map,
    lyapunov,
)
from ornstein.exactness._oracles import sghmc, sgld
from ornstein.exactness._targets import (
    BATCH_SIZE,
    Moments,
    linear_regression,
    logistic_regression,
    position_at,
    two_features,
)
from ornstein.exactness._variational import (
    draw_laplace,
    draw_swag,
    fit_mean_field,
    mean_field_optimum,
    swag_moments,
)
from ornstein.functions import Reparameterised
from ornstein.mcmc import Langevin, _isokinetic
from ornstein.potential import AbstractPotential, Potential
from ornstein.prior import AbstractLeafPrior
from ornstein.recipe import KERNELS
from ornstein.sgmcmc import SGHMC, SGLD, AdaptiveDriftSGLD, _sghmc, _sgnht
from ornstein.sgmcmc._base import kinetic_temperature
from ornstein.studies import EXPERIMENTS, Study
from ornstein.studies.samplers._exactness import claimed_rows, linear_rows

TARGET = linear_regression()
POSTERIOR = TARGET.posterior()


def is_green(rows) -> bool:
    assert [row["moment"] for row in rows] == ["mean", "covariance"]
    return all(row["within_bound"] for row in rows)


# What the oracles say


def test_posterior_solves_the_normal_equations():
    """Catches a prior or noise scale used as its square, or a lost mean."""
    whole = TARGET.potential(BATCH_SIZE)
    potential = jax.jit(lambda position: whole(position))
    at_mean = jax.grad(potential)(position_at(TARGET, POSTERIOR.mean))
    np.testing.assert_allclose(jax.tree.leaves(at_mean)[0], 0, atol=1e-4)
    at = lambda numbers: potential(position_at(TARGET, numbers))
    precision = np.linalg.inv(POSTERIOR.covariance)
    step = np.arange(5.0)
    rise = at(POSTERIOR.mean + step) - at(POSTERIOR.mean)
    assert rise == pytest.approx(0.5 * step @ precision @ step, rel=1e-5)


@pytest.mark.parametrize("is_momentum", [False, True])
def test_moment_equation_is_that_of_simulated_batches(is_momentum: bool):
    """Catches batches that count once too often, and noise of θ or v in the other.

    The obvious twin: indices drawn, sums written out, in NumPy, from a start so far
    off that the batches' Hessians make most of the spread.
    """
    rng = np.random.default_rng(0)
    num_chains, n, eta, a, q, num_steps = 40_000, 3, 0.01, 0.3, 0.004, 6
    x, y = TARGET.x, TARGET.y
    theta, v = np.full((num_chains, 5), 3.0), np.zeros((num_chains, 5))
    for _ in range(num_steps):
        rows = rng.integers(len(x), size=(num_chains, n))
        residual = np.einsum("cnd,cd->cn", x[rows], theta) - y[rows]
        gradient = len(x) / n * np.einsum("cnd,cn->cd", x[rows], residual) / 9 + theta
        noise = np.sqrt(q) * rng.normal(size=theta.shape)
        v = (1 - a) * v * is_momentum - eta * gradient + noise
        theta = theta + v
    gradients, eye = TARGET.row_gradients(), np.eye(5)
    if is_momentum:
        start = np.concatenate([[1.0], np.full(5, 3.0), np.zeros(5)])
        step = kick_map(gradients, 1 - a, eta, q, n).then(drift_map(5))
    else:
        start = np.concatenate([[1.0], np.full(5, 3.0)])
        step = gradient_map(gradients, eta * eye, q * eye, n)
    after = step.power(num_steps)
    second = after.matrix @ np.outer(start, start).ravel() + after.shift
    second = second.reshape(len(start), len(start))
    mean = second[0, 1:6]
    exact = Moments(mean, second[1:6, 1:6] - np.outer(mean, mean))
    assert is_green(compare(estimate(theta[:, None]), known(exact), POSTERIOR))
    # And it would see batches taken for the whole data.
    wrong = Moments(mean, exact.covariance / 2)
    assert not is_green(compare(estimate(theta[:, None]), known(wrong), POSTERIOR))


def test_langevin_moments_in_closed_form():
    """Catches a wrong fixed point: without batches, σ² / (1 − ε λ / 4) of each λ."""
    eye, epsilon = np.eye(5), 0.05
    found = gradient_map(
        TARGET.row_gradients(), epsilon / 2 * eye, epsilon * eye, np.inf
    ).stationary(5)
    precisions, basis = np.linalg.eigh(np.linalg.inv(POSTERIOR.covariance))
    variances = 1 / precisions / (1 - epsilon * precisions / 4)
    np.testing.assert_allclose(found.covariance, basis * variances @ basis.T)
    np.testing.assert_allclose(found.mean, POSTERIOR.mean)


def test_no_stationary_moments():
    eye = np.eye(5)
    with pytest.raises(ValueError, match="take a smaller step"):
        gradient_map(TARGET.row_gradients(), eye, eye, np.inf).stationary(5)


def test_ou_process_is_the_limit_of_small_steps():
    """Catches a Lyapunov equation without its ½, and noise of the wrong batch size."""
    drift = CONSTANT_SGD["Full"][1](TARGET.batch_noise(BATCH_SIZE))
    errors = []
    for scale in (0.02, 0.01):
        step = scale * drift
        exact = gradient_map(TARGET.row_gradients(), step, 0 * step, BATCH_SIZE)
        exact = exact.stationary(5).covariance
        near = lyapunov(TARGET, step, BATCH_SIZE).covariance
        errors.append(np.linalg.norm(near - exact) / np.linalg.norm(exact))
    assert errors[0] < 0.05
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)


def test_full_preconditioner_reaches_the_posterior():
    """By the OU process exactly (Mandt et al.), where residuals are as assumed."""
    target = two_features()
    drift = CONSTANT_SGD["Full"][1](target.batch_noise(10))
    near = lyapunov(target, drift, 10).covariance
    np.testing.assert_allclose(near, target.posterior().covariance, rtol=1e-6)


def test_quadrature():
    """Catches a grid too coarse or too narrow, and a density that is not the target's.

    Stein's identity, E ∂ᵢU = 0 and E θᵢ ∂ᵢU = 1, holds for the right density alone.
    """
    target = logistic_regression()
    mean, covariance = target.quadrature()
    for other in (target.quadrature(51, 8.0), target.quadrature(71, 10.0)):
        np.testing.assert_allclose(other.mean, mean, atol=2e-5)
        np.testing.assert_allclose(other.covariance, covariance, atol=2e-5)
    potential = target.potential(BATCH_SIZE)
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(mean, 1.5 * covariance, size=20_000)
    gaussian = np.einsum(
        "si,ij,sj->s", draws - mean, np.linalg.inv(1.5 * covariance), draws - mean
    )

    def energy_and_slope(numbers):
        position = jax.tree.map(
            lambda leaf: numbers.reshape(leaf.shape), potential.start
        )
        energy, gradient = jax.value_and_grad(potential)(position)
        return energy, jax.tree.leaves(gradient)[0].ravel()

    energies, slopes = jax.jit(jax.vmap(energy_and_slope))(jnp.asarray(draws, "f4"))
    log_weights = gaussian / 2 - np.asarray(energies, np.float64)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    sampled = weights @ draws
    se = np.sqrt(np.diag(covariance) * np.sum(weights**2))
    assert np.all(abs(sampled - mean) < 4.5 * se)
    assert np.all(se < 0.02)
    np.testing.assert_allclose(weights @ np.asarray(slopes), 0, atol=0.1)


def test_richardson_removes_a_linear_bias():
    bias = lambda step: Moments(
        POSTERIOR.mean + step, POSTERIOR.covariance * (1 + 3 * step)
    )
    found = extrapolate(known(bias(0.2)), known(bias(0.1)))
    np.testing.assert_allclose(found.moments.mean, POSTERIOR.mean)
    np.testing.assert_allclose(found.moments.covariance, POSTERIOR.covariance)
    errors = Moments(np.full(5, 3.0), np.full((5, 5), 3.0))
    twice = extrapolate(*2 * [known(POSTERIOR)._replace(standard_error=errors)])
    np.testing.assert_allclose(twice.standard_error.mean, 3 * 5**0.5)


def test_errors_come_from_the_spread_between_chains():
    """Catches samples of one chain counted as independent: they are copies here."""
    rng = np.random.default_rng(0)
    chains = rng.multivariate_normal(
        POSTERIOR.mean, POSTERIOR.covariance, size=4000, method="cholesky"
    )
    rows = compare(
        estimate(np.repeat(chains[:, None], 9, axis=1)), known(POSTERIOR), POSTERIOR
    )
    assert is_green(rows)
    assert rows[0]["power"] == pytest.approx(4.5 / 4000**0.5, rel=0.1)
    assert 4.5 * (2 / 4000) ** 0.5 < rows[1]["power"] < 5.5 * (2 / 4000) ** 0.5
    chains[0, 0] = np.nan
    assert not is_green(compare(estimate(chains[:, None]), known(POSTERIOR), POSTERIOR))


@pytest.mark.parametrize("linearised", [True, False])
def test_laplace(linearised: bool):
    """Catches a lost factor N, and a prior that counts for each batch."""
    target = linear_regression()
    drawn = draw_laplace(target, linearised=linearised, key=jax.random.key(0))
    posterior = target.posterior()
    assert is_green(compare(drawn, known(posterior), posterior))
    without_prior = target._replace(prior_scale=100.0).posterior()
    assert not is_green(compare(drawn, known(without_prior), posterior))


def test_swag():
    """Catches a lost ½ of one of the two parts, and K for K − 1."""
    iterates = np.random.default_rng(0).normal(size=(30, 5)) * np.arange(1.0, 6)
    drawn = draw_swag(iterates, 6, key=jax.random.key(0))
    exact = swag_moments(iterates, 6)
    assert is_green(compare(drawn, known(exact), exact))
    low = np.diag(np.diag(exact.covariance))
    without_low_rank = exact._replace(covariance=low)
    assert not is_green(compare(drawn, known(without_low_rank), exact))


# Some rows of the table (SGLD's and SGHMC's are below); all of them are slow


@pytest.mark.parametrize(
    "method",
    ["HMC", "ConstantSGD, Full", "MicrocanonicalLangevin", "SGLD, cosine cycles"],
)
def test_linear_row(method: str):
    (case,) = [case for case in linear_cases() if case.method == method]
    rows = linear_rows(case, seed=0)
    assert is_green(rows)
    assert all(row["power"] <= 0.1 for row in rows)
    if case.approximation is not None:
        assert 0.05 < rows[1]["ou_error"] < 0.15


def test_logistic_row():
    target = logistic_regression()
    (claim,) = [claim for claim in logistic_claims() if claim.method == "Langevin"]
    rows = claimed_rows(claim, target, known(target.quadrature()), seed=0)
    assert is_green(rows)
    assert all(row["power"] <= 0.1 for row in rows)


@pytest.mark.parametrize("left_scale", [0.5**0.5, 1.0, 1e3])
def test_expanded_weight_row(left_scale: float):
    """HMC over (v, p, q): green, and red where P's prior is wider, or left out."""
    weight = expanded_weight()
    exact = weight.quadrature()
    np.testing.assert_allclose(
        weight.quadrature(181, 6.0).covariance, exact.covariance, rtol=1e-6
    )
    potential = weight.potential(BATCH_SIZE)
    prior_scale = lambda u: u.prior.priors.left[0].scale
    assert prior_scale(potential) == pytest.approx(0.5**0.5)
    potential = eqx.tree_at(prior_scale, potential, jnp.asarray(left_scale))
    (claim,) = [claim for claim in expanded_claims() if claim.is_exact]
    kernel = claim.make(claim.step_size)
    key = jax.random.key(0)
    start = jax.tree.map(jnp.zeros_like, potential.start)
    state = warm_state(kernel, potential, start, num_steps=0, key=key)
    samples = run_chains(kernel, potential, state, plan=claim.plan, key=key)
    rows = compare(estimate(samples), known(exact), exact)
    assert is_green(rows) == (left_scale == 0.5**0.5)


@pytest.mark.slow
def test_expanded_sghmc_row():
    weight = expanded_weight()
    (claim,) = [claim for claim in expanded_claims() if not claim.is_exact]
    rows = claimed_rows(claim, weight, known(weight.quadrature()), seed=0)
    assert is_green(rows)
    assert all(row["power"] <= 0.1 for row in rows)


@pytest.mark.slow
def test_whole_table(tmp_path: Path):
    said = []
    study = Study(tmp_path, "quick", seed=0, say=said.append)
    rows = EXPERIMENTS["exactness"].run(study)
    assert [row for row in rows if not row["within_bound"]] == []
    assert [row for row in rows if row["power"] > 0.1] == []
    assert len({(row["method"], row["target"]) for row in rows}) == len(rows) / 2
    assert "dropout" in said[-1]
    methods = {row["method"].split(",")[0] for row in rows}
    assert methods >= {"HMC", "NUTS", "SGNHT", "PreconditionedSGLD", "MeanField"}
    assert methods >= {"SDEBNN", "ImplicitBNN", "LatentSDE", "Ensemble of SDEBNN"}
    at_defaults = {row["method"] for row in rows if "command line" in row["method"]}
    assert len(at_defaults) == len(KERNELS)


# Planted faults: each turns its row red


class Weighted(AbstractPotential):
    """A potential that counts its prior or its data wrong."""

    potential: Potential
    prior_weight: jax.Array
    data_weight: jax.Array

    def __call__(self, position):
        return self.potential(position)

    def estimate(self, position, *, key):
        rows = self.potential.draw_rows(key=key)
        energies = self.potential.row_energies(position, rows)
        data = self.potential.num_data * jnp.mean(energies)
        prior = self.potential.prior_energy(position)
        return self.prior_weight * prior + self.data_weight * data


@pytest.mark.parametrize(
    ("fault", "prior_weight", "data_weight", "temperature"),
    [
        (None, 1.0, 1.0, 1.0),
        ("the sign of the gradient", -1.0, -1.0, 1.0),
        ("the sign of the prior", -1.0, 1.0, 1.0),
        ("no 1/2 in the drift", 2.0, 2.0, 1.0),
        ("sqrt(2) in the noise", 1.0, 1.0, 2.0),
        ("no N/n", 1.0, BATCH_SIZE / len(TARGET.x), 1.0),
        ("10 % too much noise", 1.0, 1.0, 1.1),
    ],
)
def test_planted_in_sgld(fault, prior_weight, data_weight, temperature):
    # Arrays, so that one program serves all.
    kernel = SGLD(0.04, jnp.asarray(temperature))
    potential = Weighted(
        TARGET.potential(BATCH_SIZE),
        jnp.asarray(prior_weight),
        jnp.asarray(data_weight),
    )
    key = jax.random.key(0)
    start = position_at(TARGET, 0.0)
    state = warm_state(kernel, potential, start, num_steps=0, key=key)
    samples = run_chains(kernel, potential, state, plan=Plan(12), key=key)
    exact = known(sgld(0.04)(TARGET, state))
    assert is_green(compare(estimate(samples), exact, POSTERIOR)) == (fault is None)


def test_planted_in_microcanonical_langevin(monkeypatch):
    """Directions that turn a tenth too far, at a step where its own law shows."""
    (case,) = [c for c in linear_cases() if c.method == "MicrocanonicalLangevin"]
    _, covariance = linear_rows(case, seed=0)
    assert covariance["within_bound"]
    assert covariance["method_gap"] > covariance["power"]
    right = _isokinetic.turn
    monkeypatch.setattr(
        _isokinetic, "turn", lambda u, gradient, time: right(u, gradient, 1.1 * time)
    )
    # Another length: a program compiled without the fault is not met again.
    _, covariance = linear_rows(case._replace(num_samples=9), seed=0)
    assert not covariance["within_bound"]


@pytest.mark.parametrize(("weight", "is_right"), [(10.0, True), (5.0, False)])
def test_planted_in_adaptive_drift(weight: float, is_right: bool):
    """Half of Adam's part left out; with all of it variances are a third too small,
    and no row takes that for the posterior's law."""
    (case,) = [c for c in linear_cases() if c.method == "AdaptiveDriftSGLD"]
    kernel = AdaptiveDriftSGLD(0.02, jnp.asarray(weight), decays=(0.9, 0.99))
    rows = linear_rows(case._replace(kernel=kernel), seed=0)
    assert is_green(rows) == is_right
    assert rows[1]["method_gap"] > 0.2


def test_planted_in_cosine_cycles(monkeypatch):
    """Moves that go on at another step's size: three times the variance and more."""
    (case,) = [c for c in linear_cases() if c.method == "SGHMC, cosine cycles"]
    assert is_green(linear_rows(case, seed=0))
    monkeypatch.setattr(_sghmc, "carried_momentum", lambda _, state: state.momentum)
    # Another length: a program compiled without the fault is not met again.
    mean, covariance = linear_rows(case._replace(num_samples=9), seed=0)
    assert mean["within_bound"]
    assert not covariance["within_bound"]


def test_planted_in_sghmc():
    """The noise that batches bring is injected once more: 2a for 2(a − b)."""
    key, potential = jax.random.key(0), TARGET.potential(BATCH_SIZE)
    for noise_estimate, is_right in ((60.0, True), (0.0, False)):
        kernel = SGHMC(0.1, 6.0, jnp.asarray(noise_estimate))
        start = position_at(TARGET, 0.0)
        state = warm_state(kernel, potential, start, num_steps=0, key=key)
        samples = run_chains(kernel, potential, state, plan=Plan(12), key=key)
        exact = known(sghmc(0.1, 6.0, 60.0)(TARGET, state))
        rows = compare(estimate(samples), exact, POSTERIOR)
        assert is_green(rows) == is_right


@pytest.mark.slow
def test_planted_in_sgnht_at_the_command_line(monkeypatch):
    """A thermostat that reads the momentum alone: 5 % however small the step."""
    plain = lambda momentum, eta, lost: kinetic_temperature(momentum, eta)
    monkeypatch.setattr(_sgnht, "kinetic_temperature", plain)
    (case,) = [c for c in command_line_cases() if "SGNHT" in c.method]
    # Another length: a program compiled without the fault is not met again.
    mean, covariance = linear_rows(case._replace(num_samples=30), seed=0)
    assert mean["within_bound"]
    assert not covariance["within_bound"]


def test_planted_without_acceptance():
    """Langevin steps that are never refused, at the size of those that are."""
    key, potential = jax.random.key(0), TARGET.potential(BATCH_SIZE)
    kernel, start = Langevin(0.3, adjusted=False), position_at(TARGET, 0.0)
    state = warm_state(kernel, potential, start, num_steps=0, key=key)
    samples = run_chains(kernel, potential, state, plan=Plan(10), key=key)
    assert not is_green(compare(estimate(samples), known(POSTERIOR), POSTERIOR))


class QuadraticPrior(AbstractLeafPrior):
    """N(0, 1), with a weight on the ½ (μ² + σ²) of its KL: 1 is right."""

    weight: float

    def leaf_log_prob(self, value):
        return -0.5 * value**2

    def leaf_sample(self, like, *, key):
        return jax.random.normal(key, like.shape)

    def leaf_cross_entropy(self, mean, scale):
        return 0.5 * self.weight * (mean**2 + scale**2)

    def leaf_check(self, shape, name):
        del shape, name


@pytest.mark.parametrize(("weight", "is_right"), [(1.0, True), (2.0, False)])
def test_planted_in_mean_field(weight: float, is_right: bool):
    """A KL without its ½."""
    prior = QuadraticPrior(weight)
    fitted = fit_mean_field(TARGET, Reparameterised(), prior, key=jax.random.key(0))
    rows = compare(fitted, known(mean_field_optimum(TARGET)), POSTERIOR)
    assert is_green(rows) == is_right
    assert all(row["power"] <= 0.1 for row in rows)
    assert eqx.tree_equal(prior, QuadraticPrior(weight))
