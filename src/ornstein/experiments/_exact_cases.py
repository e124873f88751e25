"""What runs in the exactness table, and the exact moments of each.

Step sizes are large on purpose: an oracle that includes them is tested by them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..mcmc import (
    HMC,
    NUTS,
    AbstractKernel,
    AbstractState,
    Langevin,
    PartialHMC,
    RandomWalkMetropolis,
)
from ..sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    AbstractPreconditioner,
    ConstantSGD,
    Diagonal,
    Full,
    NaiveSGHMC,
    PreconditionedSGLD,
    Scalar,
)
from ._exact_chains import Plan
from ._exact_targets import LinearRegression, Moments, RowGradients, flat
from ._moment_equation import drift_map, gradient_map, kick_map, lyapunov

BATCH_SIZE = 12

Oracle = Callable[[LinearRegression, AbstractState], Moments]
"""A target, and a state that says what was adapted, to the stationary moments."""

_MANY_DATA = 320
"""For constant SGD, whose law nears the posterior as n / N falls."""


CONSTANT_SGD: dict[str, tuple[AbstractPreconditioner, Callable]] = {
    "Scalar": (Scalar(), lambda v: 2 * len(v) / np.trace(v) * np.eye(len(v))),
    "Diagonal": (Diagonal(), lambda v: np.diag(2 / np.diag(v))),
    "Full": (Full(), lambda v: 2 * np.linalg.inv(v)),
}
"""Preconditioners, and their steps on U from the gradient noise V: eqs (36)–(38)."""


class LinearCase(NamedTuple):
    """A sampler on linear regression.

    Attributes:
        method: its name.
        kernel: its step.
        thin: steps between positions that are looked at.
        oracle: to the exact moments of the chain itself.
        num_data: of the target.
        starts_at_mean: of the posterior; at 0 otherwise.
        num_warm_up: steps of adaptation, of one chain that all others start from.
        has_control_variate: with the start as its centre.
        approximation: as the oracle, by the Ornstein–Uhlenbeck process.
    """

    method: str
    kernel: AbstractKernel
    thin: int
    oracle: Oracle
    num_data: int = 60
    starts_at_mean: bool = False
    num_warm_up: int = 0
    has_control_variate: bool = False
    approximation: Callable[[LinearRegression], Moments] | None = None


class ClaimedCase(NamedTuple):
    """A sampler on any target, which claims the posterior.

    Attributes:
        method: its name.
        make: from a step size to its step.
        step_size: the (first) one.
        plan: how long its chains are.
        is_exact: whether it claims the posterior at this step; if not, two steps are
            extrapolated to 0.
    """

    method: str
    make: Callable[[float], AbstractKernel]
    step_size: float
    plan: Plan
    is_exact: bool


def linear_cases() -> list[LinearCase]:
    """All samplers with exact moments on a Gaussian posterior."""
    exact = lambda target, state: target.posterior()
    cases = [
        LinearCase("RandomWalkMetropolis", RandomWalkMetropolis(0.3), 50, exact),
        LinearCase("HMC", _hmc(4)(0.13), 4, exact),
        LinearCase("Langevin", Langevin(0.3), 10, exact),
        LinearCase("PartialHMC", _partial_hmc(3)(0.15), 6, exact),
        LinearCase("NUTS", NUTS(0.3, 6), 2, exact),
        LinearCase("Langevin, unadjusted", Langevin(0.2, False), 12, langevin(0.2)),
        LinearCase("SGLD", SGLD(0.04), 12, sgld(0.04)),
        LinearCase(
            "SGLD, control variate",
            SGLD(0.04),
            12,
            sgld(0.04, has_control_variate=True),
            has_control_variate=True,
        ),
        LinearCase(
            "PreconditionedSGLD",
            PreconditionedSGLD(0.5),
            12,
            preconditioned_sgld(0.5, damping=1e-5),
            num_warm_up=300,
        ),
        LinearCase("SGHMC", SGHMC(0.1, 4.0), 12, sghmc(0.1, 4.0, 0.0)),
        LinearCase(
            "SGHMC, noise estimate", SGHMC(0.1, 6.0, 60.0), 12, sghmc(0.1, 6.0, 60.0)
        ),
        LinearCase("NaiveSGHMC", NaiveSGHMC(0.07, 6), 4, naive_sghmc(0.07, 6)),
        LinearCase(
            "NaiveSGHMC, with test", NaiveSGHMC(0.07, 6, adjusted=True), 20, exact
        ),
    ]
    for name, (preconditioner, matrix) in CONSTANT_SGD.items():
        step = lambda target, f=matrix: f(target.batch_noise(BATCH_SIZE))
        case = LinearCase(
            f"ConstantSGD, {name}",
            ConstantSGD(preconditioner),
            20,
            constant_sgd(step),
            num_data=_MANY_DATA,
            starts_at_mean=True,
            approximation=lambda t, f=step: lyapunov(t, f(t), BATCH_SIZE),
        )
        cases.append(case)
    return cases


def linear_claims() -> list[ClaimedCase]:
    """Samplers that are not linear even on a Gaussian posterior."""
    plan = Plan(80, num_samples=32)
    return [ClaimedCase("SGNHT", lambda step: SGNHT(step, 8.0), 0.02, plan, False)]


def logistic_claims() -> list[ClaimedCase]:
    """All samplers that claim the posterior, at any step or at small ones."""
    exact = lambda thin: Plan(thin, num_samples=16)
    fine = lambda thin: Plan(thin, num_samples=16, num_chains=5120)
    return [
        ClaimedCase("RandomWalkMetropolis", RandomWalkMetropolis, 0.6, exact(30), True),
        ClaimedCase("HMC", _hmc(2), 0.3, exact(4), True),
        ClaimedCase("Langevin", Langevin, 0.5, exact(8), True),
        ClaimedCase("PartialHMC", _partial_hmc(2), 0.3, exact(6), True),
        ClaimedCase("NUTS", lambda step: NUTS(step, 6), 0.5, exact(2), True),
        ClaimedCase("SGLD", SGLD, 0.03, fine(15), False),
        ClaimedCase("SGHMC", lambda step: SGHMC(step, 4.0), 0.05, fine(15), False),
        ClaimedCase("SGNHT", lambda step: SGNHT(step, 4.0), 0.05, fine(15), False),
    ]


def _hmc(num_integration_steps: int) -> Callable[[float], HMC]:
    return lambda step_size: HMC(
        num_integration_steps=num_integration_steps, step_size=step_size
    )


def _partial_hmc(num_integration_steps: int) -> Callable[[float], PartialHMC]:
    return lambda step_size: PartialHMC(
        alpha=0.7, num_integration_steps=num_integration_steps, step_size=step_size
    )


def langevin(step_size: float) -> Oracle:
    r"""$\theta' = \theta - \frac{\varepsilon^2}{2} \nabla U + \varepsilon \xi$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        step = step_size**2 * np.eye(target.x.shape[1])
        rows = target.row_gradients()
        return gradient_map(rows, step / 2, step, np.inf).stationary(len(step))

    return oracle


