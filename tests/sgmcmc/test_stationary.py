"""The exact second moments of what each chain does, discretisation and noise included.

On a Gaussian each chain is linear in (position, momentum) with independent noise, so
that its covariance at rest solves S = A S Aᵀ + Q. Targets differ by entry: a mistake in
the size of a noise, a drift or a temperature shows as that entry's z.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from ornstein.potential import DensityPotential
from ornstein.sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    AdaptiveDriftSGLD,
    NaiveSGHMC,
    PreconditionedSGLD,
)

PRECISIONS = (2.0, 0.5)
MEANS = (1.0, -2.0)
V = 3.0  # gradient noise
NUM_CHAINS = 40_000


def potential():
    """Two Gaussians, each copied: an entry is a chain of its own but for SGNHT."""
    log_density = lambda q: sum(
        -0.5 * p * jnp.sum((leaf - m) ** 2)
        for leaf, p, m in zip(q, PRECISIONS, MEANS, strict=True)
    )
    return DensityPotential(log_density, gradient_noise=V)


def run(kernel, num_steps, *, start=5.0, adapted=None):
    """The last state of NUM_CHAINS chains that start together, far away."""
    target = potential()
    start = tuple(jnp.full(NUM_CHAINS, start) for _ in PRECISIONS)

    @jax.jit
    def go(key):
        init_key, key = jr.split(key)
        state = kernel.init(target, start, key=init_key)
        if adapted is not None:
            state = state.move(state.position, state.momentum, adapted)
        step = lambda state, key: kernel.step(target, state, key=key)
        return jax.lax.scan(step, state, jr.split(key, num_steps))

    return go(jr.key(0))


def assert_moments(samples, variance, mean=0.0, name=""):
    """Within 4.5 standard errors, of which the variance's is 0.7 % of it."""
    samples = np.asarray(samples, np.float64)
    num = samples.size
    z_mean = (samples.mean() - mean) / np.sqrt(variance / num)
    z_variance = (samples.var() / variance - 1) / np.sqrt(2 / num)
    assert abs(z_mean) < 4.5, (name, z_mean)
    assert abs(z_variance) < 4.5, (name, z_variance)


def at_rest(matrix, noise):
    return scipy.linalg.solve_discrete_lyapunov(np.array(matrix), np.array(noise))


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_sgld(temperature):
    """Seen to fail: noise of variance 2 ε, a drift of ε, T in place of √T."""
    step_size = 0.4
    state, _ = run(SGLD(step_size, temperature), 150)
    for q, p, m in zip(state.position, PRECISIONS, MEANS, strict=True):
        noise = step_size * temperature + step_size**2 * V / 4
        variance = noise / (1 - (1 - step_size * p / 2) ** 2)
        assert_moments(q, variance, m)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_adaptive_drift_of_weight_0_is_sgld(temperature):
    """Its noise, and so its law. Catches (seen) a temperature that is left out."""
    step_size = 0.4
    state, _ = run(AdaptiveDriftSGLD(step_size, 0.0, temperature), 150)
    for q, p, m in zip(state.position, PRECISIONS, MEANS, strict=True):
        noise = step_size * temperature + step_size**2 * V / 4
        variance = noise / (1 - (1 - step_size * p / 2) ** 2)
        assert_moments(q, variance, m)


def underdamped(step_size, friction, noise, p, temperature=1.0, mass=1.0):
    """A and Q of SGHMC's step on (θ, v), gradient noise counted by the caller."""
    eta, a = step_size**2 / mass, step_size * friction / mass
    kick = [-eta * p, 1 - a]
    matrix = [[1 + kick[0], kick[1]], kick]
    injected = 2 * (a * temperature - eta * noise / 2) * eta
    total = injected + eta**2 * V
    return matrix, np.full((2, 2), total)


