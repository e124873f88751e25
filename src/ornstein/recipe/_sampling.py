"""Options of runs of Markov chains: what `ornstein sample` fills in and keeps."""

import dataclasses
import math
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from .._sentence import Option, OptionError
from ..mcmc import (
    HMC,
    NUTS,
    AbstractKernel,
    Langevin,
    MicrocanonicalLangevin,
    PartialHMC,
    RandomWalkMetropolis,
)
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
from ._chain_starts import FROM_MEMBERS, FROM_PRIOR
from ._recipe import Recipe, changed, read_part, sizes
from .options import (
    ActivationName,
    DataOptions,
    LikelihoodOptions,
    check_numbers,
)
from .presets import kind_of_data

KernelName = Literal[
    "adaptive-sgld",
    "constant-sgd",
    "hmc",
    "langevin",
    "mclmc",
    "nuts",
    "partial-hmc",
    "psgld",
    "random-walk",
    "sghmc",
    "sgld",
    "sgnht",
]
"""What `ornstein sample --kernel` takes."""

_EXPLORATION = 0.8
"""Of a cycle."""
_SOME_ROWS = 1_000
"""For a kernel of which only the kind or the options matter."""


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
    """The network, its prior, and the chains.

    Attributes:
        kernel: what moves the chains. adaptive-sgld, constant-sgd, psgld, sghmc, sgld
            and sgnht see a batch at each step, the others all rows.
        width: hidden widths of the network, such as 50-50.
        activation: of its hidden layers.
        prior: of every weight by itself; fan-in is a gaussian in units of
            1/sqrt(fan-in).
        prior_scale: standard deviation (laplace: width) of the prior.
        expand_parameters: sample each hidden weight matrix as a product P V Q, which
            gives the weights another prior; with sghmc this is PX-SGHMC.
        step_size: full-data kernels adapt it, and only start here; 0.1 by default, of
            mclmc 0.01.
            Minibatch kernels have a default that suits the number of rows.
        momentum: what a step keeps of the one before, for partial-hmc, sghmc and sgnht.
        num_integration_steps: leapfrog steps of hmc and partial-hmc.
        start_from: where chains start: at draws of the prior that are no larger than
            the network; at members that are optimised first; or at those of the RUN
            (its folder) of `ornstein train --model ensemble`, one chain at each.
        start_steps: of Adam, for members that are optimised first.
        num_samples: kept of each chain.
        num_warmup: steps before the first of them.
        num_chains: side by side.
        thin: steps from one kept sample to the next.
        cycles: of a minibatch kernel's step size, each a cosine from its peak to 0,
            whose first four fifths explore and whose last gives its share of the
            samples; the warm-up is part of the first. 0 keeps the step size as it is.
        batch_size: rows behind a step of a minibatch kernel.
        test_draws: samples averaged over in tests and predictions.
        seed: of everything random.
    """

    kernel: KernelName = "sghmc"
    width: str = "50-50"
    activation: ActivationName = "tanh"
    prior: Literal["gaussian", "fan-in", "laplace"] = "fan-in"
    prior_scale: float = 1.5
    expand_parameters: bool = False
    step_size: float | None = None
    momentum: float = 0.9
    num_integration_steps: int = 20
    start_from: str = FROM_PRIOR
    start_steps: int = 2000
    num_samples: int = 200
    num_warmup: int = 500
    num_chains: int = 4
    thin: int = 1
    cycles: int = 0
    batch_size: int = 100
    test_draws: int = 200
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class SampleRecipe:
    """Every choice of a run of chains.

    Attributes:
        data: what is learned from.
        likelihood: what an output says about a target.
        sampling: the network, its prior, and the chains.
    """

    data: DataOptions = dataclasses.field(default_factory=DataOptions)
    likelihood: LikelihoodOptions = dataclasses.field(default_factory=LikelihoodOptions)
    sampling: SamplingOptions = dataclasses.field(default_factory=SamplingOptions)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the plain network, for data, keys and predictions."""
        options = self.sampling
        return Recipe(data=self.data, likelihood=self.likelihood).changed(
            model="deterministic",
            width=options.width,
            activation=options.activation,
            batch_size=options.batch_size,
            test_draws=options.test_draws,
            seed=options.seed,
        )

    def changed(self, **changes: Any) -> "SampleRecipe":
        """The recipe with some options changed, each by its own name.

        Raises:
            ValueError: for a name that no option has.
        """
        return changed(self, changes, command="sample")

    def to_json(self) -> dict[str, Any]:
        """As nested JSON objects."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Any) -> "SampleRecipe":
        """What `to_json` wrote.

        Raises:
            ValueError: for something else.
        """
        types = typing.get_type_hints(cls)
        if not isinstance(saved, Mapping) or set(saved) != set(types):
            raise ValueError(
                f"The options of a run of chains have the parts {', '.join(types)}: "
                "give the folder that this version of `ornstein sample` wrote."
            )
        return cls(**{name: read_part(types[name], saved[name]) for name in types})


