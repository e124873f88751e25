"""The toy SDE-BNN by `ornstein.sde.sdeint`, and the increments that it draws.

Its vector fields are written as `ornstein.nn`'s layers are: time is a bias rather than
one more input, and tanh keeps one array for its derivative.
"""

import math
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ornstein import sde
from ornstein.nn import tanh

from . import toy

EULER = sde.EulerMaruyama()


def _at(t: Array, x: Array, matrix: Array, bias: Array) -> Array:
    """A layer of which the last row of `matrix` multiplies time."""
    return x @ matrix[:-1] + (t * matrix[-1] + bias)


def _drift(t: Array, y: dict, net: tuple) -> dict:
    w, h = y["w"], y["h"]
    n = w
    for a, b in net[:-1]:
        n = tanh(_at(t, n, a, b))
    start, arrays = 0, []
    for shape in toy.SHAPES:
        size = math.prod(shape)
        arrays.append(w[start : start + size].reshape(shape))
        start += size
    for a, b in zip(arrays[:-2:2], arrays[1:-2:2], strict=True):
        h = tanh(_at(t, h, a, b))
    return {"w": _at(t, n, *net[-1]) - w, "h": _at(t, h, *arrays[-2:])}


def _prior_drift(t: Array, y: dict, net: tuple) -> dict:
    del t, net
    return {"w": -y["w"], "h": None}


def _diffusion(t: Array, y: dict, net: tuple) -> dict:
    del t, y, net
    return {"w": toy.SIGMA, "h": None}


def loss(
    params: toy.Params,
    key: Array,
    *,
    num_steps: int = toy.NUM_STEPS,
    solver: diffrax.AbstractSolver = EULER,
    gradient: sde.AbstractGradient | None = None,
) -> Array:
    def one(key: Array) -> tuple[Array, Array]:
        sol = sde.sdeint(
            _drift,
            _diffusion,
            {"w": params.w0, "h": toy.inputs()},
            np.array([0.0, 1.0]),
            key=key,
            args=params.net,
            solver=solver,
            stepsize=sde.Fixed(1 / num_steps),
            gradient=gradient,
            path_kl=sde.KL(),
            prior_drift=_prior_drift,
        )
        assert sol.path_kl is not None
        return sol.ys["h"][-1], sol.path_kl[-1]

    return toy.loss(*jax.vmap(one)(toy.path_keys(key)))


def increments(key: Array, num_steps: int = toy.NUM_STEPS) -> Array:
    """What `loss` draws from `key`, (paths, steps, weights): paths of pure noise."""

    def zero(t: Array, y: Array, args: Any) -> Array:
        del t, args
        return jnp.zeros_like(y)

    def one(key: Array) -> Array:
        sol = sde.sdeint(
            zero,
            lambda t, y, args: 1.0,
            jnp.zeros(toy.NUM_WEIGHTS),
            np.linspace(0, 1, num_steps + 1),
            key=key,
            solver=EULER,
            stepsize=sde.Fixed(1 / num_steps),
        )
        return jnp.diff(sol.ys, axis=0)

    return jax.vmap(one)(toy.path_keys(key))
