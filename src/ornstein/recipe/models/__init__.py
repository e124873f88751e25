"""From a recipe's names to random functions and likelihoods."""

from ._depth_networks import (
    DRIVEN_GRADIENTS as DRIVEN_GRADIENTS,
    ODE_SOLVERS as ODE_SOLVERS,
    check_solves as check_solves,
)
from ._families import (
    MODELS as MODELS,
    PRIORS as PRIORS,
    SOME_READ as SOME_READ,
    build_model as build_model,
    trained_like as trained_like,
)
from ._integrators import SOLVERS as SOLVERS, build_stepsize as build_stepsize
from ._latent_models import (
    BY_FRAMES as BY_FRAMES,
    LEAST_NOISE as LEAST_NOISE,
    is_told_by_series as is_told_by_series,
    recognition_kind as recognition_kind,
)
from ._likelihoods import build_likelihood as build_likelihood
from ._networks import (
    HIERARCHICAL as HIERARCHICAL,
    NETWORK_OPTIONS as NETWORK_OPTIONS,
    STANDARD_NORMAL as STANDARD_NORMAL,
    WHITENED as WHITENED,
    build_network as build_network,
    check_sides as check_sides,
    network_kind as network_kind,
)
from ._posthoc import laplace_structure as laplace_structure