_PRESETS: dict[str, dict[str, Any]] = {
    "toy": {"kernel": "hmc", "num_samples": 500},
    "vectors": {
        "kernel": "hmc",
        "width": "50",
        "activation": "relu",
        "scale": 0.3,
        "learn_scale": True,
    },
    "images": {
        "kernel": "sghmc",
        "width": "100",
        "activation": "relu",
        "num_samples": 50,
        "num_warmup": 2000,
        "thin": 40,
    },
}
_MINIBATCH = {"num_warmup": 5000, "num_samples": 250, "thin": 20}
_OF_KERNEL: dict[KernelName, dict[str, Any]] = {
    # As its authors run it: cheap steps, many of them, from optimised members.
    "mclmc": {
        "num_warmup": 10_000,
        "num_samples": 500,
        "thin": 20,
        "start_from": FROM_MEMBERS,
    },
}


def preset_sampling(data: str, kernel: KernelName | None = None) -> SampleRecipe:
    """What `ornstein sample --data DATA --kernel KERNEL` starts from.

    Args:
        data: as `load` takes it.
        kernel: another than these data's own.
    """
    options = dict(_PRESETS[kind_of_data(data)])
    if kernel is not None:
        if is_minibatch(kernel) and not is_minibatch(options["kernel"]):
            options |= _MINIBATCH
        options |= _OF_KERNEL.get(kernel, {})
        options["kernel"] = kernel
    parts = {}
    for part in (LikelihoodOptions, SamplingOptions):
        names = {field.name for field in dataclasses.fields(part)} & set(options)
        parts[part] = part(**{name: options[name] for name in names})
    return SampleRecipe(
        DataOptions(data=data), parts[LikelihoodOptions], parts[SamplingOptions]
    )


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
        num_integration_steps=o.num_integration_steps, step_size=_adapted(o)
    ),
    "langevin": lambda o, n: Langevin(_adapted(o)),
    # The first step size finds itself in a few steps; L is the warm-up's.
    "mclmc": lambda o, n: MicrocanonicalLangevin(
        0.01 if o.step_size is None else o.step_size
    ),
    "nuts": lambda o, n: NUTS(_adapted(o)),
    "partial-hmc": lambda o, n: PartialHMC(
        alpha=o.momentum,
        num_integration_steps=o.num_integration_steps,
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


def is_minibatch(kernel: KernelName) -> bool:
    """Whether a kernel sees a batch at each step."""
    return KERNELS[kernel](SamplingOptions(), _SOME_ROWS).is_minibatch


def check_sampling(options: SamplingOptions) -> None:
    """Refuse options that cannot work, before any data are read.

    Raises:
        ValueError: naming the option.
    """
    check_numbers(options)
    counts = ("num_samples", "num_chains", "thin", "batch_size", "test_draws")
    counts = (*counts, "num_integration_steps", "start_steps")
    for name in (*counts, "prior_scale"):
        value = getattr(options, name)
        if not value > 0:
            raise OptionError("{} must be positive, got {}.", Option(name), value)
    if options.num_warmup < 0:
        raise OptionError(
            "{num_warmup} must not be negative, got {}", options.num_warmup
        )
    if not 0 <= options.momentum < 1:
        raise OptionError(
            "{momentum} must be at least 0 and below 1, got {}.",
            options.momentum,
        )
    if options.expand_parameters and not sizes(options.width, "width"):
        raise OptionError(
            "{expand_parameters} does nothing for a network without hidden units: "
            "leave it out, or give {width} such as 50-50."
        )
    if options.kernel == "constant-sgd" and options.step_size is not None:
        raise OptionError(
            "{step_size} does nothing for {kernel} constant-sgd, which finds its own: "
            "leave it out."
        )
    if not 0 <= options.cycles <= options.num_samples:
        raise OptionError(
            "{cycles} must be from 0 to {num_samples} {}, got {}: each cycle gives "
            "samples.",
            options.num_samples,
            options.cycles,
        )
    has_cycles = is_minibatch(options.kernel) and options.kernel != "constant-sgd"
    if options.cycles > 0 and not has_cycles:
        raise OptionError(
            "{cycles} does nothing for {kernel} {}, which finds its own step size: "
            "leave it out, or take sgld, sghmc, psgld or another that sees batches.",
            options.kernel,
        )
    build_kernel(options, _SOME_ROWS)


def starts_from_run(options: SamplingOptions) -> Path | None:
    """The run at whose members chains start, if they do."""
    is_run = options.start_from not in (FROM_PRIOR, FROM_MEMBERS)
    return Path(options.start_from).expanduser() if is_run else None
