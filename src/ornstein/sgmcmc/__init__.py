"""Markov chains on stochastic gradients: samplers whose every step sees one batch."""

from ._base import (
    AbstractMinibatchKernel as AbstractMinibatchKernel,
    SGInfo as SGInfo,
    SGState as SGState,
)
from ._schedule import (
    Cyclical as Cyclical,
    Polynomial as Polynomial,
    SamplingOnly as SamplingOnly,
    Schedule as Schedule,
)
from ._sghmc import SGHMC as SGHMC
from ._sgld import SGLD as SGLD
