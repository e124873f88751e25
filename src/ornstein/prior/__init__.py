"""Priors over the parameters of a network."""

from ._base import (
    AbstractLeafPrior as AbstractLeafPrior,
    AbstractPrior as AbstractPrior,
)
from ._by_leaf import ByLeaf as ByLeaf, fan_in_prior as fan_in_prior
from ._distribution import DistributionPrior as DistributionPrior
from ._gaussian import GaussianPrior as GaussianPrior
from ._laplace import LaplacePrior as LaplacePrior
from ._scale_mixture import ScaleMixturePrior as ScaleMixturePrior
