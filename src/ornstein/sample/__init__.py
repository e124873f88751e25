"""Markov chains over a network's parameters, run and kept."""

from ._callback import (
    ChainProgress as ChainProgress,
    SamplingCallback as SamplingCallback,
    SamplingPlan as SamplingPlan,
)
from ._chains import Chains as Chains, run_chains as run_chains
from ._sample import sample as sample
