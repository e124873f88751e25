"""The toy SDE-BNN of the benchmarks: sizes, parameters, vector fields, loss.

dw = n(t, w; φ) dt - w dt + σ dB for the weights (prior drift -w), dh = f(t, h; w) dt
for 40 inputs of one feature, augmented by two; loss = mean square error + KL weight
times the path KL, averaged over 16 weight paths. The prior's drift cancels in
u = n / σ, which hand-written code may use.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import jax.random as jr
from jax import Array

SIGMA = 0.2
KL_WEIGHT = 1e-3
NUM_PATHS = 16
NUM_STEPS = 20
NUM_INPUTS = 40
LEARNING_RATE = 1e-3

SIZE = 3
SHAPES = ((SIZE + 1, 32), (32,), (33, 32), (32,), (33, SIZE), (SIZE,))
NUM_WEIGHTS = sum(math.prod(shape) for shape in SHAPES)
DRIFT_SIZES = (NUM_WEIGHTS, 2, 128, 2, NUM_WEIGHTS)


class Params(NamedTuple):
    """What is trained: w at 0, and (matrix, bias) of each layer of n."""

    w0: Array
    net: tuple[tuple[Array, Array], ...]


def make_params(*, key: Array) -> Params:
    """Initial parameters; n is small and not zero, so that the KL is not."""
    w_key, *keys = jr.split(key, len(DRIFT_SIZES))
    net = tuple(
        (jr.normal(k, (a + 1, b)) / math.sqrt(a + 1), jnp.zeros(b))
        for k, a, b in zip(keys, DRIFT_SIZES[:-1], DRIFT_SIZES[1:], strict=True)
    )
    matrix, bias = net[-1]
    return Params(
        0.1 * jr.normal(w_key, (NUM_WEIGHTS,)), (*net[:-1], (matrix / 4, bias))
    )


def inputs() -> Array:
    x = jnp.linspace(-1.0, 1.0, NUM_INPUTS)[:, None]
    return jnp.concatenate([x, jnp.zeros((NUM_INPUTS, SIZE - 1))], axis=1)


def targets() -> Array:
    return jnp.cos(3 * jnp.linspace(-1.0, 1.0, NUM_INPUTS))


def net_output(t: Array, w: Array, net: tuple) -> Array:
    """n(t, w; φ): time is one more input of each layer."""
    *hidden, (matrix, bias) = net
    for a, b in hidden:
        w = jnp.tanh(jnp.append(w, t) @ a + b)
    return jnp.append(w, t) @ matrix + bias


def hidden_drift(t: Array, w: Array, h: Array) -> Array:
    """f(t, h; w)."""
    start, arrays = 0, []
    for shape in SHAPES:
        size = math.prod(shape)
        arrays.append(w[start : start + size].reshape(shape))
        start += size
    times = jnp.full((NUM_INPUTS, 1), t)
    for i in (0, 2, 4):
        h = jnp.concatenate([h, times], axis=1) @ arrays[i] + arrays[i + 1][None]
        h = h if i == 4 else jnp.tanh(h)
    return h


def loss(h: Array, kl: Array) -> Array:
    """From the last h and the path KL of every weight path."""
    fit = jnp.mean((h[..., 0] - targets()[None]) ** 2)
    return fit + KL_WEIGHT * jnp.mean(kl)


def path_keys(key: Array) -> Array:
    return jr.split(key, NUM_PATHS)


def times(num_steps: int) -> tuple[Array, float]:
    """Each step's start, and the step."""
    dt = 1 / num_steps
    return jnp.arange(num_steps, dtype=float) * dt, dt
