"""Chen, Fox & Guestrin (2014), Mandt et al. (2017) and neighbours: Markov chains."""

from ._bandit import BANDIT as BANDIT
from ._bbb_pruning import BBB_PRUNING as BBB_PRUNING
from ._csgd_ellipses import CSGD_ELLIPSES as CSGD_ELLIPSES
from ._exactness import EXACTNESS as EXACTNESS
from ._mnist_samplers import MNIST_SAMPLERS as MNIST_SAMPLERS
from ._sghmc_distributions import (
    SGHMC_DISTRIBUTIONS as SGHMC_DISTRIBUTIONS,
    total_variation as total_variation,
)
from ._uci import UCI as UCI
