"""Bayesian deep learning by stochastic dynamics, on JAX."""

# Imported when they are first asked for: all of it takes seconds, and JAX half of one.
import typing as _typing

from ._lazy import lazy_names as _lazy_names
from ._version import __version__ as __version__

if _typing.TYPE_CHECKING:
    from . import (
        data as data,
        diagnosis as diagnosis,
        evaluation as evaluation,
        functions as functions,
        likelihood as likelihood,
        mcmc as mcmc,
        metrics as metrics,
        network as network,
        nn as nn,
        potential as potential,
        prediction as prediction,
        prior as prior,
        sampling as sampling,
        sde as sde,
        sgmcmc as sgmcmc,
        sweep as sweep,
        train as train,
    )
    from .comparison import Comparison as Comparison, compare as compare
    from .data import Series as Series
    from .diagnosis import (
        Diagnosis as Diagnosis,
        Finding as Finding,
        diagnose as diagnose,
    )
    from .evaluation import (
        Audit as Audit,
        Retraining as Retraining,
        audit as audit,
        component_diversity as component_diversity,
        evaluate as evaluate,
        evaluate_ood as evaluate_ood,
    )
    from .functions import (
        SDEBNN as SDEBNN,
        SWAG as SWAG,
        AbstractRandomFunction as AbstractRandomFunction,
        Deterministic as Deterministic,
        Draw as Draw,
        Ensemble as Ensemble,
        Flipout as Flipout,
        GridIncrements as GridIncrements,
        HyperODENet as HyperODENet,
        ImplicitBNN as ImplicitBNN,
        Integrator as Integrator,
        LaplaceApproximation as LaplaceApproximation,
        LatentODE as LatentODE,
        LatentSDE as LatentSDE,
        LevyCiesielski as LevyCiesielski,
        LocalReparameterised as LocalReparameterised,
        MCDropout as MCDropout,
        MeanField as MeanField,
        MixtureMeanKL as MixtureMeanKL,
        MonteCarloKL as MonteCarloKL,
        ODENet as ODENet,
        ParameterExpanded as ParameterExpanded,
        PosteriorSamples as PosteriorSamples,
        Pruned as Pruned,
        Reparameterised as Reparameterised,
        Roughness as Roughness,
        WeightPrior as WeightPrior,
        WhitenedLatentSDE as WhitenedLatentSDE,
        WhitenedSDEBNN as WhitenedSDEBNN,
        expand_parameters as expand_parameters,
        latent_paths as latent_paths,
        prior_of as prior_of,
        prune as prune,
        trajectory as trajectory,
        whiten as whiten,
        with_solver as with_solver,
        without_drift as without_drift,
        without_noise as without_noise,
    )
    from .likelihood import (
        AbstractLikelihood as AbstractLikelihood,
        Bernoulli as Bernoulli,
        Categorical as Categorical,
        Cauchy as Cauchy,
        CustomLikelihood as CustomLikelihood,
        Gaussian as Gaussian,
        Laplace as Laplace,
        OverTime as OverTime,
        StudentT as StudentT,
    )
    from .mcmc import (
        HMC as HMC,
        NUTS as NUTS,
        Langevin as Langevin,
        MicrocanonicalLangevin as MicrocanonicalLangevin,
        PartialHMC as PartialHMC,
        RandomWalkMetropolis as RandomWalkMetropolis,
    )
    from .potential import (
        AbstractPotential as AbstractPotential,
        DensityPotential as DensityPotential,
        Potential as Potential,
        Tempered as Tempered,
    )
    from .prediction import (
        Prediction as Prediction,
        isotonic_regression as isotonic_regression,
        predict as predict,
        temperature_scaling as temperature_scaling,
    )
    from .prior import (
        ByLeaf as ByLeaf,
        DistributionPrior as DistributionPrior,
        GaussianPrior as GaussianPrior,
        LaplacePrior as LaplacePrior,
        ScaleMixturePrior as ScaleMixturePrior,
        fan_in_prior as fan_in_prior,
    )
    from .recipe import (
        RunEvaluation as RunEvaluation,
        RunPrediction as RunPrediction,
        TrainedRun as TrainedRun,
        load_run as load_run,
    )
    from .sampling import (
        load_samples as load_samples,
        run_chains as run_chains,
        sample as sample,
        save_samples as save_samples,
    )
    from .sgmcmc import (
        SGHMC as SGHMC,
        SGLD as SGLD,
        SGNHT as SGNHT,
        AdaptiveDriftSGLD as AdaptiveDriftSGLD,
        ConstantSGD as ConstantSGD,
        PreconditionedSGLD as PreconditionedSGLD,
    )
    from .train import (
        ELBO as ELBO,
        IVON as IVON,
        EarlyStopping as EarlyStopping,
        Fit as Fit,
        GeometricSplit as GeometricSplit,
        ImportanceWeighted as ImportanceWeighted,
        KLWeight as KLWeight,
        Run as Run,
        RunFolder as RunFolder,
        Validation as Validation,
        elbo_loss as elbo_loss,
        fit as fit,
        fit_laplace as fit_laplace,
        fit_swag as fit_swag,
        implicit_options as implicit_options,
        load_hyperparameters as load_hyperparameters,
        load_model as load_model,
        load_sparse as load_sparse,
        save_model as save_model,
        save_sparse as save_sparse,
        tune as tune,
    )
else:  # pyright would take any name for one that `__getattr__` has
    _NAMES = _lazy_names(__name__, __loader__.get_source(__name__))
    _PUBLIC = ["__version__", *_NAMES.modules]
    globals()["__all__"] = _PUBLIC  # which what builds the reference cannot evaluate

    def __getattr__(name: str) -> object:
        value = globals()[name] = _NAMES.get(name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_PUBLIC})
