"""From a recipe's names to objects."""

from collections.abc import Callable

import diffrax
import numpy as np

from .. import sde
from .._types import PRNGKeyArray
from ..data import Data
from ..functions import SDEBNN, Integrator, WeightPrior
from ..likelihood import (
    AbstractLikelihood,
    Bernoulli,
    Categorical,
    Cauchy,
    Gaussian,
    Laplace,
    StudentT,
)
from ..nn import TIME_LAYERS, activation_from_name
from ._options import LikelihoodOptions, SolverOptions
from ._recipe import Recipe, sizes

SOLVERS: dict[str, Callable[[], diffrax.AbstractSolver]] = {
    "euler": sde.EulerMaruyama,
    "euler-heun": sde.EulerHeun,
    "heun": sde.Heun,
    "midpoint": sde.Midpoint,
    "milstein": sde.Milstein,
    "reversible-heun": sde.ReversibleHeun,
    "shark": sde.ShARK,
    "sra1": sde.SRA1,
    "stratonovich-milstein": sde.StratonovichMilstein,
}
GRADIENTS: dict[str, Callable[[], sde.AbstractGradient]] = {
    "backprop": sde.Backprop,
    "checkpointed": sde.Checkpointed,
    "reversible": sde.Reversible,
    "backsolve": sde.Backsolve,
}
ESTIMATORS: dict[str, sde.AbstractPathKL] = {
    "kl": sde.KL(),
    "full": sde.FullMonteCarlo(),
    "stl": sde.StickTheLanding(),
}
LIKELIHOODS: dict[str, Callable[[LikelihoodOptions], AbstractLikelihood]] = {
    "categorical": lambda o: Categorical(),
    "bernoulli": lambda o: Bernoulli(),
    "gaussian": lambda o: Gaussian(o.scale, learn_scale=o.learn_scale),
    "laplace": lambda o: Laplace(o.scale, learn_scale=o.learn_scale),
    "cauchy": lambda o: Cauchy(o.scale, learn_scale=o.learn_scale),
    "student-t": lambda o: StudentT(o.df, o.scale, learn_scale=o.learn_scale),
}


def build_stepsize(
    dt: float, rtol: float | None, atol: float | None
) -> sde.AbstractStepsize:
    """Adaptive steps if there is a tolerance, else steps of `dt`, over depth 0 to 1."""
    if rtol is None and atol is None:
        stepsize = sde.Fixed(dt)
        stepsize.mesh(
            np.array([0.0, 1.0])
        )  # refuses a step that does not divide the depth
        return stepsize
    rtol = 1e-3 if rtol is None else rtol
    atol = 1e-3 if atol is None else atol
    return sde.Adaptive(rtol=rtol, atol=atol)


def build_integrator(options: SolverOptions) -> Integrator:
    """Solver, steps and gradient, if they go together."""
    stepsize = build_stepsize(options.dt, options.rtol, options.atol)
    if isinstance(stepsize, sde.Adaptive) and options.estimator != "kl":
        raise ValueError(
            f"--estimator {options.estimator} does not go with adaptive steps, whose "
            "path KL is an integral without a Brownian sum: leave --rtol and --atol "
            "out, or use --estimator kl."
        )
    return Integrator(
        SOLVERS[options.solver](), stepsize, GRADIENTS[options.gradient]()
    )


def build_likelihood(options: LikelihoodOptions, data: Data) -> AbstractLikelihood:
    """The likelihood, whose targets the data must have."""
    name = options.likelihood
    if name == "auto":
        name = "categorical" if data.task == "classification" else "gaussian"
    likelihood = LIKELIHOODS[name](options)
    likelihood.check_targets(data.train.y, data.num_outputs)
    return likelihood


def build_sdebnn(recipe: Recipe, data: Data, *, key: PRNGKeyArray) -> SDEBNN:
    """Weights that follow a stochastic differential equation."""
    options = recipe.model
    common = {
        "activation": activation_from_name(options.activation),
        "time": TIME_LAYERS[options.time_layer.replace("-", "_")],
        "augment": options.augment,
        "prior": WeightPrior(
            sigma=options.sigma,
            rate=options.rate,
            scale=options.prior_scale,
            is_relative=not options.absolute_sigma,
            reverts_to_start=options.reverts_to_start,
        ),
        "start_width": None if options.start == "point" else options.start_width,
        "drift_widths": sizes(options.drift_widths, "drift-widths"),
        "drift_scale": options.drift_scale,
        "num_inducing": options.num_inducing,
        "estimator": ESTIMATORS[recipe.solver.estimator],
        "integrator": build_integrator(recipe.solver),
        "is_path_per_row": options.path_per_row,
        "key": key,
    }
    widths = sizes(options.width, "width")
    if len(data.example_shape) == 1:
        return SDEBNN.for_vectors(
            data.example_shape[0], data.num_outputs, width_sizes=widths, **common
        )
    if len(widths) != 1:
        raise ValueError(
            f"--width is {options.width!r}, but images have one width, the channels "
            "inside a block: give one number, such as 32."
        )
    return SDEBNN.for_images(
        data.example_shape,
        data.num_outputs,
        width=widths[0],
        blocks=sizes(options.blocks, "blocks"),
        readout_widths=sizes(options.readout, "readout"),
        space_to_depth_first=options.space_to_depth,
        **common,
    )
