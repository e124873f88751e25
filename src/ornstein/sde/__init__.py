"""Stochastic differential equations: solvers, gradients, processes, path KL."""

from ._adaptive import check_adaptive as check_adaptive
from ._convert import (
    ito_to_stratonovich as ito_to_stratonovich,
    stratonovich_to_ito as stratonovich_to_ito,
)
from ._driven import (
    DrivenField as DrivenField,
    grid_of as grid_of,
    solve_driven as solve_driven,
)
from ._given_noise import (
    check_given_noise as check_given_noise,
    solve_given_noise as solve_given_noise,
)
from ._gradient import (
    AbstractGradient as AbstractGradient,
    Backprop as Backprop,
    Backsolve as Backsolve,
    Checkpointed as Checkpointed,
    Reversible as Reversible,
)
from ._path_kl import (
    KL as KL,
    AbstractPathKL as AbstractPathKL,
    FullMonteCarlo as FullMonteCarlo,
    StickTheLanding as StickTheLanding,
    gaussian_kl as gaussian_kl,
)
from ._process import (
    AbstractProcess as AbstractProcess,
    BrownianMotion as BrownianMotion,
    OrnsteinUhlenbeck as OrnsteinUhlenbeck,
)
from ._sdeint import sdeint as sdeint
from ._solution import Solution as Solution
from ._solver import (
    RK4 as RK4,
    SRA1 as SRA1,
    EulerHeun as EulerHeun,
    EulerMaruyama as EulerMaruyama,
    Heun as Heun,
    Midpoint as Midpoint,
    Milstein as Milstein,
    ReversibleHeun as ReversibleHeun,
    ShARK as ShARK,
    StratonovichMilstein as StratonovichMilstein,
    Tsit5 as Tsit5,
    name_of as name_of,
    noise_free_solver as noise_free_solver,
    stepper_for as stepper_for,
)
from ._stepsize import (
    AbstractGridStepsize as AbstractGridStepsize,
    AbstractStepsize as AbstractStepsize,
    Adaptive as Adaptive,
    Fixed as Fixed,
    Grid as Grid,
)