@pytest.mark.parametrize(
    ("estimate", "temperature", "mass", "num_inner"),
    [(0.0, 1.0, 1.0, 1), (V, 1.0, 2.0, 3), (1.0, 2.0, 1.0, 1)],
)
def test_sghmc(estimate, temperature, mass, num_inner):
    """Seen to fail: b without its ½, noise a for 2 a, C for C / M, T left out of a."""
    step_size, friction = 0.4, 1.2
    kernel = SGHMC(
        step_size,
        friction,
        estimate,
        temperature=temperature,
        mass=mass,
        num_integration_steps=num_inner,
    )
    state, info = run(kernel, 150)
    pairs = zip(state.position, state.momentum, PRECISIONS, MEANS, strict=True)
    heat = 0.0
    for q, v, p, m in pairs:
        matrix, noise = underdamped(step_size, friction, estimate, p, temperature, mass)
        exact = at_rest(matrix, noise)
        assert_moments(q, exact[0, 0], m, "position")
        assert_moments(v, exact[1, 1], 0.0, "momentum")
        covariance = np.mean((np.asarray(q) - m) * np.asarray(v))
        scale = np.sqrt((exact[0, 0] * exact[1, 1] + exact[0, 1] ** 2) / NUM_CHAINS)
        assert abs(covariance - exact[0, 1]) < 4.5 * scale
        heat += p * exact[0, 0] / len(PRECISIONS)  # of the position, not of v
    assert abs(info.kinetic_temperature[-1] / heat - 1) < 4.5 * np.sqrt(2 / NUM_CHAINS)


