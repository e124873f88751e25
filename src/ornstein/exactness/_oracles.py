"""The exact moments of what each sampler does on a Gaussian posterior."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..mcmc import AbstractState
from ..sgmcmc import Cyclical
from ._chains import Estimate
from ._moment_equation import (
    MomentMap,
    drift_map,
    gradient_map,
    kick_map,
    rescale_map,
)
from ._targets import BATCH_SIZE, LinearRegression, Moments, RowGradients, flat
from ._twins import Rest, adaptive_drift_law, microcanonical_law

Oracle = Callable[[LinearRegression, AbstractState], Moments | Estimate]
"""A target, and a state that says what was adapted, to the stationary moments."""


def exact_posterior(target: LinearRegression, state: AbstractState) -> Moments:
    """What every kernel with a Metropolis test has."""
    del state
    return target.posterior()


def microcanonical(target: LinearRegression, state: AbstractState) -> Estimate:
    """Of its twin, at the step size and length that it has."""
    kept: Any = state
    return microcanonical_law(
        target, float(kept.step_size), float(kept.decoherence_length)
    )


def adaptive_drift(
    step_size: float,
    drift_weight: float,
    decays: tuple[float, float],
    *,
    batch_size: int = BATCH_SIZE,
    thin: int = 40,
) -> Oracle:
    """Of its twin."""

    def oracle(target: LinearRegression, state: AbstractState) -> Estimate:
        del state
        rest = Rest(num_dropped=6, thin=thin, num_chains=1024)
        return adaptive_drift_law(
            target, step_size, drift_weight, decays, batch_size, rest
        )

    return oracle


def langevin(step_size: float) -> Oracle:
    r"""$\theta' = \theta - \frac{\varepsilon^2}{2} \nabla U + \varepsilon \xi$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        step = step_size**2 * np.eye(target.x.shape[1])
        rows = target.row_gradients()
        return gradient_map(rows, step / 2, step, np.inf).stationary(len(step))

    return oracle


def sgld(
    step_size: float,
    *,
    has_control_variate: bool = False,
    batch_size: int = BATCH_SIZE,
) -> Oracle:
    r"""$\theta' = \theta - \varepsilon \nabla \tilde U / 2 + \sqrt\varepsilon \xi$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        rows = target.row_gradients()
        if has_control_variate:
            rows = rows.around(_numbers(state.position))
        step = step_size * np.eye(target.x.shape[1])
        return _sgld_moments(rows, step, batch_size)

    return oracle


def preconditioned_sgld(
    step_size: float, *, damping: float, batch_size: int = BATCH_SIZE
) -> Oracle:
    r"""SGLD with steps $\varepsilon / (\lambda + \sqrt s)$, s as it was frozen."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        second_moment = _numbers(state.adapted)  # pyright: ignore
        step = np.diag(step_size / (damping + np.sqrt(second_moment)))
        return _sgld_moments(target.row_gradients(), step, batch_size)

    return oracle


def sghmc(
    step_size: float,
    friction: float,
    noise_estimate: float,
    *,
    batch_size: int = BATCH_SIZE,
) -> Oracle:
    r"""SGHMC: $\eta = \varepsilon^2$, $a = \varepsilon C$, $b = \eta V / 2$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        eta, a = step_size**2, step_size * friction
        injected = 2 * (a - eta * noise_estimate / 2) * eta
        dim = target.x.shape[1]
        kick = kick_map(target.row_gradients(), 1 - a, eta, injected, batch_size)
        return kick.then(drift_map(dim)).stationary(dim)

    return oracle


def cycled_sgld(cycle: Cyclical) -> Oracle:
    """SGLD at the end of a cycle of steps, which repeats."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        rows, one = target.row_gradients(), np.eye(target.x.shape[1])
        steps = [
            gradient_map(rows, size / 2 * one, size * one, BATCH_SIZE)
            for size in _steps_of(cycle)
        ]
        return functools.reduce(MomentMap.then, steps).stationary(len(one))

    return oracle


def cycled_sghmc(cycle: Cyclical, friction: float) -> Oracle:
    r"""SGHMC at the end of a cycle: $v = \varepsilon p$, and p goes on."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        rows, dim = target.row_gradients(), target.x.shape[1]
        sizes = _steps_of(cycle)
        steps = []
        for last, size in zip([sizes[-1], *sizes], sizes, strict=False):
            eta, a = size**2, size * friction
            kick = kick_map(rows, 1 - a, eta, 2 * a * eta, BATCH_SIZE)
            moved = rescale_map(dim, size / last).then(kick).then(drift_map(dim))
            steps.append(moved)
        return functools.reduce(MomentMap.then, steps).stationary(dim)

    return oracle


def _steps_of(cycle: Cyclical) -> list[float]:
    """The step sizes of one cycle, by eq. (1) of Zhang et al. (2020)."""
    parts = np.arange(cycle.cycle_length) / cycle.cycle_length
    return list(cycle.peak / 2 * (1 + np.cos(np.pi * parts)))


def naive_sghmc(step_size: float, num_integration_steps: int) -> Oracle:
    r"""A fresh $v \sim N(0, \eta)$, then leapfrog steps on batches' gradients."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        rows, dim, eta = target.row_gradients(), target.x.shape[1], step_size**2
        kick = lambda size: kick_map(rows, 1.0, size, 0.0, BATCH_SIZE)
        drift = drift_map(dim)
        leaps = drift.then(kick(eta)).power(num_integration_steps - 1).then(drift)
        refresh = kick_map(rows, 0.0, 0.0, eta, np.inf)
        trajectory = refresh.then(kick(eta / 2)).then(leaps).then(kick(eta / 2))
        return trajectory.stationary(dim)

    return oracle


def constant_sgd(
    matrix: Callable[[LinearRegression], np.ndarray],
) -> Oracle:
    r"""$\theta' = \theta - H \nabla \tilde U$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        drift = matrix(target)
        rows = target.row_gradients()
        return gradient_map(rows, drift, 0 * drift, BATCH_SIZE).stationary(len(drift))

    return oracle


def _sgld_moments(rows: RowGradients, step: np.ndarray, batch_size: int) -> Moments:
    return gradient_map(rows, step / 2, step, batch_size).stationary(len(step))


def adapted_sgd(batch_size: int) -> Oracle:
    r"""$\theta' = \theta - h \nabla \tilde U$ at the h that was found."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        drift = float(state.adapted) * np.eye(target.x.shape[1])  # pyright: ignore
        rows = target.row_gradients()
        return gradient_map(rows, drift, 0 * drift, batch_size).stationary(len(drift))

    return oracle


def _numbers(tree) -> np.ndarray:
    return np.asarray(flat(tree), np.float64)
