"""Solvers, gradients and estimators of the path KL by their names in a recipe."""

from collections.abc import Callable

import diffrax
import numpy as np

from ... import sde
from ...functions import Integrator
from ..options import SolverOptions

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


def build_stepsize(
    dt: float, rtol: float | None, atol: float | None
) -> sde.AbstractStepsize:
    """Adaptive steps if there is a tolerance, else steps of `dt`, over depth 0 to 1."""
    adaptive = adaptive_steps(rtol, atol)
    if adaptive is not None:
        return adaptive
    stepsize = sde.Fixed(dt)
    stepsize.mesh(np.array([0.0, 1.0]))  # refuses a step that does not divide them
    return stepsize


def adaptive_steps(rtol: float | None, atol: float | None) -> sde.Adaptive | None:
    """Adaptive steps if there is a tolerance; the other one is 1e-3 by default."""
    if rtol is None and atol is None:
        return None
    rtol, atol = (1e-3 if given is None else given for given in (rtol, atol))
    return sde.Adaptive(rtol=rtol, atol=atol)


def build_integrator(options: SolverOptions) -> Integrator:
    """Solver, steps and gradient, if they go together."""
    stepsize = build_stepsize(options.dt, options.rtol, options.atol)
    return Integrator(
        SOLVERS[options.solver](), stepsize, GRADIENTS[options.gradient]()
    )
