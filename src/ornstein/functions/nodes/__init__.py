"""Noise on the inputs of a network's layers: implicit Bayesian networks."""

from ._implicit import ImplicitBNN as ImplicitBNN
from ._node_noise import (
    AbstractNodeKL as AbstractNodeKL,
    MixtureMeanKL as MixtureMeanKL,
    MonteCarloKL as MonteCarloKL,
    NodeMixture as NodeMixture,
)
