"""Training: the bound, the loop, runs and checkpoints."""

from ._check import (
    check_data as check_data,
    check_positive as check_positive,
)
from ._early_stopping import EarlyStopping as EarlyStopping
from ._elbo import (
    ELBO as ELBO,
    AbstractObjective as AbstractObjective,
    ELBOInfo as ELBOInfo,
    ImportanceWeighted as ImportanceWeighted,
    elbo_loss as elbo_loss,
)
from ._errors import (
    CheckpointError as CheckpointError,
    NonFiniteError as NonFiniteError,
)
from ._fit import Fit as Fit, fit as fit
from ._implicit import implicit_options as implicit_options, nesterov as nesterov
from ._kl_weight import (
    AbstractKLSplit as AbstractKLSplit,
    GeometricSplit as GeometricSplit,
    KLWeight as KLWeight,
    UniformSplit as UniformSplit,
)
from ._nonfinite import (
    AbstractOnNonFinite as AbstractOnNonFinite,
    Skip as Skip,
    Stop as Stop,
)
from ._optimiser import (
    VECTORS_RATE as VECTORS_RATE,
    Rule as Rule,
    adamw as adamw,
    muon as muon,
)
from ._run import Run as Run
from ._schedule import (
    AbstractSchedule as AbstractSchedule,
    Constant as Constant,
    Cosine as Cosine,
    Exponential as Exponential,
    Inverse as Inverse,
    Linear as Linear,
    Step as Step,
)
from ._statistics import recompute_statistics as recompute_statistics
from ._tune import LogUniform as LogUniform, Tuning as Tuning, tune as tune
from ._validate import validate as validate
from ._validation import Validation as Validation
from .ivon import IVON as IVON
from .posthoc import (
    MAX_JOINT_WEIGHTS as MAX_JOINT_WEIGHTS,
    AbstractStructure as AbstractStructure,
    DiagonalGGN as DiagonalGGN,
    FullGGN as FullGGN,
    LastLayer as LastLayer,
    fit_laplace as fit_laplace,
    fit_swag as fit_swag,
    laplace_like as laplace_like,
    swag_like as swag_like,
)
from .records import Callback as Callback, Plan as Plan, ProgressBar as ProgressBar
from .saving import (
    RunFolder as RunFolder,
    checkpoints as checkpoints,
    creating as creating,
    is_unused as is_unused,
    load_hyperparameters as load_hyperparameters,
    load_model as load_model,
    load_sparse as load_sparse,
    put_back as put_back,
    save_model as save_model,
    save_sparse as save_sparse,
)
