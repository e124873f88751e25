"""What moves chains, from the options of a run."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from ..mcmc import (
    HMC,
    NUTS,
    AbstractKernel,
    Langevin,
    MicrocanonicalLangevin,
    PartialHMC,
    RandomWalkMetropolis,
)
from ..sampling import NoiseLimit
from ..sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    AdaptiveDriftSGLD,
    ConstantSGD,
    Cyclical,
    PreconditionedSGLD,
    SamplingOnly,
)
from ._sampling_options import KernelName, SamplingOptions

_EXPLORATION = 0.8
"""Of a cycle."""
_JITTER = 0.1
"""Of the step size of HMC: at 200 steps of one radian, some radians of phase."""
SOME_ROWS = 1_000
"""For a kernel of which only the kind or the options matter."""
_NOISE, _RANGE = 3.0, 2000
"""Of gradients, times the injected noise, and how much flatter than the stiffest
direction others may be that the warm-up is still to reach.

On `uci/yacht` (split 0, four chains, one seed) the NLL of SGLD is 0.38, -1.81 and -1.75
with noise of 10, 3 and 1, for at 10 it stays at a noise of targets that is too large;
and that of SGHMC -1.97, -1.74 and -0.92. With 3 on MNIST, whose 600 batches an epoch
are more than the steps there, SGHMC had an NLL of 0.30 in place of 0.12. Test scores
were seen beside it."""
_ROWS_A_TRAJECTORY = 400_000
_FEWEST_STEPS, _MOST_STEPS = 50, 1000


def _rate(o: SamplingOptions, rate: float) -> float:
    """A learning rate; of products a ninth, whose slopes grow with P and Q.

    Kim et al. (2025) take a third of SGHMC's step, whose rate is its square; on
    `uci/yacht` the whole step diverged, and a third did not.
    """
    return rate / 9 if o.expand_parameters else rate


def _underdamped(o: SamplingOptions, num_data: int) -> tuple[float, float]:
    """Step size and friction: SGD with momentum, of rate 0.02 on the mean loss."""
    default = math.sqrt(_rate(o, 0.02) / num_data)
    step_size = default if o.step_size is None else o.step_size
    return step_size, (1 - o.momentum) / step_size


def steps_for(num_data: int) -> int:
    """Of a trajectory on a table: about as many as two minutes of two cores allow.

    Args:
        num_data: rows of the training data.
    """
    return min(_MOST_STEPS, max(_FEWEST_STEPS, _ROWS_A_TRAJECTORY // num_data))


def num_steps_of(options: SamplingOptions, num_data: int) -> int:
    """Leapfrog steps of a trajectory: as given, or what suits the number of rows.

    Args:
        options: of the chains.
        num_data: rows of the training data.
    """
    given = options.num_integration_steps
    return steps_for(num_data) if given is None else given


def _adapted(o: SamplingOptions) -> float:
    return 0.1 if o.step_size is None else o.step_size


def _langevin_step(o: SamplingOptions, num_data: int) -> float:
    return _rate(o, 0.1) / num_data if o.step_size is None else o.step_size


KERNELS: dict[KernelName, Callable[[SamplingOptions, int], AbstractKernel]] = {
    # Adam's part moves a weight by up to 1e-3 a step, as its usual rate does.
    "adaptive-sgld": lambda o, n: AdaptiveDriftSGLD(
        _langevin_step(o, n), 2e-3 / _langevin_step(o, n)
    ),
    "constant-sgd": lambda o, n: ConstantSGD(),
    "hmc": lambda o, n: HMC(
        num_integration_steps=num_steps_of(o, n),
        step_size=_adapted(o),
        jitter=_JITTER,
    ),
    "langevin": lambda o, n: Langevin(_adapted(o)),
    # The first step size finds itself in a few steps; L is the warm-up's.
    "mclmc": lambda o, n: MicrocanonicalLangevin(
        0.01 if o.step_size is None else o.step_size
    ),
    "nuts": lambda o, n: NUTS(_adapted(o)),
    "partial-hmc": lambda o, n: PartialHMC(
        alpha=o.momentum,
        num_integration_steps=num_steps_of(o, n),
        step_size=_adapted(o),
    ),
    # A step is about half its size in every weight, as RMSprop's is.
    "psgld": lambda o, n: PreconditionedSGLD(
        2e-3 if o.step_size is None else o.step_size
    ),
    "random-walk": lambda o, n: RandomWalkMetropolis(_adapted(o)),
    "sghmc": lambda o, n: SGHMC(*_underdamped(o, n)),
    "sgld": lambda o, n: SGLD(_langevin_step(o, n)),
    "sgnht": lambda o, n: SGNHT(*_underdamped(o, n)),
}
"""What moves chains, by name: options and number of rows to a kernel."""


def build_kernel(options: SamplingOptions, num_data: int) -> AbstractKernel:
    """What moves the chains of a run, with the cycles of its step size.

    Noise is injected where samples are taken alone, as Zhang et al. (2020) do; but not
    of sgnht, whose thermostat would take a cold chain for one that is too hot.

    Args:
        options: the kernel, its step size and its cycles.
        num_data: rows of the training data.
    """
    kernel: Any = KERNELS[options.kernel](options, num_data)
    if options.cycles == 0:
        return kernel
    each = -(-options.num_samples // options.cycles) * options.thin
    cycle = Cyclical(kernel.step_size, round(each / (1 - _EXPLORATION)), _EXPLORATION)
    temperature = SamplingOnly(cycle, kernel.temperature)
    if options.kernel == "sgnht":
        temperature = kernel.temperature
    return dataclasses.replace(kernel, step_size=cycle, temperature=temperature)


def noise_limit_of(options: SamplingOptions, num_data: int) -> NoiseLimit | None:
    r"""What lowers the step size of a run in its warm-up, where none was given.

    Batches of n of N rows have noise of about N / n times a direction's curvature, so
    that where it is r times the injected noise a direction takes N / (2 n r) steps, and
    one that is $\kappa$ times as flat as the stiffest $\kappa$ times as many. A limit
    below $\kappa N / (2 n S)$ would leave chains of a warm-up of S steps where they
    started.

    Args:
        options: the kernel, its step size and its cycles.
        num_data: rows of the training data.
    """
    is_found = options.step_size is None and options.cycles == 0
    if not is_found or options.num_warmup == 0 or options.kernel == "constant-sgd":
        return None
    if not is_minibatch(options.kernel):
        return None
    num_batches = max(1.0, num_data / options.batch_size)
    return NoiseLimit(max(_NOISE, _RANGE * num_batches / (2 * options.num_warmup)))


def is_minibatch(kernel: KernelName) -> bool:
    """Whether a kernel sees a batch at each step."""
    return KERNELS[kernel](SamplingOptions(), SOME_ROWS).is_minibatch
