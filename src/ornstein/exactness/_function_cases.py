r"""Small problems on which the optimum of a random function's bound is known.

An SDE-BNN and an implicit network that are Bayesian linear regression, a latent SDE
whose posterior a Kalman smoother has, and mean field by IVON on a linear network.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from .._types import Array, Float, PRNGKeyArray
from ..data import Series, Split
from ..functions import (
    SDEBNN,
    ImplicitBNN,
    Integrator,
    LatentSDE,
    LatentStart,
    NoRecognition,
    ProcessDiffusion,
    ProcessDrift,
    SDEBlock,
    WeightPrior,
)
from ..likelihood import Gaussian, OverTime
from ..nn import Linear
from ..sde import KL, EulerMaruyama, Fixed, Grid, OrnsteinUhlenbeck
from ._control import Chain, Seen, best_constant_gain, posterior, read, regulate
from ._functions import FunctionCase
from ._ivon_cases import ivon_case, linear_network
from ._targets import LinearRegression, Moments, linear_regression

SDEBNN_NUM_STEPS = 20
SDEBNN_RATE, SDEBNN_SIGMA, SDEBNN_DEVIATION, SDEBNN_SCALE = 1.0, 0.8, 0.6, 0.6
SDEBNN_XS = np.array([-1.0, -0.6, 0.1, 0.5, 1.0])
SDEBNN_YS = np.array([-0.9, -0.1, 0.4, 0.3, 1.1])
_INDUCING = SDEBNN_XS[[0, 4]]


def function_cases() -> list[FunctionCase]:
    """One for each family that has a bound to be at the top of."""
    return [
        _sde_bnn(num_inducing=0),
        _sde_bnn(num_inducing=len(_INDUCING)),
        _implicit(1),
        _implicit(2),
        _latent_sde(),
        ivon_case(linear_network, linear_regression(), batch_size=None),
        ivon_case(linear_network, linear_regression(), batch_size=12),
    ]


# The SDE-BNN that is linear regression: dh_x = <w, features(x)> dt


class _Slopes(eqx.Module):
    """f_h of one number a row, behind which its features are carried unmoved."""

    w: Array

    def __call__(self, t: Array, h: Array) -> Array:
        return jnp.zeros_like(h).at[:, 0].set(h[:, 1:] @ self.w)


class _AffineDrift(eqx.Module):
    """NN_φ: affine in w, and in h of the inducing inputs, at each step of the grid."""

    of_w: Float[Array, "gains weights weights"]
    of_h: Float[Array, "gains weights inducing"]
    constant: Float[Array, "steps weights"]

    @staticmethod
    def zeros(num_gains: int, num_inducing: int) -> "_AffineDrift":
        """The prior's own drift.

        Args:
            num_gains: one for all steps, or one for each.
            num_inducing: inputs.
        """
        return _AffineDrift(
            jnp.zeros((num_gains, 2, 2)),
            jnp.zeros((num_gains, 2, num_inducing)),
            jnp.zeros((SDEBNN_NUM_STEPS, 2)),
        )

    def __call__(self, t: Array, w: _Slopes, summary: Array) -> _Slopes:
        step = jnp.round(t * SDEBNN_NUM_STEPS).astype(int)
        if len(self.of_w) == 1:
            # The constant is a line from its first value to its last.
            constant = self.constant[0] + t * (self.constant[-1] - self.constant[0])
            gain = 0 * step
        else:
            constant, gain = self.constant[step], step
        drift = self.of_w[gain] @ w.w + constant
        if self.of_h.size:
            h = summary.reshape(self.of_h.shape[-1], -1)[:, 0]
            drift += self.of_h[gain] @ h
        return eqx.tree_at(lambda slopes: slopes.w, w, drift)


def slope_features(x: np.ndarray) -> np.ndarray:
    """Orthogonal on the data, so that the posterior of w(0) factorises.

    Args:
        x: (rows,).
    """
    return np.stack([np.ones_like(x), x - SDEBNN_XS.mean()], axis=1)


def _with_features(x: Array) -> Array:
    """(0, features) of each row."""
    centred = x - jnp.asarray(SDEBNN_XS.mean(), x.dtype)
    return jnp.concatenate([jnp.zeros_like(x), jnp.ones_like(x), centred], axis=1)


def _first(h: Array) -> Array:
    return h[:, :1]


def make_affine_sde_bnn(
    num_inducing: int, num_steps: int = SDEBNN_NUM_STEPS, *, key: PRNGKeyArray
) -> SDEBNN:
    """The model, whose posterior starts near its prior.

    Args:
        num_inducing: inducing inputs.
        num_steps: of the solver.
        key: of its start.
    """
    block = SDEBlock.make(
        _Slopes(0.1 * jax.random.normal(key, (2,))),
        prior=WeightPrior(
            sigma=SDEBNN_SIGMA,
            rate=SDEBNN_RATE,
            scale=SDEBNN_DEVIATION,
            is_relative=False,
        ),
        start_width=0.5,
        width_sizes=(1,),
        drift_scale=1.0,
        summary_size=3 * num_inducing,
        integrator=Integrator(EulerMaruyama(), Fixed(1 / num_steps)),
        estimator=KL(),
        key=key,
    )
    drift = _AffineDrift.zeros(SDEBNN_NUM_STEPS if num_inducing else 1, num_inducing)
    block = eqx.tree_at(lambda b: b.drift, block, drift)
    inducing = jnp.asarray(_INDUCING, float)[:, None] if num_inducing else None
    return SDEBNN((_with_features, block), _first, inducing)


def _sde_bnn(num_inducing: int) -> FunctionCase:
    dt, eye, none = 1 / SDEBNN_NUM_STEPS, np.eye(2), np.zeros((2, 2))
    reads = np.concatenate([np.zeros((5, 2)), slope_features(SDEBNN_XS)], axis=1)
    chain = Chain(
        np.block([[(1 - dt) * eye, none], [dt * eye, eye]]),
        np.concatenate([eye, none]),
        SDEBNN_SIGMA,
        dt,
        SDEBNN_NUM_STEPS,
        (np.zeros(4), np.array([SDEBNN_DEVIATION, SDEBNN_DEVIATION, 0.0, 0.0])),
        {SDEBNN_NUM_STEPS: Seen(reads, SDEBNN_YS, SDEBNN_SCALE)},
    )
    best = regulate(chain) if num_inducing else best_constant_gain(chain, 2)
    at = {SDEBNN_NUM_STEPS: reads[[0, 4]]}
    x = np.asarray(SDEBNN_XS, np.float32)[:, None]
    return FunctionCase(
        "SDEBNN, inducing inputs" if num_inducing else "SDEBNN",
        "optimum of its bound, linear regression",
        partial(make_affine_sde_bnn, num_inducing),
        Split(x, SDEBNN_YS.astype(np.float32)[:, None]),
        Gaussian(SDEBNN_SCALE),
        x[[0, 4]],
        (0, 1),
        read(chain, best, at),
        posterior(chain, at),
        {"num_epochs": 3000, "num_draws": 128, "learning_rate": 0.03},
    )


# The implicit network that is linear regression: y = Σ u_j z_j x_j


def _implicit_optimum(
    target: LinearRegression, num_components: int, prior_scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""U, and μ and σ of each component, where the bound is largest.

    $\frac1K \sum_k E_k \log p(y) - KL(N(\bar\mu, \sum_k \sigma_k^2 / K^2) \| N(1,
    s^2))$, whose expectations are in closed form. U is a point, and has no prior.
    """
    dim, k = target.x.shape[1], num_components
    squares = (target.x**2).sum(axis=0)

    def parts(numbers: np.ndarray):
        u, rest = numbers[:dim], numbers[dim:].reshape(2, k, dim)
        return u, rest[0], np.exp(rest[1])

    def loss(numbers: np.ndarray) -> float:
        u, mean, scale = parts(numbers)
        fit = 0.0
        for component_mean, component_scale in zip(mean, scale, strict=True):
            error = target.y - target.x @ (u * component_mean)
            fit += error @ error + squares @ (u * component_scale) ** 2
        centre = (mean.mean(axis=0) - 1) / prior_scale
        variance = (scale**2).sum(axis=0) / k**2 / prior_scale**2
        kl = (variance + centre**2 - 1 - np.log(variance)).sum() / 2
        return fit / k / (2 * target.scale**2) + kl

    begin = np.concatenate(
        [target.posterior().mean, np.ones(k * dim), np.full(k * dim, -1.5)]
    )
    return parts(optimize.minimize(loss, begin, method="BFGS").x)


