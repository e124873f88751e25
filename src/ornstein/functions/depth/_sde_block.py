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

from ..._sentence import OptionError
from ..._types import Array, ArrayLike, Float, Params, PRNGKeyArray, PyTree
from ...network import SolveReport, split_where
from ...sde import AbstractPathKL, OrnsteinUhlenbeck, Solution, gaussian_kl, sdeint
from .._softplus import softplus_inverse
from ._block_equation import BlockEquation
from ._grid_times import depths_by_window
from ._hidden_units import (
    DepthState,
    check_roughness,
    first_roughness,
    promoted,
    report_of,
)
from ._integrator import Integrator
from ._weight_drift import WeightDrift
from ._weight_prior import WeightPrior


class BlockDraw(NamedTuple):
    """What one solve gives.

    Attributes:
        states: at depth 1; or at several depths, which then lead.
        kl: the estimator's KL, for training, nats.
        kl_path: ∫ ½‖u‖² dt, nats.
        kl_initial: KL(q(w₀) ‖ p(w₀)) in closed form, nats.
        report: of the solve.
    """

    states: DepthState
    kl: Float[Array, ""]
    kl_path: Float[Array, ""]
    kl_initial: Float[Array, ""]
    report: SolveReport


class WeightStart(NamedTuple):
    """A draw of w₀.

    Attributes:
        weights: w₀.
        kl: the estimator's KL of its distribution, nats.
        kl_initial: that KL in closed form, nats.
    """

    weights: Params
    kl: Float[Array, ""]
    kl_initial: Float[Array, ""]


class Piece(NamedTuple):
    """A stretch of depth with noise throughout, or without.

    Attributes:
        times: from its begin to its end, output depths in between.
        wanted: which of `times` were asked for.
        is_noisy: whether weights have noise there.
    """

    times: Float[ArrayLike, " times"]
    wanted: slice | np.ndarray
    is_noisy: bool


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

        def like(value: PyTree) -> PyTree:
            # Numbers even where shapes alone are traced: `whiten` reads them.
            with jax.ensure_compile_time_eval():
                number = lambda v, leaf: jnp.asarray(v, leaf.dtype)
                return jax.tree.map(number, value, weights)

        rho = None
        if start_width is not None:
            if start_width <= 0:
                raise OptionError(
                    "{start_width} must be positive, got {}.", start_width
                )
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
        draw = self._solve(h, inducing, np.array([0.0, 1.0]), key=key)
        return draw._replace(states=jax.tree.map(lambda x: x[-1], draw.states))

    def trajectory(
        self,
        h: Array,
        inducing: Array | None,
        ts: Float[ArrayLike, " times"],
        *,
        key: PRNGKeyArray,
    ) -> DepthState:
        """States at the given depths, which lead, along the path of `key`."""
        return self._solve(h, inducing, ts, key=key).states

    def _solve(
        self, h: Array, inducing: Array | None, ts: Any, *, key: PRNGKeyArray
    ) -> BlockDraw:
        start_key, path_key = jr.split(key)
        h = promoted(h, self.dynamics)
        weights, point = split_where(self.dynamics, self.where)
        start = self._start(weights, key=start_key)
        center = start.weights if self.reverts_to_start else None
        equation = BlockEquation(
            point, self.drift, self.process, center, self.integrator
        )
        roughness = first_roughness(h, self.integrator)
        y = DepthState(h, roughness, start.weights, inducing)
        kl, kl_path = start.kl, jnp.zeros((), h.dtype)
        parts, sols = [], []
        for piece in self._pieces(ts):
            sol = self._integrate(equation, y, piece, key=path_key)
            y = jax.tree.map(lambda x: x[-1], sol.ys)
            if sol.path_kl is not None and sol.half_squares is not None:
                kl, kl_path = kl + sol.path_kl[-1], sol.half_squares[-1]
            parts.append(jax.tree.map(lambda x, at=piece.wanted: x[at], sol.ys))
            sols.append(sol)
        states = parts[0]
        if len(parts) > 1:
            states = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
        report = report_of(sols, y.roughness)
        return BlockDraw(states, kl, kl_path, start.kl_initial, report)

    def _integrate(
        self, equation: BlockEquation, y: DepthState, piece: Piece, *, key: PRNGKeyArray
    ) -> Solution:
        """One piece of the solve, from `y` at its begin."""
        noisy = piece.is_noisy
        return sdeint(
            equation.drift,
            equation.diffusion if noisy else None,
            y,
            piece.times,
            key=key,
            solver=self.integrator.solver,
            stepsize=self.integrator.stepsize,
            gradient=self.integrator.gradient,
            path_kl=self.estimator if noisy else None,
            prior_drift=equation.prior_drift if noisy else None,
        )

    def _pieces(self, ts: Any) -> list[Piece]:
        """Consecutive solves, cut where noise begins and ends."""
        begin, end = self.window
        if not self.is_noisy or (begin, end) == (0.0, 1.0):
            return [Piece(ts, slice(None), self.is_noisy)]
        wanted = depths_by_window(ts, self.window)
        times = np.unique(np.round([0.0, begin, end, 1.0, *wanted], 9))
        pieces = []
        for a, b in ((0.0, begin), (begin, end), (end, 1.0)):
            if a == b:
                continue
            inside = times[(times >= round(a, 9)) & (times <= round(b, 9))]
            # What is at its first time the piece before has.
            is_here = (wanted > inside[0]) | (a == 0.0)
            here = wanted[is_here & (wanted <= inside[-1])]
            pieces.append(Piece(inside, np.searchsorted(inside, here), a == begin))
        return pieces

    def _start(self, mean: Params, *, key: PRNGKeyArray) -> WeightStart:
        """Draw w₀."""
        if self.rho is None or not self.is_noisy:
            return WeightStart(mean, jnp.zeros(()), jnp.zeros(()))
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
        return WeightStart(w0, kl, gaussian_kl(mean, scale, p_mean, p_scale))
