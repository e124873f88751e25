"""Infinitely deep networks: hidden units and weights follow equations over depth."""

from ._ablation import (
    prior_of as prior_of,
    without_drift as without_drift,
    without_noise as without_noise,
)
from ._hidden_units import DepthState as DepthState, report_of as report_of
from ._integrator import (
    Integrator as Integrator,
    check_calls_layers as check_calls_layers,
    has_integrator as has_integrator,
    with_solver as with_solver,
)
from ._odenet import (
    HyperODEBlock as HyperODEBlock,
    HyperODENet as HyperODENet,
    ODEBlock as ODEBlock,
    ODENet as ODENet,
)
from ._path_coordinates import (
    AbstractPathCoordinates as AbstractPathCoordinates,
    GridIncrements as GridIncrements,
    LevyCiesielski as LevyCiesielski,
)
from ._roughness import Roughness as Roughness, with_roughness as with_roughness
from ._sde_block import SDEBlock as SDEBlock
from ._sdebnn import SDEBNN as SDEBNN
from ._weight_drift import WeightDrift as WeightDrift
from ._weight_prior import WeightPrior as WeightPrior
from ._whitened import (
    WhitenedBlock as WhitenedBlock,
    WhitenedSDEBNN as WhitenedSDEBNN,
    whitened_sdebnn as whitened_sdebnn,
)
