"""Markov chain Monte Carlo on the whole data, built from blackjax's parts."""

from ._base import (
    AbstractKernel as AbstractKernel,
    AbstractState as AbstractState,
    MCMCInfo as MCMCInfo,
    Stage as Stage,
    warm_up_stages as warm_up_stages,
)