@pytest.mark.parametrize("num_inner", [1, 4])
def test_sghmc_with_fresh_momenta(num_inner):
    """Seen to fail: a whole kick after a fresh momentum, which leaves the variance at
    1 / (1 + 1/L) of the target's (half, and four fifths) however small the step; noise
    left out for a whole batch where half a kick brought a quarter of it."""
    friction, temperature = 1.2, 1.5

    def exact(step_size, p):
        """Var q where each call is a half kick, moves, and L - 1 whole ones."""
        eta, a = step_size**2, step_size * friction
        step = np.array([[1 - eta * p, 1 - a], [-eta * p, 1 - a]])
        noise = np.full((2, 2), 2 * a * temperature * eta)  # all of it, batches' too
        first = np.array([[1 - eta * p / (2 - a)], [-eta * p / (2 - a)]])
        fresh = (1 - a) ** 2 * temperature * eta / (1 - a / 2)
        spread = noise + fresh
        for _ in range(num_inner - 1):
            first, spread = step @ first, step @ spread @ step.T + noise
        return spread[0, 0] / (1 - first[0, 0] ** 2)

    for p in PRECISIONS:
        assert abs(exact(1e-3, p) * p / temperature - 1) < 1e-5
    kernel = SGHMC(
        0.4,
        friction,
        V,
        temperature=temperature,
        num_integration_steps=num_inner,
        resample_every=1,
    )
    state, info = run(kernel, 240 // num_inner)
    for q, p, m in zip(state.position, PRECISIONS, MEANS, strict=True):
        assert_moments(q, exact(0.4, p), m)
    heat = float(np.mean(info.kinetic_temperature[-20:])) / temperature
    assert abs(heat - 1) < 0.4**2 * max(PRECISIONS) / 2


def test_preconditioned_sgld_that_is_frozen():
    """Seen to fail: G for √G in the noise, a second moment that still moves."""
    step_size, temperature, damping = 0.8, 0.7, 0.1
    kernel = PreconditionedSGLD(step_size, temperature, damping=damping)
    second_moments = (4.0, 0.25)
    adapted = tuple(jnp.full(NUM_CHAINS, s) for s in second_moments)
    state, _ = run(kernel, 150, adapted=adapted)
    pairs = zip(state.position, PRECISIONS, MEANS, second_moments, strict=True)
    for q, p, m, s in pairs:
        g = 1 / (damping + np.sqrt(s))
        noise = step_size * g * temperature + (step_size * g / 2) ** 2 * V
        variance = noise / (1 - (1 - step_size * g * p / 2) ** 2)
        assert_moments(q, variance, m)


def leapfrog(step_size, num_steps, p):
    """θ' = a θ + b v + Σ cᵢ nᵢ: the coefficients, nᵢ the noise of gradient i."""
    eta = step_size**2
    columns = np.eye(num_steps + 3)  # of θ, v, n_0 … n_L
    q, v, noises = columns[0], columns[1], columns[2:]
    v = v - eta / 2 * (p * q + noises[0])
    for i in range(num_steps):
        q = q + v
        v = v - (eta if i < num_steps - 1 else eta / 2) * (p * q + noises[i + 1])
    return q, v


def test_naive_sghmc_heats_as_its_recursion_says():
    """Seen to fail: half kicks where whole ones meet, one batch for all kicks."""
    step_size, num_inner, temperature = 0.5, 3, 0.5
    kernel = NaiveSGHMC(step_size, num_inner, temperature=temperature)
    state, info = run(kernel, 60)
    heat = 0.0
    pairs = zip(state.position, state.momentum, PRECISIONS, MEANS, strict=True)
    for q, v, p, m in pairs:
        of_q, of_v = leapfrog(step_size, num_inner, p)
        weights = np.array([temperature * step_size**2] + [V] * (num_inner + 1))
        variance = of_q[1:] ** 2 @ weights / (1 - of_q[0] ** 2)
        assert variance > 1.3 * temperature / p  # what the figure is about
        assert_moments(q, variance, m)
        momentum = of_v[0] ** 2 * variance + of_v[1:] ** 2 @ weights
        assert_moments(v, momentum)
        heat += momentum / step_size**2 / len(PRECISIONS)
    assert abs(info.kinetic_temperature[-1] / heat - 1) < 4.5 * np.sqrt(2 / NUM_CHAINS)


def test_naive_sghmc_with_a_metropolis_test_is_exact():
    """Gradient noise or not: the test undoes what it heats (seen to fail without)."""
    num_chains, temperature, p = 40_000, 0.5, 2.0
    target = DensityPotential(lambda q: -0.5 * p * q**2, gradient_noise=V)
    kernel = NaiveSGHMC(0.5, 2, adjusted=True, temperature=temperature)

    @jax.jit
    @jax.vmap
    def go(key):
        state = kernel.init(target, jnp.array(2.0), key=key)
        step = lambda state, key: kernel.step(target, state, key=key)
        return jax.lax.scan(step, state, jr.split(key, 80))

    state, info = go(jr.split(jr.key(3), num_chains))
    rate = float(jnp.mean(info.acceptance_rate[:, -1]))
    assert 0.3 < rate < 0.9
    assert_moments(state.position, temperature / p)


@pytest.mark.parametrize(
    ("a", "step_size", "noise"), [(0.1, 0.02, 0.0), (0.1, 0.04, V), (0.3, 0.04, V)]
)
def test_sgnht_at_a_friction_that_grows_with_the_step(a, step_size, noise):
    """As the command line has it, friction (1 - momentum) / step_size.

    Seen to fail: a thermostat that reads the momentum alone, which leaves the variance
    at 1 - a/2 of the target's (0.948 and 0.835), whatever the step.
    """
    temperature, p = 1.5, 2.0
    target = DensityPotential(lambda q: -0.5 * p * jnp.sum(q**2), gradient_noise=noise)
    kernel = SGNHT(step_size, a / step_size, temperature)

    @jax.jit
    def go(key):
        # The thermostat swings slowly: from the target, where it is at rest.
        start = jnp.sqrt(temperature / p) * jr.normal(key, (NUM_CHAINS,))
        state = kernel.init(target, start, key=key)
        step = lambda state, key: kernel.step(target, state, key=key)
        return jax.lax.scan(step, state, jr.split(key, 2000))

    state, info = go(jr.key(1))
    late = np.asarray(info.kinetic_temperature[-500:], float)
    assert abs(late.mean() / temperature - 1) < 2e-3
    assert_moments(state.position, temperature / p)


def test_sgnht_finds_the_friction():
    """With D so large that ζ is a constant the chain is SGHMC at that friction.

    Seen to fail: T left out of ζ's target, noise 2 A η for 2 A ε η.
    """
    step_size, friction, temperature = 0.2, 1.0, 1.5
    # From near by: a hot start sets the thermostat swinging.
    state, info = run(SGNHT(step_size, friction, temperature), 500, start=0.0)

    def exact(zeta, p):
        eta = step_size**2
        kick = [-eta * p, 1 - step_size * zeta]
        noise = 2 * friction * temperature * step_size * eta + eta**2 * V
        return at_rest([[1 + kick[0], kick[1]], kick], np.full((2, 2), noise))

    # Held at T: the mean of p Var q, the heat of the positions.
    heat = lambda z: np.mean([p * exact(z, p)[0, 0] for p in PRECISIONS])
    excess = lambda zeta: heat(zeta) - temperature
    zeta = scipy.optimize.root_scalar(excess, bracket=(0.5, 3.0)).root
    assert zeta > friction * 1.15  # gradient noise asks for more than A
    kinetic = float(jnp.mean(info.kinetic_temperature[-100:]))
    assert abs(kinetic / temperature - 1) < 0.01
    assert abs(float(state.adapted) - zeta) < 0.03 * zeta
    for q, p, m in zip(state.position, PRECISIONS, MEANS, strict=True):
        assert_moments(q, exact(zeta, p)[0, 0], m)
