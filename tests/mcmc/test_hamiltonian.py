"""The dynamics: leapfrog's properties, and the identities between the kernels."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc.integrators import (
    IntegratorState,
    new_integrator_state,
    velocity_verlet,
)
from blackjax.mcmc.metrics import gaussian_euclidean
from jax.flatten_util import ravel_pytree
from mcmc.chains import run_chain, run_chains, z_score

from ornstein.mcmc import HMC, Langevin, PartialHMC
from ornstein.mcmc._hamiltonian import _metropolis
from ornstein.mcmc._metric import DiagonalMetric
from ornstein.potential import DensityPotential, Tempered

INVERSE_MASS = {"a": np.array([0.5, 2.0]), "b": np.array(3.0)}
Q = {"a": np.array([0.3, -0.7]), "b": np.array(0.4)}
START = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), Q)
P = {"a": np.array([1.1, 0.2]), "b": np.array(-0.6)}


def log_density(q):
    """Not quadratic, not separable."""
    return -jnp.sum(q["a"] ** 4) - 0.5 * q["b"] ** 2 - jnp.cos(q["a"][0] * q["b"])


POTENTIAL = DensityPotential(log_density)
GAUSSIAN = DensityPotential(lambda x: -0.5 * jnp.sum(x**2))


def leapfrog(q, p, step_size: float, num_steps: int):
    metric = DiagonalMetric(jax.tree.map(jnp.asarray, INVERSE_MASS))
    step = velocity_verlet(log_density, metric.kinetic_energy)
    state: IntegratorState = new_integrator_state(log_density, q, p)
    body = lambda state, _: (step(state, step_size), None)
    state, _ = jax.lax.scan(body, state, length=num_steps)
    energy = metric.kinetic_energy(state.momentum) - state.logdensity
    return state.position, state.momentum, energy


def test_metric_against_blackjax(x64, getkey):
    metric = DiagonalMetric(jax.tree.map(jnp.asarray, INVERSE_MASS))
    theirs = gaussian_euclidean(ravel_pytree(INVERSE_MASS)[0])
    p, q = (jax.tree.map(jnp.asarray, tree) for tree in (P, Q))
    assert metric.kinetic_energy(p) == pytest.approx(theirs.kinetic_energy(p))
    total = jax.tree.map(lambda a, b: 3 * a + b, p, q)
    for sign in (1.0, -1.0):
        right = jax.tree.map(lambda a, s=sign: s * a, q)
        turning = metric.check_turning(p, right, total)
        assert turning == theirs.check_turning(p, right, total)
    draw = lambda key: ravel_pytree(metric.sample_momentum(key=key))[0]
    draws = jax.vmap(draw)(jax.random.split(jax.random.key(0), 20_000))
    exact = 1 / ravel_pytree(INVERSE_MASS)[0]  # the variance of p is the mass
    z = (jnp.var(draws, axis=0) - exact) / (exact * np.sqrt(2 / 20_000))
    assert np.max(np.abs(z)) < 4.5, z


def test_leapfrog_is_reversible(x64):
    q, p, _ = leapfrog(Q, P, 0.1, 30)
    back, minus_p, _ = leapfrog(q, jax.tree.map(jnp.negative, p), 0.1, 30)
    assert eqx.tree_equal(back, Q, rtol=1e-11, atol=1e-11, typematch=False)
    negated = jax.tree.map(np.negative, P)
    assert eqx.tree_equal(minus_p, negated, rtol=1e-11, atol=1e-11, typematch=False)


def test_leapfrog_preserves_volume(x64):
    flat, unravel = ravel_pytree((Q, P))
    move = lambda z: ravel_pytree(leapfrog(*unravel(z), 0.2, 5)[:2])[0]
    _, log_determinant = jnp.linalg.slogdet(jax.jacobian(move)(flat))
    assert abs(log_determinant) < 1e-11


def test_energy_error_is_of_second_order(x64):
    """Over a fixed time; Euler's first order would give a slope of 1."""
    _, _, start = leapfrog(Q, P, 0.1, 0)
    num_steps = np.array([20, 40, 80])
    errors = [abs(leapfrog(Q, P, 2.0 / n, n)[2] - start) for n in num_steps]
    slopes = -np.diff(np.log(errors)) / np.log(2)
    np.testing.assert_allclose(slopes, 2.0, atol=0.1)


