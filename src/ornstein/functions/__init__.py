"""Random functions: what a user builds, fits, and draws from."""

from ._base import (
    AbstractRandomFunction as AbstractRandomFunction,
    Draw as Draw,
    draw_key as draw_key,
    label_tree as label_tree,
    no_local_kl as no_local_kl,
)
from ._integrator import Integrator as Integrator, with_solver as with_solver
from ._sde_block import SDEBlock as SDEBlock, WeightPrior as WeightPrior
from ._sdebnn import SDEBNN as SDEBNN
from ._twins import (
    prior_of as prior_of,
    without_drift as without_drift,
    without_noise as without_noise,
)
from ._weight_drift import WeightDrift as WeightDrift