def _regression() -> LinearRegression:
    """That of the other rows, at weights that no U can bring to 0."""
    target = linear_regression()
    weights = np.array([1.0, -1.5, 2.0, -1.0, 1.5])
    noise = target.scale * np.random.default_rng(6).normal(size=len(target.x))
    y = (target.x @ weights + noise).astype(np.float32).astype(np.float64)
    return target._replace(y=y)


def _make_implicit(
    dim: int, num_components: int, prior_scale: float, *, key: PRNGKeyArray
) -> ImplicitBNN:
    linear_key, key = jax.random.split(key)
    network = Linear(dim, 1, use_bias=False, key=linear_key)
    return ImplicitBNN(
        network,
        num_components=num_components,
        prior_scale=prior_scale,
        init_spread=0.1,
        init_scale=0.2,
        key=key,
    )


def _implicit(num_components: int) -> FunctionCase:
    target, prior_scale = _regression(), 0.5
    u, means, scales = _implicit_optimum(target, num_components, prior_scale)
    means, scales = u * means, abs(u) * scales
    mean = means.mean(axis=0)
    within = np.diag((scales**2).mean(axis=0))
    between = (means - mean).T @ (means - mean) / num_components
    # The posterior of the weights w = u z, with u where the bound has it.
    precision = target.x.T @ target.x / target.scale**2 + np.diag(
        1 / (prior_scale * u) ** 2
    )
    covariance = np.linalg.inv(precision)
    pull = target.x.T @ target.y / target.scale**2 + u / (prior_scale * u) ** 2
    dim = target.x.shape[1]
    number = "one component" if num_components == 1 else f"{num_components} components"
    return FunctionCase(
        f"ImplicitBNN, {number}",
        "optimum of its bound, linear regression",
        partial(_make_implicit, dim, num_components, prior_scale),
        Split(target.x.astype(np.float32), target.y.astype(np.float32)[:, None]),
        Gaussian(target.scale),
        # On the unit vectors a linear layer shows its weights.
        np.eye(dim, dtype=np.float32),
        tuple(range(dim)),
        Moments(mean, within + between),
        Moments(covariance @ pull, covariance),
        {
            "num_epochs": 3000,
            "batch_size": len(target.x),
            "num_draws": 128,
            "learning_rate": 0.01,
        },
    )