def test_acceptance_tends_to_one():
    """As 1 - c ε² at a fixed length: halving the step quarters the rejections."""

    def rejection(num_steps):
        kernel = HMC(num_steps, 2.0 / num_steps)
        chains = run_chains(
            kernel,
            POTENTIAL,
            START,
            key=jax.random.key(0),
            num_chains=64,
            num_steps=100,
        )
        return 1 - float(jnp.mean(chains.info.acceptance_rate))

    coarse, fine = rejection(8), rejection(32)
    assert fine < coarse / 8
    assert fine < 0.01


def test_jitter_moves_what_a_whole_period_leaves():
    """After 2π a standard normal is where it was. Catches a jitter of nothing, and
    (seen) the last trajectory's step size in the place of the kernel's."""
    far = jnp.full(16, 3.0)
    run = lambda jitter: run_chain(
        HMC(63, 2 * np.pi / 63, jitter=jitter, adapt_step_size=False, adapt_mass=False),
        GAUSSIAN,
        far,
        key=jax.random.key(1),
        num_steps=300,
    )
    still, moving = run(0.0), run(0.2)
    assert np.min(still.positions) > 1
    late = np.asarray(moving.positions)[100:]
    assert abs(np.mean(late)) < 0.1
    assert np.var(late) == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(moving.info.step_size, 2 * np.pi / 63, rtol=1e-6)


def test_jitter_is_of_its_size_and_each_trajectorys_own():
    """Where no force is a trajectory goes as far as its step size, times a momentum of
    mean square 1. Catches a step size that wanders, from the last trajectory's."""
    chain = run_chain(
        HMC(1, 0.5, jitter=0.2, adapt_step_size=False, adapt_mass=False),
        DensityPotential(lambda x: 0.0 * jnp.sum(x)),
        jnp.zeros(4000),
        key=jax.random.key(2),
        num_steps=300,
    )
    moves = np.diff(np.asarray(chain.positions, float), axis=0)
    ratio = np.sqrt(np.mean(moves**2, axis=1)) / 0.5
    assert np.ptp(ratio[-100:]) > 0.35
    assert 0.77 <= ratio.min() and ratio.max() <= 1.23  # noqa: PT018


def test_partial_refreshment_of_everything_is_hmc(getkey):
    """Given the same keys: with α = 0 nothing of the kept momentum is left."""
    key = getkey()
    run = lambda kernel: run_chain(kernel, POTENTIAL, START, key=key, num_steps=50)
    hmc, partial = run(HMC(3, 0.5)), run(PartialHMC(0.0, 3, 0.5))
    assert 0 < np.mean(hmc.info.is_accepted) < 1
    assert eqx.tree_equal(hmc.positions, partial.positions)
    assert not eqx.tree_equal(hmc.positions, run(PartialHMC(0.5, 3, 0.5)).positions)


def test_langevin_is_hmc_with_one_step(getkey):
    key = getkey()
    run = lambda kernel: run_chain(kernel, POTENTIAL, START, key=key, num_steps=50)
    hmc, langevin = run(HMC(1, 0.8)), run(Langevin(0.8))
    assert 0 < np.mean(hmc.info.is_accepted) < 1
    assert eqx.tree_equal(hmc.positions, langevin.positions)


