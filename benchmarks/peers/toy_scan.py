"""The toy SDE-BNN as one writes it by hand: a `lax.scan`, increments drawn up front."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jax import Array

from . import toy


def solve(params: toy.Params, increments: Array) -> tuple[Array, Array]:
    """The last h and the path KL of one weight path, by Euler-Maruyama."""
    starts, dt = toy.times(len(increments))

    def step(state: tuple, x: tuple) -> tuple[tuple, None]:
        (w, h, kl), (t, dw) = state, x
        n = toy.net_output(t, w, params.net)
        kl = kl + dt * jnp.sum((n / toy.SIGMA) ** 2) / 2
        h = h + dt * toy.hidden_drift(t, w, h)
        return (w + dt * (n - w) + toy.SIGMA * dw, h, kl), None

    state = (params.w0, toy.inputs(), jnp.zeros(()))
    (_, h, kl), _ = jax.lax.scan(step, state, (starts, increments))
    return h, kl


def loss_on(params: toy.Params, increments: Array) -> Array:
    """The loss on given increments, (paths, steps, weights)."""
    return toy.loss(*jax.vmap(solve, (None, 0))(params, increments))


def loss(params: toy.Params, key: Array) -> Array:
    def one(key: Array) -> tuple[Array, Array]:
        shape = (toy.NUM_STEPS, toy.NUM_WEIGHTS)
        increments = jr.normal(key, shape) * toy.NUM_STEPS**-0.5
        return solve(params, increments)

    return toy.loss(*jax.vmap(one)(toy.path_keys(key)))
