"""Chains of a kernel, for its tests, and how far their moments are from the truth."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.diagnostics import effective_sample_size

from ornstein.mcmc import AbstractKernel, MCMCInfo, MCMCState, warm_up_stages
from ornstein.potential import AbstractPotential


class Chains(NamedTuple):
    state: MCMCState
    positions: jax.Array
    info: MCMCInfo


def run_chain(
    kernel: AbstractKernel,
    potential: AbstractPotential,
    position,
    *,
    key,
    num_warm_up: int = 0,
    num_steps: int,
) -> Chains:
    init_key, warm_up_key, step_key = jax.random.split(key, 3)
    state = kernel.init(potential, position, key=init_key)
    if num_warm_up:

        def warm_up(state, inputs):
            stage, key = inputs
            return kernel.warm_up(potential, state, stage, key=key)

        keys = jax.random.split(warm_up_key, num_warm_up)
        state, _ = jax.lax.scan(warm_up, state, (warm_up_stages(num_warm_up), keys))

    def step(state, key):
        state, info = kernel.step(potential, state, key=key)
        return state, (state.position, info)

    keys = jax.random.split(step_key, num_steps)
    state, (positions, info) = jax.lax.scan(step, state, keys)
    return Chains(state, positions, info)


def run_chains(kernel, potential, position, *, key, num_chains, **sizes) -> Chains:
    run = lambda key: run_chain(kernel, potential, position, key=key, **sizes)
    return jax.jit(jax.vmap(run))(jax.random.split(key, num_chains))


def z_score(draws, exact: float, min_ess: float = 400) -> float:
    """Monte Carlo standard errors between the mean of draws (chains, steps) and it."""
    draws = np.asarray(draws, np.float64)
    ess = float(effective_sample_size(jnp.asarray(draws)))
    assert ess > min_ess, f"only {ess:.0f} effective draws: the test has no power"
    return (draws.mean() - exact) / (draws.std() / np.sqrt(ess))