def test_langevin_is_euler_maruyama():
    """Eqs. (42)-(44): a step of ε²/2 down the gradient, and noise of variance ε²."""
    start, step_size = jnp.array([3.0, -1.0]), 0.4
    kernel = Langevin(step_size, adjusted=False)

    def move(key):
        state = kernel.init(GAUSSIAN, start, key=key)
        return kernel.step(GAUSSIAN, state, key=key)[0].position

    ends = jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(0), 20_000))
    z = (np.asarray(ends) - (1 - step_size**2 / 2) * np.asarray(start)) / step_size
    assert np.max(np.abs(np.mean(z, 0))) < 4.5 / np.sqrt(20_000)
    assert np.max(np.abs(np.var(z, 0) - 1)) < 4.5 * np.sqrt(2 / 20_000)


def test_unadjusted_langevin_has_the_bias_it_documents():
    """Variance s / (1 - ε²/4s), here 4/3 for s = 1: what a Metropolis test removes."""
    chains = run_chains(
        Langevin(1.0, adjusted=False),
        GAUSSIAN,
        jnp.zeros(()),
        key=jax.random.key(0),
        num_chains=64,
        num_warm_up=30,
        num_steps=500,
    )
    assert abs(z_score(chains.positions**2, 4 / 3)) < 4.5
    assert np.all(chains.info.is_accepted)
    # Nothing was adapted, for the step size sets the bias.
    assert np.all(chains.state.step_size == 1.0)


@pytest.mark.parametrize("is_wrapped", [False, True], ids=["argument", "Tempered"])
def test_temperature_scales_the_variance(is_wrapped):
    temperature = 2.5
    kernel = HMC(5, 0.8, temperature=1.0 if is_wrapped else temperature)
    potential = Tempered(GAUSSIAN, temperature) if is_wrapped else GAUSSIAN
    chains = run_chains(
        kernel,
        potential,
        jnp.zeros(()),
        key=jax.random.key(0),
        num_chains=64,
        num_steps=500,
    )
    assert abs(z_score(chains.positions[:, 50:] ** 2, temperature)) < 4.5


def test_rejection_turns_the_momentum_back(getkey):
    """The flip that makes PartialHMC exact, with eq. (41) by hand."""
    kernel = PartialHMC(0.9, 1, 50.0)  # rejects for certain
    state = kernel.init(POTENTIAL, START, key=getkey())
    after, info = kernel.step(POTENTIAL, state, key=(key := getkey()))
    assert not info.is_accepted
    r = DiagonalMetric(state.inverse_mass).sample_momentum(key=jax.random.split(key)[0])
    expected = jax.tree.map(
        lambda p, r: -(0.9 * p + np.sqrt(1 - 0.81) * r), state.momentum, r
    )
    assert eqx.tree_equal(
        after.momentum, expected, rtol=1e-6, atol=1e-6, typematch=False
    )


def test_energy_is_that_of_the_new_state(getkey):
    """-log density + p²/2, of the state that was kept."""
    kernel = PartialHMC(0.5, 2, 0.3)
    state = kernel.init(POTENTIAL, START, key=getkey())
    after, info = kernel.step(POTENTIAL, state, key=getkey())
    kinetic = 0.5 * sum(np.sum(np.square(p)) for p in jax.tree.leaves(after.momentum))
    expected = kinetic - log_density(after.position)
    assert info.energy == pytest.approx(float(expected), rel=1e-5)


def test_an_enormous_error_of_the_integrator_is_refused_either_way():
    """Catches a chain that a warm-up's first steps throw where no density is."""
    here = IntegratorState(jnp.zeros(2), jnp.zeros(2), jnp.zeros(()), jnp.zeros(2))
    there = jax.tree.map(lambda a: a + 1, here)
    key = jax.random.key(0)
    for log_acceptance, is_taken in ((5.0, True), (1e4, False), (-1e4, False)):
        end, (was_taken, rate, _) = _metropolis(
            key, jnp.asarray(log_acceptance), here, there
        )
        assert bool(was_taken) == is_taken
        assert float(rate) == float(is_taken)
        np.testing.assert_array_equal(end.position, jnp.full(2, float(is_taken)))
