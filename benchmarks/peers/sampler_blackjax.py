"""The samplers' benchmark by blackjax, inside `lax.scan`."""

import itertools
from collections.abc import Callable
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from blackjax.sgmcmc import gradients
from jax import Array

from ornstein.data import Split
from ornstein.nn import MLP
from ornstein.potential import Potential

from . import sampler

Layers = tuple[tuple[Array, Array], ...]


def layers_of(network: MLP) -> Layers:
    """(matrix, bias) of each layer."""
    return tuple((layer.weight, layer.bias) for layer in network.layers)


def grad_estimator() -> Callable[[Layers, tuple[Array, Array]], Layers]:
    """blackjax's, for the MLP that classifies: uphill."""
    return gradients.grad_estimator(_log_prior, _log_likelihood, sampler.NUM_DATA)


def _log_prior(layers: Layers) -> Array:
    return -0.5 * sum(jnp.sum(a**2) for a in jax.tree.leaves(layers))


def _log_likelihood(layers: Layers, row: tuple[Array, Array]) -> Array:
    x, y = row
    *hidden, (matrix, bias) = layers
    for a, b in hidden:
        x = jax.nn.relu(x @ a + b)
    return jax.nn.log_softmax(x @ matrix + bias)[y]


def sgld(layers: Layers, data: Split, *, num_steps: int, key: Array) -> Callable:
    """A function that takes some steps."""
    kernel = blackjax.sgld(grad_estimator())

    def step(layers: Layers, batch: tuple, key: Array) -> Layers:
        # Its step size is half of ours.
        return kernel.step(key, layers, batch, sampler.LANGEVIN_STEP / 2)

    return _scanned(step, layers, data, num_steps=num_steps, key=key)


def sghmc(layers: Layers, data: Split, *, num_steps: int, key: Array) -> Callable:
    """A function that takes some steps, each of `NUM_INNER_STEPS` on one batch."""
    kernel = blackjax.sghmc(grad_estimator(), sampler.NUM_INNER_STEPS, sampler.FRICTION)

    def step(layers: Layers, batch: tuple, key: Array) -> Layers:
        return kernel.step(key, layers, batch, sampler.HAMILTONIAN_STEP)

    return _scanned(step, layers, data, num_steps=num_steps, key=key)


def hmc(potential: Potential, *, num_steps: int, key: Array) -> Callable:
    """A function that takes some steps on our own log density."""
    num_entries = sum(leaf.size for leaf in jax.tree.leaves(potential.start))

    def kernel(potential: Potential) -> Any:
        return blackjax.hmc(
            lambda position: -potential(position),
            sampler.LEAPFROG_STEP,
            jnp.ones(num_entries),
            sampler.NUM_LEAPFROG_STEPS,
        )

    @eqx.filter_jit
    def steps(state: Any, potential: Potential, key: Array) -> Any:
        step = lambda state, key: kernel(potential).step(key, state)
        return jax.lax.scan(step, state, jr.split(key, num_steps))

    state = kernel(potential).init(potential.start)
    keys = itertools.cycle(jr.split(key, 100))

    def run() -> Any:
        nonlocal state
        state, info = steps(state, potential, next(keys))
        return info.acceptance_rate

    return run


def _scanned(
    step: Callable, layers: Layers, data: Split, *, num_steps: int, key: Array
) -> Callable[[], Any]:
    arrays = jax.tree.map(jnp.asarray, (data.x, data.y))

    @jax.jit
    def steps(layers: Layers, arrays: tuple, key: Array) -> Layers:
        def one(layers: Layers, key: Array) -> tuple[Layers, None]:
            rows_key, step_key = jr.split(key)
            rows = jr.randint(rows_key, (sampler.BATCH_SIZE,), 0, sampler.NUM_DATA)
            batch = jax.tree.map(lambda a: a[rows], arrays)
            return step(layers, batch, step_key), None

        layers, _ = jax.lax.scan(one, layers, jr.split(key, num_steps))
        return layers

    keys = itertools.cycle(jr.split(key, 100))

    def run() -> Any:
        nonlocal layers
        layers = steps(layers, arrays, next(keys))
        return layers

    return run
