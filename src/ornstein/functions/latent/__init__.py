"""A sequence's own latent path: latent SDEs and ODEs."""

from ._diffusion import (
    AbstractDiffusion as AbstractDiffusion,
    ConstantDiffusion as ConstantDiffusion,
    NetDiffusion as NetDiffusion,
    ProcessDiffusion as ProcessDiffusion,
)
from ._drift import (
    BridgeDrift as BridgeDrift,
    ContextDrift as ContextDrift,
    LinearDrift as LinearDrift,
    NetDrift as NetDrift,
    ProcessDrift as ProcessDrift,
)
from ._latent_ode import LatentODE as LatentODE
from ._latent_sde import LatentSDE as LatentSDE
from ._path import PriorSamples as PriorSamples
from ._recognition import (
    AbstractContext as AbstractContext,
    AbstractRecognition as AbstractRecognition,
    FirstFrames as FirstFrames,
    GRURecognition as GRURecognition,
    NextContext as NextContext,
    NoRecognition as NoRecognition,
    Recognised as Recognised,
    SplitRecognition as SplitRecognition,
    StaticContext as StaticContext,
)
from ._start import LatentStart as LatentStart
from ._whitened import (
    WhitenedLatentSDE as WhitenedLatentSDE,
    whitened_latent_sde as whitened_latent_sde,
)