# The latent SDE that is a Kalman smoother's chain


_RATE, _LATENT_SIGMA, _MEAN, _SPREAD, _SLOPE, _NOISE = 0.8, 0.7, 0.5, 0.9, 1.2, 0.6
_TIMES = np.linspace(0.0, 1.0, 6)
_VALUES = np.array([1.6, 0.9, 1.8, 0.2, -0.4, 0.3])


class _LatentDrift(eqx.Module):
    """f_q − f_p: affine in z at each step of the grid."""

    gain: Float[Array, " steps"]
    constant: Float[Array, " steps"]

    def __call__(self, t: Array, z: Array, context: Array) -> Array:
        del context
        step = jnp.round(t * SDEBNN_NUM_STEPS).astype(int)
        return self.gain[step] * z + self.constant[step]


class _Slope(eqx.Module):
    """The decoder: c z."""

    def __call__(self, z: Array) -> Array:
        return _SLOPE * z


def _make_latent_sde(*, key: PRNGKeyArray) -> LatentSDE:
    process = OrnsteinUhlenbeck(rate=_RATE, scale=_LATENT_SIGMA)
    zeros = jnp.zeros(SDEBNN_NUM_STEPS)
    num_substeps = SDEBNN_NUM_STEPS // (len(_TIMES) - 1)
    return LatentSDE(
        NoRecognition(1, mean=float(0.1 * jax.random.normal(key)), scale=0.5),
        LatentStart(1, mean=_MEAN, scale=_SPREAD),
        ProcessDrift(process),
        _LatentDrift(zeros, zeros),
        ProcessDiffusion(process),
        _Slope(),
        Integrator(EulerMaruyama(), Grid(num_substeps=num_substeps)),
    )


def _latent_sde() -> FunctionCase:
    dt = 1 / SDEBNN_NUM_STEPS
    every = SDEBNN_NUM_STEPS // (len(_TIMES) - 1)
    reads = np.array([[_SLOPE]])
    seen = {
        i * every: Seen(reads, np.array([value]), _NOISE)
        for i, value in enumerate(_VALUES)
    }
    chain = Chain(
        np.array([[1 - _RATE * dt]]),
        np.ones((1, 1)),
        _LATENT_SIGMA,
        dt,
        SDEBNN_NUM_STEPS,
        (np.array([_MEAN]), np.array([_SPREAD])),
        seen,
    )
    entries = (0, 2, 5)
    at = {i * every: reads for i in entries}
    series = Series.of(_TIMES, _VALUES[None, :, None])
    return FunctionCase(
        "LatentSDE",
        "optimum of its bound, linear-Gaussian chain",
        _make_latent_sde,
        Split(series, series),
        OverTime(Gaussian(_NOISE)),
        series,
        entries,
        read(chain, regulate(chain), at),
        posterior(chain, at),
        {"num_epochs": 3000, "num_draws": 128, "learning_rate": 0.01},
    )
