"""How near a method's predictive distribution is to the posterior's."""

from ._compare import (
    Chain as Chain,
    ceiling as ceiling,
    distances as distances,
    scores as scores,
)
from ._effort import (
    EFFORTS as EFFORTS,
    Approximation as Approximation,
    Effort as Effort,
)
from ._hmc import Budget as Budget, begin as begin, go_on as go_on
from ._methods import METHODS as METHODS, Method as Method, methods_of as methods_of
from ._predictive import (
    Predictive as Predictive,
    mixture as mixture,
    nll as nll,
    of_probabilities as of_probabilities,
    packed as packed,
    predictive as predictive,
    unpacked as unpacked,
)
from ._problems import (
    PRIOR_SCALES as PRIOR_SCALES,
    PROBLEMS as PROBLEMS,
    SCALES as SCALES,
    Problem as Problem,
    check_same as check_same,
)
