"""From a recipe's names to random functions and likelihoods."""

from ._families import (
    MODELS as MODELS,
    PRIORS as PRIORS,
    build_model as build_model,
    check_options as check_options,
)
from ._latent_models import (
    BY_FRAMES as BY_FRAMES,
    is_told_by_series as is_told_by_series,
    recognition_kind as recognition_kind,
)
from ._likelihoods import (
    SOLVERS as SOLVERS,
    build_likelihood as build_likelihood,
    build_stepsize as build_stepsize,
)
from ._networks import (
    NETWORK_OPTIONS as NETWORK_OPTIONS,
    build_network as build_network,
    network_kind as network_kind,
)
