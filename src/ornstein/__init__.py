"""Bayesian deep learning by stochastic dynamics, on JAX."""

from . import (
    data as data,
    functions as functions,
    likelihood as likelihood,
    metrics as metrics,
    nn as nn,
    sde as sde,
)
from ._version import __version__ as __version__
from .evaluate import evaluate as evaluate, evaluate_ood as evaluate_ood
from .functions import (
    SDEBNN as SDEBNN,
    AbstractRandomFunction as AbstractRandomFunction,
    Draw as Draw,
    Integrator as Integrator,
    WeightPrior as WeightPrior,
    prior_of as prior_of,
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
    StudentT as StudentT,
)
from .predict import Prediction as Prediction, predict as predict
from .train import (
    ELBO as ELBO,
    EarlyStopping as EarlyStopping,
    Fit as Fit,
    ImportanceWeighted as ImportanceWeighted,
    RunFolder as RunFolder,
    elbo_loss as elbo_loss,
    fit as fit,
    load_hyperparameters as load_hyperparameters,
    load_model as load_model,
    save_model as save_model,
    tune as tune,
)
