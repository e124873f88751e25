r"""Hidden units and weights moving together: one solve of the SDE-BNN.

Xu, Chen, Li and Duvenaud (2022), "Infinitely Deep Bayesian Neural Networks with
Stochastic Differential Equations". Depth is time, $t \in [0, 1]$:

$$dw = f_q(w, t)\,dt + \sigma\,dB, \quad dh = f_h(h, t, w)\,dt, \quad
d\ell = \tfrac12 \|u\|^2 dt, \quad u = (f_q - f_p) / \sigma,$$

with $f_q = f_p + NN_\phi$: their eq. 10 prints a minus sign, but the text's "equals the
prior when the final layer is zero" needs a plus.

Inducing inputs go beyond the paper: M learned pseudo-inputs ride along in the same
solve, $dH_Z = f_h(H_Z, t, w)\,dt$, and $NN_\phi$ sees $H_Z$ too. $u$ stays adapted to
$B$, so that the path KL and the bound hold as they stand, and the drift can react to
what the path of $w$ has done to functions so far, as the exact posterior's must.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .._types import Array, ArrayLike, Float, Params, PRNGKeyArray, PyTree, RealScalar
from ..nn import fan_ins
from ..sde import AbstractPathKL, OrnsteinUhlenbeck, gaussian_kl, sdeint
from ._integrator import Integrator
from ._softplus import softplus_inverse
from ._weight_drift import WeightDrift


class BlockDraw(NamedTuple):
    """What one solve gives.

    Attributes:
        h: hidden units at depth 1.
        inducing: the inducing inputs' hidden units at depth 1, or `None`.
        kl: the estimator's KL, for training, nats.
        kl_path: ∫ ½‖u‖² dt, nats.
        kl_initial: KL(q(w₀) ‖ p(w₀)) in closed form, nats.
    """

    h: Array
    inducing: Array | None
    kl: Float[Array, ""]
    kl_path: Float[Array, ""]
    kl_initial: Float[Array, ""]


class WeightPrior(eqx.Module):
    r"""The prior over the weights: where they start, and how they move.

    $w_0 \sim N(0, \rho^2)$ and $dw = \theta (m - w)\,dt + \sigma\,dB$.

    Attributes:
        sigma: the diffusion.
        rate: $\theta$; 0 for Brownian motion.
        scale: standard deviation of $w_0$.
        is_relative: whether `sigma` is in units of $\rho$, and `scale` in units of
            1/√fan-in, for each leaf; otherwise both are absolute.
        reverts_to_start: whether $m$ is $w_0$ rather than 0.
    """

    sigma: float = 0.2
    rate: float = 1.0
    scale: float = 2.0
    is_relative: bool = eqx.field(static=True, default=True)
    reverts_to_start: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        for name in ("sigma", "scale"):
            if getattr(self, name) <= 0:
                raise ValueError(
                    f"`{name}` must be positive, got {getattr(self, name)}; for "
                    "weights without noise use `without_noise(model)`."
                )
        if self.rate < 0:
            raise ValueError(f"`rate` must be at least 0, got {self.rate}.")

    def scales(self, dynamics: eqx.Module) -> tuple[PyTree[float], PyTree[float]]:
        r"""$\rho$ and $\sigma$ for each leaf of the weights."""
        weights = eqx.filter(dynamics, eqx.is_inexact_array)
        if not self.is_relative:
            same = lambda value: jax.tree.map(lambda _: value, weights)
            return same(self.scale), same(self.sigma)
        start = jax.tree.map(lambda n: self.scale / n**0.5, fan_ins(dynamics))
        return start, jax.tree.map(lambda s: self.sigma * s, start)


class SDEBlock(eqx.Module):
    """One solve of weights and hidden units.

    Attributes:
        dynamics: f_h, called as `(t, h)` with the batch first. Its parameters are the
            mean of q(w₀).
        rho: q(w₀)'s standard deviations before the softplus, or `None`: a point.
        drift: NN_φ, called as `(t, w, summary)`.
        process: the prior's drift and diffusion; frozen.
        initial_scale: standard deviations of the prior of w₀; frozen.
        integrator: how to solve.
        estimator: of the path KL, and of KL(w₀).
        reverts_to_start: whether the prior's drift reverts to w₀.
        is_noisy: whether weights have noise at all (the σ = 0 twin has none).
    """

    dynamics: eqx.Module
    rho: Params | None
    drift: Callable[..., Params]
    process: OrnsteinUhlenbeck
    initial_scale: PyTree[Float[Array, ""]]
    integrator: Integrator
    estimator: AbstractPathKL
    reverts_to_start: bool = eqx.field(static=True)
    is_noisy: bool = eqx.field(static=True, default=True)

    @staticmethod
    def make(
        dynamics: eqx.Module,
        *,
        prior: WeightPrior,
        start_width: float | None,
        width_sizes: tuple[int, ...],
        drift_scale: float,
        summary_size: int,
        integrator: Integrator,
        estimator: AbstractPathKL,
        key: PRNGKeyArray,
    ) -> "SDEBlock":
        """A block whose posterior starts as its prior, but for w₀.

        Args:
            dynamics: f_h.
            prior: over the weights.
            start_width: q(w₀)'s standard deviation at first, in units of the prior's;
                `None` for a point.
            width_sizes: hidden widths of NN_φ.
            drift_scale: multiplies NN_φ's output.
            summary_size: numbers that NN_φ sees of the inducing inputs.
            integrator: how to solve.
            estimator: of the KL.
            key: randomness of the initial parameters.
        """
        weights = eqx.filter(dynamics, eqx.is_inexact_array)
        if not jax.tree.leaves(weights):
            raise ValueError(
                "`dynamics` has no floating-point arrays, so there are no weights to "
                "be random; give a module with parameters."
            )
        start, sigma = prior.scales(dynamics)
        like = lambda value: jax.tree.map(
            lambda v, leaf: jnp.asarray(v, leaf.dtype), value, weights
        )
        rho = None
        if start_width is not None:
            if start_width <= 0:
                raise ValueError(f"`start_width` must be positive, got {start_width}.")
            rho = jax.tree.map(
                lambda s, leaf: jnp.full_like(leaf, softplus_inverse(start_width * s)),
                start,
                weights,
            )
        drift = WeightDrift(
            weights,
            width_sizes=width_sizes,
            summary_size=summary_size,
            weight_scale=like(start),
            drift_scale=like(jax.tree.map(lambda s: drift_scale * s, sigma)),
            key=key,
        )
        process = OrnsteinUhlenbeck(rate=prior.rate, mean=0.0, scale=like(sigma))
        return SDEBlock(
            dynamics,
            rho,
            drift,
            process,
            like(start),
            integrator,
            estimator,
            prior.reverts_to_start,
        )

    def frozen(self) -> tuple[PyTree, ...]:
        """What training leaves alone: the prior's numbers and the drift's units."""
        frozen: tuple[PyTree, ...] = (self.process, self.initial_scale)
        if isinstance(self.drift, WeightDrift):
            frozen += (self.drift.input_scale, self.drift.output_scale)
        return frozen

    def __call__(
        self, h: Array, inducing: Array | None, *, key: PRNGKeyArray
    ) -> BlockDraw:
        """Solve from depth 0 to depth 1 along one path of the weights.

        Args:
            h: hidden units at depth 0, the batch first.
            inducing: those of the inducing inputs, or `None`.
            key: decides w₀ and the Brownian path.
        """
        out = self._solve(h, inducing, np.array([0.0, 1.0]), key=key)
        ys, kl, kl_path, kl_initial = out
        last = jax.tree.map(lambda x: x[-1], ys)
        return BlockDraw(last["h"], last["z"], kl, kl_path, kl_initial)

    def trajectory(
        self,
        h: Array,
        inducing: Array | None,
        ts: Float[ArrayLike, " times"],
        *,
        key: PRNGKeyArray,
    ) -> PyTree[Float[Array, "times ..."]]:
        """`{"w", "h", "z"}` at the given depths, along the path that `key` decides."""
        return self._solve(h, inducing, ts, key=key)[0]

    def _solve(
        self, h: Array, inducing: Array | None, ts: Any, *, key: PRNGKeyArray
    ) -> tuple[PyTree, Array, Array, Array]:
        start_key, path_key = jr.split(key)
        weights, static = eqx.partition(self.dynamics, eqx.is_inexact_array)
        w0, kl0, kl_initial = self._start(weights, key=start_key)

        def prior_drift(t: RealScalar, w: Params) -> Params:
            if not self.reverts_to_start:
                return self.process.drift(t, w)
            away = jax.tree.map(jnp.subtract, w, w0)
            return self.process.drift(t, away)

        def drift(t: RealScalar, y: dict, args: Any) -> dict:
            del args
            f_h = eqx.combine(y["w"], static)
            nn = self.drift(t, y["w"], summarise(y["z"], h.dtype))
            return {
                "w": jax.tree.map(jnp.add, prior_drift(t, y["w"]), nn),
                "h": f_h(t, y["h"]),
                "z": None if y["z"] is None else f_h(t, y["z"]),
            }

        def diffusion(t: RealScalar, y: dict, args: Any) -> dict:
            return {"w": self.process.diffusion(t, y["w"], args), "h": None, "z": None}

        def prior(t: RealScalar, y: dict, args: Any) -> dict:
            return {"w": prior_drift(t, y["w"]), "h": None, "z": None}

        sol = sdeint(
            drift,
            diffusion if self.is_noisy else None,
            {"w": w0, "h": h, "z": inducing},
            ts,
            key=path_key,
            solver=self.integrator.solver,
            stepsize=self.integrator.stepsize,
            gradient=self.integrator.gradient,
            path_kl=self.estimator if self.is_noisy else None,
            prior_drift=prior if self.is_noisy else None,
        )
        if sol.path_kl is None or sol.half_squares is None:
            zero = jnp.zeros((), h.dtype)
            return sol.ys, kl0, zero, kl_initial
        return sol.ys, kl0 + sol.path_kl[-1], sol.half_squares[-1], kl_initial

    def _start(
        self, mean: Params, *, key: PRNGKeyArray
    ) -> tuple[Params, Float[Array, ""], Float[Array, ""]]:
        """w₀, its KL by the estimator, and its KL in closed form."""
        if self.rho is None or not self.is_noisy:
            return mean, jnp.zeros(()), jnp.zeros(())
        scale = jax.tree.map(jax.nn.softplus, self.rho)
        leaves, treedef = jax.tree.flatten(mean)
        keys = jax.tree.unflatten(treedef, list(jr.split(key, len(leaves))))
        w0 = jax.tree.map(
            lambda m, s, k: m + s * jr.normal(k, m.shape, m.dtype), mean, scale, keys
        )
        p_mean = jax.tree.map(jnp.zeros_like, mean)
        p_scale = jax.tree.map(
            lambda s, m: jnp.full_like(m, s), self.initial_scale, mean
        )
        kl = self.estimator.gaussian(w0, mean, scale, p_mean, p_scale)
        return w0, kl, gaussian_kl(mean, scale, p_mean, p_scale)


def summarise(inducing: Array | None, dtype: Any) -> Float[Array, " summary"]:
    """What NN_φ sees of the inducing inputs: vectors whole, images pooled to 2 by 2."""
    if inducing is None:
        return jnp.zeros((0,), dtype)
    if inducing.ndim == 4:
        num, height, width, channels = inducing.shape
        quarters = inducing.reshape(num, 2, height // 2, 2, width // 2, channels)
        inducing = jnp.mean(quarters, (2, 4))
    return inducing.reshape(-1)
