"""Priors over the parameters of a network."""

from ._base import (
    AbstractLeafPrior as AbstractLeafPrior,
    AbstractPrior as AbstractPrior,
)
from ._by_leaf import ByLeaf as ByLeaf, fan_in_prior as fan_in_prior
from ._distribution import DistributionPrior as DistributionPrior
from ._gaussian import GaussianPrior as GaussianPrior
from ._laplace import LaplacePrior as LaplacePrior
from ._normal import (
    normal_leaves as normal_leaves,
    with_fitted_scales as with_fitted_scales,
)
from ._scale_mixture import ScaleMixturePrior as ScaleMixturePrior
