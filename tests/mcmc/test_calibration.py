"""Simulation-based calibration: ranks of the truth among posterior draws are uniform.

Cook, Gelman & Rubin (2006); Talts et al. (2018). A true θ is drawn from the prior, data
from the likelihood, and L draws from the posterior; in each of thousands of
replications, side by side. A chain starts at the true θ, itself a draw from the exact
posterior, and forgets it before its first draw counts: an exact kernel needs no
burn-in from there, and a wrong one walks away.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from ornstein.mcmc import (
    HMC,
    NUTS,
    Langevin,
    PartialHMC,
    RandomWalkMetropolis,
    _hamiltonian as hamiltonian,
)
from ornstein.potential import DensityPotential

X = jnp.array([[1.0, -1.5], [1.0, -0.5], [1.0, 0.2], [1.0, 0.9], [1.0, 1.4]])
NUM_DRAWS = 7  # ranks 0 to 7
NUM_REPLICATIONS = 4096

# The thinning makes draws nearly independent: their correlation spoils the ranks, and
# so does a trajectory of half a period, which leaves the energy where it was.
KERNELS = {
    "walk": (RandomWalkMetropolis(1.5), 25),
    "hmc": (HMC(3, 0.4), 4),
    "hmc, jitter": (HMC(3, 0.4, jitter=0.5), 4),
    "langevin": (Langevin(1.1), 8),
    "partial": (PartialHMC(0.5, 3, 0.6), 4),
    "nuts": (NUTS(0.8, 3), 3),
}


def log_density(theta, y):
    """Logistic regression under a standard normal prior."""
    logits = X @ theta
    log_likelihood = jnp.sum(y * logits - jnp.logaddexp(logits, 0.0))
    return log_likelihood - 0.5 * jnp.sum(theta**2)


def with_wrong_gradient(value, factor):
    """The same number, whose gradient is multiplied."""
    return factor * value + jax.lax.stop_gradient((1 - factor) * value)


@functools.partial(jax.jit, static_argnums=(0, 1))
def ranks(make_kernel, thin, energy_factor, gradient_factor):
    """How many draws lie below the truth, of each entry and of the log density."""
    kernel = make_kernel()

    def replicate(key):
        theta_key, y_key, init_key, chain_key = jax.random.split(key, 4)
        theta = jax.random.normal(theta_key, (2,))
        y = jax.random.bernoulli(y_key, jax.nn.sigmoid(X @ theta)).astype(X.dtype)
        potential = DensityPotential(
            lambda q: with_wrong_gradient(
                energy_factor * log_density(q, y), gradient_factor
            )
        )

        def draw(state, key):
            step = lambda s, k: (kernel.step(potential, s, key=k)[0], None)
            state, _ = jax.lax.scan(step, state, jax.random.split(key, thin))
            return state, state.position

        state = kernel.init(potential, theta, key=init_key)
        keys = jax.random.split(chain_key, NUM_DRAWS + 2)
        _, draws = jax.lax.scan(draw, state, keys)
        draws = draws[2:]
        below = jnp.sum(draws < theta[None], axis=0)
        of_density = jax.vmap(lambda q: log_density(q, y))(draws)
        return jnp.append(below, jnp.sum(of_density < log_density(theta, y)))

    return jax.vmap(replicate)(jax.random.split(jax.random.key(5), NUM_REPLICATIONS))


def p_values(name_or_kernel, *, thin=None, energy_factor=1.0, gradient_factor=1.0):
    if thin is None:
        kernel, thin = KERNELS[name_or_kernel]
    else:
        kernel = name_or_kernel
    found = ranks(Constant(kernel), thin, energy_factor, gradient_factor)
    counts = [np.bincount(column, minlength=NUM_DRAWS + 1) for column in found.T]
    return np.array([chisquare(count).pvalue for count in counts])


class Constant(eqx.Module):
    """A kernel that is static to `jax.jit`."""

    kernel: eqx.Module = eqx.field(static=True)

    def __call__(self):
        return self.kernel


@pytest.mark.parametrize("name", KERNELS)
def test_exact_kernels_are_calibrated_and_a_wrong_posterior_is_not(name):
    p = p_values(name)
    assert np.all(p > 1e-5), p
    # Half the energy is another temperature, or a likelihood that lost a factor.
    assert np.min(p_values(name, energy_factor=0.5)) < 1e-5


@pytest.mark.parametrize(
    "kernel", [HMC(4, 1.6), PartialHMC(0.5, 3, 1.6)], ids=["hmc", "partial"]
)
def test_a_dropped_acceptance_step_is_found(kernel, monkeypatch):
    """At a step size so large that the integrator's error shows."""
    take = hamiltonian._take_proposal
    monkeypatch.setattr(hamiltonian, "static_binomial_sampling", take)
    assert np.min(p_values(kernel, thin=4)) < 1e-5


def test_langevin_without_its_test_is_found_at_a_large_step():
    assert np.min(p_values(Langevin(1.4, adjusted=False), thin=8)) < 1e-5


def test_a_halved_gradient_is_found_where_nothing_corrects_it():
    """Unadjusted, at a step so small that the bias hides.

    A Metropolis test on the right energies makes any gradient field exact, for
    leapfrog stays reversible and keeps volume; HMC below shows it.
    """
    small = Langevin(0.3, adjusted=False)
    assert np.all(p_values(small, thin=60) > 1e-5)
    assert np.min(p_values(small, thin=60, gradient_factor=0.5)) < 1e-5
    assert np.all(p_values("hmc", gradient_factor=0.5) > 1e-5)
