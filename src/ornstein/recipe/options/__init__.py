"""The options of a run, part by part."""

from ._numbers import MAX_COUNT as MAX_COUNT, check_numbers as check_numbers
from ._options import (
    ActivationName as ActivationName,
    CurvatureName as CurvatureName,
    DataOptions as DataOptions,
    GradientName as GradientName,
    ImplicitOptions as ImplicitOptions,
    LikelihoodOptions as LikelihoodOptions,
    MixtureKLName as MixtureKLName,
    ModelName as ModelName,
    ModelOptions as ModelOptions,
    NetworkOptions as NetworkOptions,
    NormName as NormName,
    OptimiserName as OptimiserName,
    PosthocOptions as PosthocOptions,
    ScheduleName as ScheduleName,
    SolverName as SolverName,
    SolverOptions as SolverOptions,
    StartName as StartName,
    StemName as StemName,
    TrainingOptions as TrainingOptions,
    WeightOptions as WeightOptions,
)
from ._series_options import (
    LatentOptions as LatentOptions,
    SeriesOptions as SeriesOptions,
)
