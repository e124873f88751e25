"""IVON: what a user chooses, and what it is in one run."""

from ._bound_ivon import (
    POINTS as POINTS,
    BoundIVON as BoundIVON,
    IVONState as IVONState,
    LikelihoodGradient as LikelihoodGradient,
)
from ._ivon import IVON as IVON
