"""Markov chains on stochastic gradients: samplers whose every step sees one batch."""

from ._adaptive_drift import AdaptiveDriftSGLD as AdaptiveDriftSGLD
from ._base import (
    AbstractMinibatchKernel as AbstractMinibatchKernel,
    SGInfo as SGInfo,
    SGState as SGState,
)
from ._constant_sgd import ConstantSGD as ConstantSGD
from ._control_variate import WithControlVariate as WithControlVariate
from ._convert import sghmc_settings as sghmc_settings, sgld_step_size as sgld_step_size
from ._naive import NaiveSGHMC as NaiveSGHMC
from ._noise import (
    gradient_noise_covariance as gradient_noise_covariance,
    gradient_noise_variance as gradient_noise_variance,
    noise_ratio as noise_ratio,
)
from ._preconditioned import PreconditionedSGLD as PreconditionedSGLD
from ._preconditioner import (
    AbstractPreconditioner as AbstractPreconditioner,
    Diagonal as Diagonal,
    Full as Full,
    Scalar as Scalar,
)
from ._schedule import (
    Cyclical as Cyclical,
    Polynomial as Polynomial,
    SamplingOnly as SamplingOnly,
    Schedule as Schedule,
)
from ._sghmc import SGHMC as SGHMC
from ._sgld import SGLD as SGLD
from ._sgnht import SGNHT as SGNHT
