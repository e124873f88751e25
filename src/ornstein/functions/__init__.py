"""Random functions: what a user builds, fits, and draws from."""

from ._base import (
    AbstractRandomFunction as AbstractRandomFunction,
    Draw as Draw,
    LogRatio as LogRatio,
    SolveReport as SolveReport,
    draw_key as draw_key,
    label_tree as label_tree,
    no_local_kl as no_local_kl,
)
from ._chain_diagnostics import (
    ChainDiagnostics as ChainDiagnostics,
    diagnose_chains as diagnose_chains,
    e_bfmi as e_bfmi,
    ess_bulk as ess_bulk,
    ess_tail as ess_tail,
    r_hat as r_hat,
    split_r_hat as split_r_hat,
)
from ._deterministic import Deterministic as Deterministic
from ._ensemble import Ensemble as Ensemble
from ._implicit import ImplicitBNN as ImplicitBNN
from ._integrator import Integrator as Integrator, with_solver as with_solver
from ._latent_diffusion import (
    AbstractDiffusion as AbstractDiffusion,
    ConstantDiffusion as ConstantDiffusion,
    NetDiffusion as NetDiffusion,
    ProcessDiffusion as ProcessDiffusion,
)
from ._latent_drift import (
    BridgeDrift as BridgeDrift,
    ContextDrift as ContextDrift,
    LinearDrift as LinearDrift,
    NetDrift as NetDrift,
    ProcessDrift as ProcessDrift,
)
from ._latent_ode import LatentODE as LatentODE
from ._latent_path import PriorSamples as PriorSamples
from ._latent_sde import LatentSDE as LatentSDE
from ._latent_start import LatentStart as LatentStart
from ._mc_dropout import MCDropout as MCDropout
from ._mean_field import MeanField as MeanField
from ._node_noise import (
    AbstractNodeKL as AbstractNodeKL,
    MixtureMeanKL as MixtureMeanKL,
    MonteCarloKL as MonteCarloKL,
    NodeMixture as NodeMixture,
)
from ._odenet import (
    HyperODEBlock as HyperODEBlock,
    HyperODENet as HyperODENet,
    ODEBlock as ODEBlock,
    ODENet as ODENet,
)
from ._prune import Pruned as Pruned, prune as prune
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
from ._roughness import Roughness as Roughness, with_roughness as with_roughness
from ._samples import PosteriorSamples as PosteriorSamples
from ._sde_block import SDEBlock as SDEBlock, WeightPrior as WeightPrior
from ._sdebnn import SDEBNN as SDEBNN
from ._swag import SWAG as SWAG
from ._twins import (
    prior_of as prior_of,
    without_drift as without_drift,
    without_noise as without_noise,
)
from ._variational import (
    AbstractFamily as AbstractFamily,
    AbstractWeightKL as AbstractWeightKL,
    AnalyticKL as AnalyticKL,
    NormalFamily as NormalFamily,
    SampledKL as SampledKL,
    StickTheLandingKL as StickTheLandingKL,
)
from ._weight_drift import WeightDrift as WeightDrift
from ._weight_noise import (
    AbstractWeightNoise as AbstractWeightNoise,
    Flipout as Flipout,
    LocalReparameterised as LocalReparameterised,
    Reparameterised as Reparameterised,
)