def sgld(step_size: float, *, has_control_variate: bool = False) -> Oracle:
    r"""$\theta' = \theta - \varepsilon \nabla \tilde U / 2 + \sqrt\varepsilon \xi$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        rows = target.row_gradients()
        if has_control_variate:
            rows = rows.around(_numbers(state.position))
        return _sgld_moments(rows, step_size * np.eye(target.x.shape[1]))

    return oracle


def preconditioned_sgld(step_size: float, *, damping: float) -> Oracle:
    r"""SGLD with steps $\varepsilon / (\lambda + \sqrt s)$, s as it was frozen."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        second_moment = _numbers(state.adapted)  # pyright: ignore
        step = np.diag(step_size / (damping + np.sqrt(second_moment)))
        return _sgld_moments(target.row_gradients(), step)

    return oracle


def sghmc(step_size: float, friction: float, noise_estimate: float) -> Oracle:
    r"""SGHMC: $\eta = \varepsilon^2$, $a = \varepsilon C$, $b = \eta V / 2$."""

    def oracle(target: LinearRegression, state: AbstractState) -> Moments:
        del state
        eta, a = step_size**2, step_size * friction
        injected = 2 * (a - eta * noise_estimate / 2) * eta
        dim = target.x.shape[1]
        kick = kick_map(target.row_gradients(), 1 - a, eta, injected, BATCH_SIZE)
        return kick.then(drift_map(dim)).stationary(dim)

    return oracle


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


def _sgld_moments(rows: RowGradients, step: np.ndarray) -> Moments:
    return gradient_map(rows, step / 2, step, BATCH_SIZE).stationary(len(step))


def _numbers(tree) -> np.ndarray:
    return np.asarray(flat(tree), np.float64)
