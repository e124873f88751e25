"""Random functions: what a user builds, fits, and draws from."""

from ._at_prior import HeldAtPrior as HeldAtPrior
from ._base import (
    FROZEN as FROZEN,
    WEIGHTS as WEIGHTS,
    AbstractRandomFunction as AbstractRandomFunction,
    Draw as Draw,
    LogRatio as LogRatio,
    draw_key as draw_key,
    label_tree as label_tree,
    no_local_kl as no_local_kl,
    total_kl as total_kl,
)
from ._contract import (
    check_draw as check_draw,
    check_labels as check_labels,
    check_rows_alone as check_rows_alone,
)
from ._draws import (
    are_whole_rounds as are_whole_rounds,
    copied as copied,
    map_draws as map_draws,
    whole_rounds as whole_rounds,
)
from ._latent_paths import latent_paths as latent_paths
from ._posterior_parts import (
    KLEstimate as KLEstimate,
    PosteriorParts as PosteriorParts,
)
from ._softplus import softplus as softplus
from ._trajectory import trajectory as trajectory
from ._whiten import whiten as whiten
from .chains import (
    ChainDiagnostics as ChainDiagnostics,
    PosteriorSamples as PosteriorSamples,
    diagnose_chains as diagnose_chains,
    e_bfmi as e_bfmi,
    ess_bulk as ess_bulk,
    ess_tail as ess_tail,
    is_of_batches as is_of_batches,
    r_hat as r_hat,
    split_r_hat as split_r_hat,
    thinned as thinned,
)
from .depth import (
    SDEBNN as SDEBNN,
    AbstractPathCoordinates as AbstractPathCoordinates,
    DepthState as DepthState,
    GridIncrements as GridIncrements,
    HyperODEBlock as HyperODEBlock,
    HyperODENet as HyperODENet,
    Integrator as Integrator,
    LevyCiesielski as LevyCiesielski,
    ODEBlock as ODEBlock,
    ODENet as ODENet,
    Roughness as Roughness,
    SDEBlock as SDEBlock,
    WeightDrift as WeightDrift,
    WeightPrior as WeightPrior,
    WhitenedBlock as WhitenedBlock,
    WhitenedSDEBNN as WhitenedSDEBNN,
    has_integrator as has_integrator,
    prior_of as prior_of,
    with_roughness as with_roughness,
    with_solver as with_solver,
    without_drift as without_drift,
    without_noise as without_noise,
)
from .latent import (
    AbstractContext as AbstractContext,
    AbstractDiffusion as AbstractDiffusion,
    AbstractRecognition as AbstractRecognition,
    BridgeDrift as BridgeDrift,
    ConstantDiffusion as ConstantDiffusion,
    ContextDrift as ContextDrift,
    FirstFrames as FirstFrames,
    GRURecognition as GRURecognition,
    LatentODE as LatentODE,
    LatentSDE as LatentSDE,
    LatentStart as LatentStart,
    LinearDrift as LinearDrift,
    NetDiffusion as NetDiffusion,
    NetDrift as NetDrift,
    NextContext as NextContext,
    NoRecognition as NoRecognition,
    PriorSamples as PriorSamples,
    ProcessDiffusion as ProcessDiffusion,
    ProcessDrift as ProcessDrift,
    Recognised as Recognised,
    SplitRecognition as SplitRecognition,
    StaticContext as StaticContext,
    WhitenedLatentSDE as WhitenedLatentSDE,
)
from .nodes import (
    AbstractNodeKL as AbstractNodeKL,
    ImplicitBNN as ImplicitBNN,
    MixtureMeanKL as MixtureMeanKL,
    MonteCarloKL as MonteCarloKL,
    NodeMixture as NodeMixture,
)
from .weights import (
    MAP as MAP,
    SWAG as SWAG,
    AbstractDeviation as AbstractDeviation,
    AbstractFamily as AbstractFamily,
    AbstractWeightKL as AbstractWeightKL,
    AbstractWeightNoise as AbstractWeightNoise,
    AnalyticKL as AnalyticKL,
    Deterministic as Deterministic,
    Ensemble as Ensemble,
    Flipout as Flipout,
    FromPrior as FromPrior,
    IndependentNormal as IndependentNormal,
    JointNormal as JointNormal,
    LaplaceApproximation as LaplaceApproximation,
    LocalReparameterised as LocalReparameterised,
    MCDropout as MCDropout,
    MeanField as MeanField,
    NormalFamily as NormalFamily,
    ParameterExpanded as ParameterExpanded,
    PriorFamily as PriorFamily,
    Pruned as Pruned,
    Reparameterised as Reparameterised,
    SampledKL as SampledKL,
    StickTheLandingKL as StickTheLandingKL,
    expand_parameters as expand_parameters,
    prune as prune,
)
