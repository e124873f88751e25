"""Stochastic differential equations: solvers, gradients, processes, path KL."""

from ._convert import (
    ito_to_stratonovich as ito_to_stratonovich,
    stratonovich_to_ito as stratonovich_to_ito,
)
from ._gradient._backprop import Backprop as Backprop
from ._gradient._backsolve import Backsolve as Backsolve
from ._gradient._base import AbstractGradient as AbstractGradient
from ._gradient._checkpointed import Checkpointed as Checkpointed
from ._gradient._reversible import Reversible as Reversible
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
)
from ._stepsize import (
    AbstractStepsize as AbstractStepsize,
    Adaptive as Adaptive,
    Fixed as Fixed,
    Grid as Grid,
)
