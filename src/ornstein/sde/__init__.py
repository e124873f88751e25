"""Stochastic differential equations: solvers, gradients, processes, path KL."""

from diffrax import Euler as EulerMaruyama
from diffrax import EulerHeun as EulerHeun
from diffrax import Heun as Heun
from diffrax import ItoMilstein as Milstein
from diffrax import Midpoint as Midpoint
from diffrax import ReversibleHeun as ReversibleHeun
from diffrax import ShARK as ShARK
from diffrax import SRA1 as SRA1
from diffrax import StratonovichMilstein as StratonovichMilstein
from diffrax import Tsit5 as Tsit5

from ._convert import ito_to_stratonovich as ito_to_stratonovich
from ._convert import stratonovich_to_ito as stratonovich_to_ito
from ._gradient._backprop import Backprop as Backprop
from ._gradient._backsolve import Backsolve as Backsolve
from ._gradient._base import AbstractGradient as AbstractGradient
from ._gradient._checkpointed import Checkpointed as Checkpointed
from ._gradient._reversible import Reversible as Reversible
from ._path_kl import KL as KL
from ._path_kl import AbstractPathKL as AbstractPathKL
from ._path_kl import FullMonteCarlo as FullMonteCarlo
from ._path_kl import StickTheLanding as StickTheLanding
from ._path_kl import gaussian_kl as gaussian_kl
from ._process import AbstractProcess as AbstractProcess
from ._process import BrownianMotion as BrownianMotion
from ._process import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from ._sdeint import sdeint as sdeint
from ._solution import Solution as Solution
from ._solver import RK4 as RK4
from ._stepsize import AbstractStepsize as AbstractStepsize
from ._stepsize import Adaptive as Adaptive
from ._stepsize import Fixed as Fixed
from ._stepsize import Grid as Grid
