"""Markov chain Monte Carlo on the whole data, built from blackjax's parts."""

from ._base import (
    AbstractKernel as AbstractKernel,
    AbstractState as AbstractState,
    MCMCInfo as MCMCInfo,
    Stage as Stage,
    warm_up_stages as warm_up_stages,
)
from ._check import check_start as check_start
from ._hmc import HMC as HMC
from ._langevin import Langevin as Langevin
from ._microcanonical import (
    MicrocanonicalInfo as MicrocanonicalInfo,
    MicrocanonicalLangevin as MicrocanonicalLangevin,
    MicrocanonicalState as MicrocanonicalState,
)
from ._nuts import NUTS as NUTS
from ._partial_hmc import PartialHMC as PartialHMC
from ._random_walk import (
    AbstractProposal as AbstractProposal,
    RandomWalkMetropolis as RandomWalkMetropolis,
)
from ._state import MCMCState as MCMCState
