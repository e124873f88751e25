"""The toy SDE-BNN by `ornstein.sde.sdeint`, and the increments that it draws."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ornstein import sde

from . import toy

EULER = sde.EulerMaruyama()


def _drift(t: Array, y: dict, net: tuple) -> dict:
    w = y["w"]
    f_w = toy.net_output(t, w, net) - w
    return {"w": f_w, "h": toy.hidden_drift(t, w, y["h"])}


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
