"""Kernels without noise are the optimisers that they are said to be."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from sgmcmc.problems import Regression

from ornstein.sgmcmc import (
    SGHMC,
    SGLD,
    Cyclical,
    SamplingOnly,
    sghmc_settings,
    sgld_step_size,
)

NUM_STEPS = 200


def by_optax(optimiser, problem, batch_keys):
    """The position after each step."""

    def step(carry, key):
        position, state = carry
        gradient = jax.grad(lambda q: problem.potential.estimate(q, key=key))(position)
        updates, state = optimiser.update(gradient, state)
        position = optax.apply_updates(position, updates)
        return (position, state), ravel_pytree(position)[0]

    start = problem.position(np.ones(3))
    return jax.lax.scan(step, (start, optimiser.init(start)), batch_keys)[1]


def by_kernel(kernel, problem, keys):
    start = problem.position(np.ones(3))
    state = kernel.init(problem.potential, start, key=jr.key(0))

    def step(state, key):
        state, _ = kernel.step(problem.potential, state, key=key)
        return state, ravel_pytree(state.position)[0]

    return jax.lax.scan(step, state, keys)[1]


@pytest.mark.parametrize("mass", [1.0, 2.0])
def test_sghmc_without_noise_is_sgd_with_momentum(x64, mass):
    """Seen to fail: position first, friction after the gradient, C for C / M."""
    problem = Regression()
    step_size, friction = 0.02, 5.0
    kernel = SGHMC(step_size, friction, temperature=0.0, mass=mass)
    learning_rate, momentum = step_size**2 / mass, 1 - step_size * friction / mass
    optimiser = optax.sgd(learning_rate, momentum)
    if mass == 1:
        settings = sghmc_settings(learning_rate, momentum)
        np.testing.assert_allclose(settings, (step_size, friction), rtol=1e-12)
    keys = jr.split(jr.key(1), NUM_STEPS)

    def batch_key(key):
        """The key that the kernel's batch of a step is drawn with."""
        _, moves_key = jr.split(key)
        return jr.split(jr.split(moves_key, 1)[0])[0]

    found = by_kernel(kernel, problem, keys)
    expected = by_optax(optimiser, problem, jax.vmap(batch_key)(keys))
    start = np.linalg.norm(problem.mode - 1.0)
    assert np.linalg.norm(found[-1] - problem.mode) < 0.5 * start
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_sgld_without_noise_is_sgd(x64):
    problem = Regression()
    keys = jr.split(jr.key(1), NUM_STEPS)
    found = by_kernel(SGLD(sgld_step_size(1e-3), 0.0), problem, keys)
    batch_keys = jax.vmap(lambda key: jr.split(key)[0])(keys)
    expected = by_optax(optax.sgd(1e-3), problem, batch_keys)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_temperature_of_the_sampling_phase_only_explores_as_sgd(x64):
    """40 steps of a cycle of 50 are SGD, with the cycle's steps; the next are not."""
    problem = Regression()
    cycle = Cyclical(2e-3, 50, exploration=0.8)
    kernel = SGLD(cycle, SamplingOnly(cycle))
    keys = jr.split(jr.key(1), 41)
    batch_keys = jax.vmap(lambda key: jr.split(key)[0])(keys)
    optimiser = optax.sgd(lambda step: cycle(step) / 2)
    found = by_kernel(kernel, problem, keys)
    gaps = jnp.abs(found - by_optax(optimiser, problem, batch_keys))
    assert jnp.max(gaps[:40]) < 1e-12
    assert jnp.max(gaps[40]) > 1e-4


def test_settings_of_no_optimiser_are_refused():
    for learning_rate, momentum in ((0.0, 0.9), (0.1, 1.0), (0.1, -0.1)):
        with pytest.raises(ValueError, match="must be positive and `momentum` in"):
            sghmc_settings(learning_rate, momentum)
