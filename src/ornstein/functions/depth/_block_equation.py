r"""The equations that one solve of an SDE-BNN integrates.

$$dw = (f_p + NN_\phi)(w, t)\,dt + \sigma\,dB, \quad dh = f_h(h, t, w)\,dt, \quad
dH_Z = f_h(H_Z, t, w)\,dt,$$

with $f_p(w, t) = \theta (m - w)$ the prior's drift, $\sigma$ its diffusion, and
$NN_\phi$ what the posterior adds. The symbols are those of `_sde_block.py`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float, Params, PyTree, RealScalar
from ...sde import OrnsteinUhlenbeck
from ._hidden_units import DepthState, velocity, with_moving_weights
from ._integrator import Integrator


@dataclasses.dataclass(frozen=True, eq=False)
class BlockEquation:
    r"""Drift, diffusion and prior drift of a `DepthState`, given $w_0$.

    No module: a method of it is then a function to a solver, like any of a user's, and
    what it closes over is differentiated in the same order.

    Attributes:
        point: f_h without its random weights, which are in the state.
        network: NN_φ, called as `(t, w, summary)`.
        process: the prior's drift and diffusion.
        center: $w_0$ where the prior's drift reverts to it; `None` for reverting to 0.
        integrator: knows which roughness is asked for.
    """

    point: PyTree
    network: Callable[..., Params]
    process: OrnsteinUhlenbeck
    center: Params | None
    integrator: Integrator

    def drift(self, t: RealScalar, y: DepthState, args: Any) -> DepthState:
        """Of everything, under the posterior."""
        del args
        f_h = eqx.combine(y.weights, self.point)
        nn = self.network(t, y.weights, summarise(y.inducing, y.hidden.dtype))
        dw = jax.tree.map(jnp.add, self._revert(t, y.weights), nn)
        moving = f_h
        if self.integrator.roughness_order == 2:  # without noise
            moving = with_moving_weights(y.weights, dw, self.point)
        dh, dr = velocity(moving, t, y.hidden, self.integrator)
        return DepthState(
            hidden=dh,
            roughness=dr,
            weights=dw,
            inducing=None if y.inducing is None else f_h(t, y.inducing),
        )

    def diffusion(self, t: RealScalar, y: DepthState, args: Any) -> DepthState:
        """Of the weights, which alone have noise."""
        return DepthState(None, weights=self.process.diffusion(t, y.weights, args))

    def prior_drift(self, t: RealScalar, y: DepthState, args: Any) -> DepthState:
        """Of the weights, under the prior."""
        del args
        return DepthState(None, weights=self._revert(t, y.weights))

    def _revert(self, t: RealScalar, w: Params) -> Params:
        """The prior's drift f_p."""
        if self.center is None:
            return self.process.drift(t, w)
        return self.process.drift(t, jax.tree.map(jnp.subtract, w, self.center))


def summarise(inducing: Array | None, dtype: Any) -> Float[Array, " summary"]:
    """What NN_φ sees of the inducing inputs: vectors whole, images pooled to 2 by 2."""
    if inducing is None:
        return jnp.zeros((0,), dtype)
    if inducing.ndim == 4:
        num, height, width, channels = inducing.shape
        quarters = inducing.reshape(num, 2, height // 2, 2, width // 2, channels)
        inducing = jnp.mean(quarters, (2, 4))
    return inducing.reshape(-1)
