"""Random functions: what a user builds, fits, and draws from."""

from ._base import AbstractRandomFunction as AbstractRandomFunction
from ._base import Draw as Draw
from ._base import draw_key as draw_key
from ._base import label_tree as label_tree
from ._base import no_local_kl as no_local_kl
from ._integrator import Integrator as Integrator
from ._integrator import with_solver as with_solver
from ._sde_block import SDEBlock as SDEBlock
from ._sde_block import WeightPrior as WeightPrior
from ._sdebnn import SDEBNN as SDEBNN
from ._sdebnn import prior_of as prior_of
from ._sdebnn import without_drift as without_drift
from ._sdebnn import without_noise as without_noise
from ._weight_drift import WeightDrift as WeightDrift
