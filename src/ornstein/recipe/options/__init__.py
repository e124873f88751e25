"""The options of a run, part by part."""

from ._names import (
    ActivationName as ActivationName,
    CurvatureName as CurvatureName,
    GradientName as GradientName,
    MixtureKLName as MixtureKLName,
    ModelName as ModelName,
    NormName as NormName,
    OptimiserName as OptimiserName,
    ScheduleName as ScheduleName,
    SolverName as SolverName,
    StartName as StartName,
    StemName as StemName,
)
from ._numbers import MAX_COUNT as MAX_COUNT, check_numbers as check_numbers
from ._options import (
    DataOptions as DataOptions,
    ImplicitOptions as ImplicitOptions,
    LikelihoodOptions as LikelihoodOptions,
    ModelOptions as ModelOptions,
    NetworkOptions as NetworkOptions,
    PosthocOptions as PosthocOptions,
    SolverOptions as SolverOptions,
    TrainingOptions as TrainingOptions,
    WeightOptions as WeightOptions,
)
from ._series_options import (
    LatentOptions as LatentOptions,
    SeriesOptions as SeriesOptions,
)
