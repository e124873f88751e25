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

Partially stochastic networks (Calvo-Ordoñez, Meunier, Piatti & Shi, 2024, "Partially
Stochastic Infinitely Deep Bayesian Neural Networks") have noise on some leaves of $w$
alone (`where`; the others are point estimates, constant in depth), or on a window of
depth alone (`WeightPrior.window`; outside it weights follow the drift without noise,
under posterior and prior alike, at no KL).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..._types import Array, ArrayLike, Float, Params, PRNGKeyArray, PyTree, RealScalar
from ...network import SolveReport, split_where
from ...nn import fan_ins
from ...sde import AbstractPathKL, OrnsteinUhlenbeck, Solution, gaussian_kl, sdeint
from .._softplus import softplus_inverse
from ._hidden_units import first_roughness, report_of, velocity
from ._integrator import Integrator
from ._weight_drift import WeightDrift


class BlockDraw(NamedTuple):
    """What one solve gives.

    Attributes:
        h: hidden units at depth 1.
        inducing: the inducing inputs' hidden units at depth 1, or `None`.
        kl: the estimator's KL, for training, nats.
        kl_path: ∫ ½‖u‖² dt, nats.
        kl_initial: KL(q(w₀) ‖ p(w₀)) in closed form, nats.
        report: of the solve.
    """

    h: Array
    inducing: Array | None
    kl: Float[Array, ""]
    kl_path: Float[Array, ""]
    kl_initial: Float[Array, ""]
    report: SolveReport


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
        window: the depths between which weights have noise.
    """

    sigma: float = 0.2
    rate: float = 1.0
    scale: float = 2.0
    is_relative: bool = eqx.field(static=True, default=True)
    reverts_to_start: bool = eqx.field(static=True, default=False)
    window: tuple[float, float] = eqx.field(static=True, default=(0.0, 1.0))

    def __check_init__(self):
        begin, end = self.window
        if not 0 <= begin < end <= 1:
            raise ValueError(
                f"`window` must be two depths with 0 <= begin < end <= 1, got "
                f"{self.window}; for weights without noise use `without_noise(model)`."
            )
        for name in ("sigma", "scale"):
            if getattr(self, name) <= 0:
                raise ValueError(
                    f"`{name}` must be positive, got {getattr(self, name)}; for "
                    "weights without noise use `without_noise(model)`."
                )
        if self.rate < 0:
            raise ValueError(f"`rate` must be at least 0, got {self.rate}.")

    def scales(
        self, dynamics: eqx.Module, weights: Params
    ) -> tuple[PyTree[float], PyTree[float]]:
        r"""$\rho$ and $\sigma$ for each leaf of the random weights.

        Args:
            dynamics: f_h.
            weights: those of its leaves that are random, `None` elsewhere.
        """
        if not self.is_relative:
            same = lambda value: jax.tree.map(lambda _: value, weights)
            return same(self.scale), same(self.sigma)
        start = jax.tree.map(
            lambda leaf, n: None if leaf is None else self.scale / n**0.5,
            weights,
            fan_ins(dynamics),
            is_leaf=lambda node: node is None,
        )
        return start, jax.tree.map(lambda s: self.sigma * s, start)


class SDEBlock(eqx.Module):
    """One solve of weights and hidden units.

    Attributes:
        dynamics: f_h, called as `(t, h)` with the batch first. Its random parameters
            are the mean of q(w₀), the others point estimates.
        rho: q(w₀)'s standard deviations before the softplus, or `None`: a point.
        drift: NN_φ, called as `(t, w, summary)`.
        process: the prior's drift and diffusion; frozen.
        initial_scale: standard deviations of the prior of w₀; frozen.
        integrator: how to solve.
        estimator: of the path KL, and of KL(w₀).
        reverts_to_start: whether the prior's drift reverts to w₀.
        is_noisy: whether weights have noise at all (the σ = 0 twin has none).
        window: the depths between which they have.
        where: f_h to its random subtree or a tuple of them; `None` for all of it.
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
    window: tuple[float, float] = eqx.field(static=True, default=(0.0, 1.0))
    where: Callable[[Any], PyTree] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_roughness(self.integrator.roughness_order, is_noisy=self.is_noisy)

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
        where: Callable[[Any], PyTree] | None = None,
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
            where: f_h to its random subtree, or a tuple of them.
            key: randomness of the initial parameters.
        """
        weights, _ = split_where(dynamics, where)
        if not jax.tree.leaves(weights):
            raise ValueError(
                "`dynamics` has no floating-point arrays (chosen by `where`), so there "
                "are no weights to be random; give a module with parameters."
            )
        start, sigma = prior.scales(dynamics, weights)
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
            weight_scale=start,
            drift_scale=jax.tree.map(lambda s: drift_scale * s, sigma),
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
            window=prior.window,
            where=where,
        )

    def frozen(self) -> tuple[PyTree, ...]:
        """What training leaves alone: the prior's numbers."""
        return self.process, self.initial_scale

    def __call__(
        self, h: Array, inducing: Array | None, *, key: PRNGKeyArray
    ) -> BlockDraw:
        """Solve from depth 0 to depth 1 along one path of the weights.

        Args:
            h: hidden units at depth 0, the batch first.
            inducing: those of the inducing inputs, or `None`.
            key: decides w₀ and the Brownian path.
        """
        ts = np.array([0.0, 1.0])
        ys, kl, kl_path, kl_initial, report = self._solve(h, inducing, ts, key=key)
        last = jax.tree.map(lambda x: x[-1], ys)
        return BlockDraw(last["h"], last["z"], kl, kl_path, kl_initial, report)

    def trajectory(
        self,
        h: Array,
        inducing: Array | None,
        ts: Float[ArrayLike, " times"],
        *,
        key: PRNGKeyArray,
    ) -> PyTree[Float[Array, "times ..."]]:
        """`{"w", "h", "z"}` at the given depths, along the path that `key` decides."""
        ys, *_ = self._solve(h, inducing, ts, key=key)
        return {name: ys[name] for name in ("w", "h", "z")}

    def _solve(
        self, h: Array, inducing: Array | None, ts: Any, *, key: PRNGKeyArray
    ) -> tuple[PyTree, Array, Array, Array, SolveReport]:
        start_key, path_key = jr.split(key)
        weights, static = split_where(self.dynamics, self.where)
        w0, kl0, kl_initial = self._start(weights, key=start_key)
        roughness = first_roughness(h, self.integrator)
        y = {"w": w0, "h": h, "z": inducing, "r": roughness}

        def prior_drift(t: RealScalar, w: Params) -> Params:
            if not self.reverts_to_start:
                return self.process.drift(t, w)
            away = jax.tree.map(jnp.subtract, w, w0)
            return self.process.drift(t, away)

        def drift(t: RealScalar, y: dict, args: Any) -> dict:
            del args
            f_h = eqx.combine(y["w"], static)
            nn = self.drift(t, y["w"], summarise(y["z"], h.dtype))
            dh, dr = velocity(f_h, t, y["h"], self.integrator)
            return {
                "w": jax.tree.map(jnp.add, prior_drift(t, y["w"]), nn),
                "h": dh,
                "z": None if y["z"] is None else f_h(t, y["z"]),
                "r": dr,
            }

        quiet = {"h": None, "z": None, "r": None}

        def diffusion(t: RealScalar, y: dict, args: Any) -> dict:
            return {"w": self.process.diffusion(t, y["w"], args), **quiet}

        def prior(t: RealScalar, y: dict, args: Any) -> dict:
            return {"w": prior_drift(t, y["w"]), **quiet}

        def piece(y: dict, times: Any, is_noisy: bool) -> Solution:
            return sdeint(
                drift,
                diffusion if is_noisy else None,
                y,
                times,
                key=path_key,
                solver=self.integrator.solver,
                stepsize=self.integrator.stepsize,
                gradient=self.integrator.gradient,
                path_kl=self.estimator if is_noisy else None,
                prior_drift=prior if is_noisy else None,
            )

        kl, kl_path = kl0, jnp.zeros((), h.dtype)
        parts, sols = [], []
        for times, wanted, is_noisy in self._pieces(ts):
            sol = piece(y, times, is_noisy)
            y = jax.tree.map(lambda x: x[-1], sol.ys)
            if sol.path_kl is not None and sol.half_squares is not None:
                kl, kl_path = kl + sol.path_kl[-1], sol.half_squares[-1]
            parts.append(jax.tree.map(lambda x, at=wanted: x[at], sol.ys))
            sols.append(sol)
        ys = parts[0]
        if len(parts) > 1:
            ys = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
        return ys, kl, kl_path, kl_initial, report_of(sols, y["r"])

    def _pieces(self, ts: Any) -> list[tuple[Any, Any, bool]]:
        """Consecutive solves: output times, which of them are wanted, is it noisy?"""
        begin, end = self.window
        if not self.is_noisy or (begin, end) == (0.0, 1.0):
            return [(ts, slice(None), self.is_noisy)]
        wanted = np.round(np.asarray(ts, np.float64), 9)
        times = np.unique(np.round([0.0, begin, end, 1.0, *wanted], 9))
        pieces = []
        for a, b in ((0.0, begin), (begin, end), (end, 1.0)):
            if a == b:
                continue
            inside = times[(times >= round(a, 9)) & (times <= round(b, 9))]
            at = np.isin(inside, wanted)
            at[0] &= a == 0.0  # the piece before has it
            pieces.append((inside, np.flatnonzero(at), a == begin))
        return pieces

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


def check_roughness(order: int, *, is_noisy: bool) -> None:
    """Refuse to regularise a derivative that does not exist."""
    if order == 2 and is_noisy:
        raise ValueError(
            "R_2 needs d²h/dt², which does not exist in an SDE-BNN, whose weights are "
            "rough in depth: regularise by order 1, or take an `ODENet`."
        )
