"""Posteriors made of a network that is trained already."""

from ._fit_laplace import fit_laplace as fit_laplace, laplace_like as laplace_like
from ._fit_swag import fit_swag as fit_swag, swag_like as swag_like
from ._structure import (
    MAX_JOINT_WEIGHTS as MAX_JOINT_WEIGHTS,
    AbstractStructure as AbstractStructure,
    DiagonalGGN as DiagonalGGN,
    FullGGN as FullGGN,
    LastLayer as LastLayer,
)
