"""The names that options take."""

from typing import Literal

ModelName = Literal[
    "sdebnn",
    "mean-field",
    "implicit",
    "mc-dropout",
    "ensemble",
    "deterministic",
    "map",
    "laplace",
    "swag",
    "latent-sde",
    "latent-ode",
    "chains",
    "auto",
]
"""The last two become another recipe once the data are read."""
LikelihoodName = Literal[
    "auto", "categorical", "bernoulli", "gaussian", "laplace", "cauchy", "student-t"
]
EstimatorName = Literal["kl", "full", "stl"]
StartName = Literal["gaussian", "point"]
"""What `--start` takes: the law of w₀."""
PriorName = Literal["gaussian", "fan-in", "laplace", "scale-mixture"]
WeightNoiseName = Literal["plain", "local", "flipout"]
RandomWeightsName = Literal["all", "path"]
StemName = Literal["none", "patches"]
NormName = Literal["batch", "frn", "none"]
CurvatureName = Literal["auto", "full", "last-layer", "diagonal"]
MixtureKLName = Literal["mean", "monte-carlo"]
OptimiserName = Literal["adam", "ivon", "muon", "nesterov"]
"""What `--optimiser` takes."""
ScheduleName = Literal["cosine", "constant", "linear"]
SolverName = Literal[
    "euler",
    "euler-heun",
    "heun",
    "midpoint",
    "milstein",
    "reversible-heun",
    "rk4",
    "shark",
    "sra1",
    "stratonovich-milstein",
]
"""What `--solver` takes: names of `ornstein.sde`'s solvers."""
GradientName = Literal["backprop", "checkpointed", "reversible", "backsolve"]
ActivationName = Literal[
    "elu", "mish", "rbf", "relu", "silu", "softplus", "swish", "tanh"
]
TimeLayerName = Literal[
    "blend",
    "concat",
    "concat-coord",
    "concat-squash",
    "gated",
    "hyper",
    "ignore",
    "squash",
]
