"""What runs in the exactness table, and the exact moments of each.

Step sizes are large on purpose: an oracle that includes them is tested by them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..mcmc import (
    HMC,
    NUTS,
    AbstractKernel,
    Langevin,
    MicrocanonicalLangevin,
    PartialHMC,
    RandomWalkMetropolis,
)
from ..recipe import KERNELS, preset_sampling
from ..sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    AbstractPreconditioner,
    AdaptiveDriftSGLD,
    ConstantSGD,
    Cyclical,
    Diagonal,
    Full,
    NaiveSGHMC,
    PreconditionedSGLD,
    Scalar,
)
from ._chains import Plan
from ._moment_equation import lyapunov
from ._oracles import (
    Oracle,
    adapted_sgd,
    adaptive_drift,
    constant_sgd,
    cycled_sghmc,
    cycled_sgld,
    exact_posterior,
    langevin,
    microcanonical,
    naive_sghmc,
    preconditioned_sgld,
    sghmc,
    sgld,
)
from ._targets import BATCH_SIZE, LinearRegression, Moments

_MANY_DATA = 320
"""For constant SGD, whose law nears the posterior as n / N falls."""

_CYCLE = Cyclical(0.1, 12)


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
        batch_size: rows of a batch.
        num_samples: positions kept of each chain.
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
    batch_size: int = BATCH_SIZE
    num_samples: int = 8


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
    exact = exact_posterior
    cases = [
        LinearCase("RandomWalkMetropolis", RandomWalkMetropolis(0.3), 50, exact),
        LinearCase("HMC", _hmc(4)(0.13), 4, exact),
        LinearCase("Langevin", Langevin(0.3), 10, exact),
        LinearCase("PartialHMC", _partial_hmc(3)(0.15), 6, exact),
        LinearCase("NUTS", NUTS(0.3, 6), 2, exact),
        LinearCase("Langevin, unadjusted", Langevin(0.2, False), 12, langevin(0.2)),
        LinearCase(
            "MicrocanonicalLangevin",
            MicrocanonicalLangevin(1.6, 1.0),
            10,
            microcanonical,
        ),
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
        LinearCase(
            "AdaptiveDriftSGLD",
            AdaptiveDriftSGLD(0.02, 10.0, decays=(0.9, 0.99)),
            40,
            adaptive_drift(0.02, 10.0, (0.9, 0.99)),
        ),
        LinearCase("SGHMC", SGHMC(0.1, 4.0), 12, sghmc(0.1, 4.0, 0.0)),
        LinearCase(
            "SGHMC, noise estimate", SGHMC(0.1, 6.0, 60.0), 12, sghmc(0.1, 6.0, 60.0)
        ),
        # Looked at where cycles end.
        LinearCase("SGLD, cosine cycles", SGLD(_CYCLE), 24, cycled_sgld(_CYCLE)),
        LinearCase(
            "SGHMC, cosine cycles", SGHMC(_CYCLE, 6.0), 24, cycled_sghmc(_CYCLE, 6.0)
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


def command_line_cases() -> list[LinearCase]:
    """Every kernel of `ornstein sample` at its defaults, friction and batch included.

    The friction is (1 - momentum) / step size there, so that a step takes the same part
    of the momentum however small it is: nothing vanishes with the step. SGNHT is held
    to the posterior, as its thermostat makes up for the batches' noise.
    """
    cases = []
    for name, make in KERNELS.items():
        # Constant SGD's step grows with n / N until it is no longer stable.
        num_data = 10 * _MANY_DATA if name == "constant-sgd" else 60
        # Of so many rows HMC's trajectories have 200 steps: of fewer, more.
        options = preset_sampling("uci/yacht", name, num_data=2_000).sampling
        kernel: Any = make(options, num_data)
        batch_size = min(options.batch_size, num_data)
        thin, oracle = _AT_DEFAULTS[name](kernel, batch_size)
        adapts = oracle is exact_posterior or name in _ADAPTING
        case = LinearCase(
            f"{type(kernel).__name__}, command line",
            kernel,
            thin,
            oracle,
            num_data=num_data,
            starts_at_mean=True,
            num_warm_up=options.num_warmup if adapts and name != "sgnht" else 0,
            batch_size=batch_size,
            num_samples=32 if name == "sgnht" else 8,
        )
        cases.append(case)
    return cases


_AT_DEFAULTS: dict[str, Callable[[Any, int], tuple[int, Oracle]]] = {
    "adaptive-sgld": lambda k, n: (
        400,
        adaptive_drift(k.step_size, k.drift_weight, k.decays, batch_size=n, thin=400),
    ),
    "constant-sgd": lambda k, n: (20, adapted_sgd(n)),
    # What the warm-up finds lies near a resonance, at which 20 leaps come back.
    "hmc": lambda k, n: (12, exact_posterior),
    "langevin": lambda k, n: (10, exact_posterior),
    "mclmc": lambda k, n: (10, microcanonical),
    "nuts": lambda k, n: (2, exact_posterior),
    "partial-hmc": lambda k, n: (8, exact_posterior),
    "psgld": lambda k, n: (
        500,
        preconditioned_sgld(k.step_size, damping=k.damping, batch_size=n),
    ),
    "random-walk": lambda k, n: (50, exact_posterior),
    "sghmc": lambda k, n: (100, sghmc(k.step_size, k.friction, 0.0, batch_size=n)),
    "sgld": lambda k, n: (400, sgld(k.step_size, batch_size=n)),
    "sgnht": lambda k, n: (100, exact_posterior),
}
"""Steps between positions, and the oracle, from a kernel and its batches."""

_ADAPTING = ("constant-sgd", "mclmc", "psgld")
"""Those whose warm-up changes a law that is their own."""


def linear_claims() -> list[ClaimedCase]:
    """Samplers that are not linear even on a Gaussian posterior."""
    return [
        ClaimedCase(
            "SGNHT",
            lambda step: SGNHT(step, 8.0),
            0.02,
            Plan(80, num_samples=32),
            False,
        ),
        ClaimedCase(
            "MicrocanonicalLangevin, small step",
            _microcanonical(1.0),
            0.4,
            Plan(10),
            True,
        ),
    ]


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
        ClaimedCase(
            "MicrocanonicalLangevin", _microcanonical(1.5), 0.4, exact(12), True
        ),
        ClaimedCase("SGLD", SGLD, 0.03, fine(15), False),
        ClaimedCase("SGHMC", lambda step: SGHMC(step, 4.0), 0.05, fine(15), False),
        ClaimedCase("SGNHT", lambda step: SGNHT(step, 4.0), 0.05, fine(15), False),
    ]


def expanded_claims() -> list[ClaimedCase]:
    """Samplers on an expanded weight, PX-SGHMC first."""
    return [
        ClaimedCase(
            "SGHMC, expanded parameters",
            lambda step: SGHMC(step, 4.0),
            0.02,
            Plan(60, num_samples=24, num_chains=6144),
            False,
        ),
        ClaimedCase(
            "HMC, expanded parameters", _hmc(5), 0.25, Plan(4, num_samples=16), True
        ),
    ]


def _hmc(num_integration_steps: int) -> Callable[[float], HMC]:
    return lambda step_size: HMC(
        num_integration_steps=num_integration_steps, step_size=step_size
    )


def _partial_hmc(num_integration_steps: int) -> Callable[[float], PartialHMC]:
    return lambda step_size: PartialHMC(
        alpha=0.7, num_integration_steps=num_integration_steps, step_size=step_size
    )


def _microcanonical(length: float) -> Callable[[float], MicrocanonicalLangevin]:
    return lambda step_size: MicrocanonicalLangevin(step_size, length)
