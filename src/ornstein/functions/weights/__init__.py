"""Random weights of any network: Bayes by Backprop and its neighbours."""

from ._deterministic import Deterministic as Deterministic
from ._deviations import (
    AbstractDeviation as AbstractDeviation,
    FromPrior as FromPrior,
    IndependentNormal as IndependentNormal,
    JointNormal as JointNormal,
)
from ._ensemble import Ensemble as Ensemble
from ._laplace import LaplaceApproximation as LaplaceApproximation
from ._map import MAP as MAP
from ._mc_dropout import MCDropout as MCDropout
from ._mean_field import MeanField as MeanField
from ._parameter_expansion import (
    ParameterExpanded as ParameterExpanded,
    expand_parameters as expand_parameters,
)
from ._prune import Pruned as Pruned, prune as prune
from ._swag import SWAG as SWAG
from ._variational import (
    AbstractFamily as AbstractFamily,
    AbstractWeightKL as AbstractWeightKL,
    AnalyticKL as AnalyticKL,
    NormalFamily as NormalFamily,
    PriorFamily as PriorFamily,
    SampledKL as SampledKL,
    StickTheLandingKL as StickTheLandingKL,
)
from ._weight_noise import (
    AbstractWeightNoise as AbstractWeightNoise,
    Flipout as Flipout,
    LocalReparameterised as LocalReparameterised,
    Reparameterised as Reparameterised,
)
