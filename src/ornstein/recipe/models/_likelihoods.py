"""From a recipe's names to objects."""

from collections.abc import Callable

import diffrax
import numpy as np

from ... import sde
from ..._sentence import OptionError
from ...data import Data
from ...functions import Integrator
from ...likelihood import (
    AbstractLikelihood,
    AbstractLocationScaleLikelihood,
    Bernoulli,
    Categorical,
    Cauchy,
    Gaussian,
    Laplace,
    OverTime,
    StudentT,
)
from ..options import LikelihoodOptions, SolverOptions

SOLVERS: dict[str, Callable[[], diffrax.AbstractSolver]] = {
    "euler": sde.EulerMaruyama,
    "euler-heun": sde.EulerHeun,
    "heun": sde.Heun,
    "midpoint": sde.Midpoint,
    "milstein": sde.Milstein,
    "reversible-heun": sde.ReversibleHeun,
    "rk4": sde.RK4,
    "shark": sde.ShARK,
    "sra1": sde.SRA1,
    "stratonovich-milstein": sde.StratonovichMilstein,
}
"""The solvers by the names of `--solver`."""
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
    return Integrator(
        SOLVERS[options.solver](), stepsize, GRADIENTS[options.gradient]()
    )


def build_likelihood(options: LikelihoodOptions, data: Data) -> AbstractLikelihood:
    """The likelihood, whose targets the data must have; of sequences, over time."""
    name = options.likelihood
    if name == "auto":
        name = "categorical" if data.task == "classification" else "gaussian"
    likelihood = LIKELIHOODS[name](options)
    if data.task == "series":
        if not isinstance(likelihood, AbstractLocationScaleLikelihood):
            raise OptionError(
                "{likelihood} {} is of classes, and {} holds sequences of numbers: "
                "give gaussian, laplace, cauchy or student-t.",
                name,
                data.name,
            )
        likelihood = OverTime(likelihood)
    likelihood.check_targets(data.train.y, data.num_outputs)
    return likelihood
