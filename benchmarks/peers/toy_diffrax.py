"""The toy SDE-BNN by `diffrax.diffeqsolve`, as its documentation solves SDEs."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from . import toy


class GivenIncrements(diffrax.AbstractBrownianPath):
    """A Brownian path of which the increments over one grid's steps are known."""

    increments: Array
    levy_area: type = eqx.field(static=True, default=diffrax.BrownianIncrement)

    @property
    def t0(self) -> float:
        return 0.0

    @property
    def t1(self) -> float:
        return 1.0

    def evaluate(
        self, t0: Any, t1: Any = None, left: Any = True, use_levy: Any = False
    ):
        del t1, left, use_levy
        return self.increments[jnp.round(t0 * len(self.increments)).astype(jnp.int32)]


class WeightNoise(diffrax.AbstractTerm):
    """σ dB on w; nothing on h and the KL."""

    path: diffrax.AbstractBrownianPath

    def vf(self, t: Any, y: tuple, args: Any) -> tuple:
        del t, args
        return y

    def contr(self, t0: Any, t1: Any, **kwargs: Any) -> Array:
        del kwargs
        return self.path.evaluate(t0, t1)

    def prod(self, vf: tuple, control: Array) -> tuple:
        _, h, kl = vf
        return toy.SIGMA * control, jnp.zeros_like(h), jnp.zeros_like(kl)


def _drift(t: Array, y: tuple, net: tuple) -> tuple:
    w, h, _ = y
    n = toy.net_output(t, w, net)
    return n - w, toy.hidden_drift(t, w, h), jnp.sum((n / toy.SIGMA) ** 2) / 2


def _solve(
    params: toy.Params, path: diffrax.AbstractBrownianPath
) -> tuple[Array, Array]:
    sol = diffrax.diffeqsolve(
        diffrax.MultiTerm(diffrax.ODETerm(_drift), WeightNoise(path)),
        diffrax.Euler(),
        0.0,
        1.0,
        1 / toy.NUM_STEPS,
        (params.w0, toy.inputs(), jnp.zeros(())),
        args=params.net,
        max_steps=toy.NUM_STEPS + 1,
    )
    _, h, kl = sol.ys
    return h[-1], kl[-1]


def loss_on(params: toy.Params, increments: Array) -> Array:
    """The loss on given increments, (paths, steps, weights)."""
    one = lambda dws: _solve(params, GivenIncrements(dws))
    return toy.loss(*jax.vmap(one)(increments))


def loss(params: toy.Params, key: Array) -> Array:
    def one(key: Array) -> tuple[Array, Array]:
        path = diffrax.VirtualBrownianTree(
            0.0, 1.0, tol=0.5 / toy.NUM_STEPS, shape=(toy.NUM_WEIGHTS,), key=key
        )
        return _solve(params, path)

    return toy.loss(*jax.vmap(one)(toy.path_keys(key)))
