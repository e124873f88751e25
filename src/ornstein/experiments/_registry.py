"""The experiments by name."""

from ._bandit import BANDIT
from ._bbb_pruning import BBB_PRUNING
from ._cost import COST
from ._csgd_ellipses import CSGD_ELLIPSES
from ._exactness import EXACTNESS
from ._fig1 import FIG1
from ._fig2 import FIG2
from ._fig8 import FIG8
from ._inducing import INDUCING
from ._mnist_samplers import MNIST_SAMPLERS
from ._posterior import POSTERIOR
from ._sghmc_distributions import SGHMC_DISTRIBUTIONS
from ._study import Experiment
from ._uci import UCI

EXPERIMENTS: dict[str, Experiment] = {
    "fig1": FIG1,
    "fig2": FIG2,
    "fig8": FIG8,
    "cost": COST,
    "inducing": INDUCING,
    "posterior": POSTERIOR,
    "exactness": EXACTNESS,
    "sghmc-distributions": SGHMC_DISTRIBUTIONS,
    "csgd-ellipses": CSGD_ELLIPSES,
    "bbb-pruning": BBB_PRUNING,
    "mnist-samplers": MNIST_SAMPLERS,
    "bandit": BANDIT,
    "uci": UCI,
}
"""What `ornstein reproduce NAME` runs."""
