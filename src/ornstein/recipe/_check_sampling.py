"""What chains' options cannot be."""

import math

from .._sentence import Option, OptionError, does_nothing
from ..sampling import why_not_from_disk
from ._chain_starts import FROM_MEMBERS
from ._kernels import KERNELS, SOME_ROWS, build_kernel, is_minibatch
from ._recipe import sizes
from ._sampling import SampleRecipe
from ._sampling_options import OF_WHITENED, KernelName, SamplingOptions
from .checks import check_standard_prior
from .models import STANDARD_NORMAL, WHITENED
from .options import check_numbers


def check_sample_recipe(recipe: SampleRecipe) -> None:
    """Refuse a recipe that cannot work, before any data are read.

    Raises:
        ValueError: naming the option.
    """
    options = recipe.sampling
    check_sampling(options)
    if recipe.data.image_augmentation:
        raise OptionError(
            "{image_augmentation} does nothing for `ornstein sample`, whose likelihood "
            "is of the images as they are: leave it out."
        )
    if not recipe.data.stream:
        return
    why = why_not_from_disk(build_kernel(options, SOME_ROWS))
    if why is not None:
        raise OptionError(
            "{kernel} {} {}, and {stream} reads epochs batch by batch: take {kernel} "
            "{}.",
            options.kernel,
            why,
            _listed(kernels_from_disk()),
        )
    if options.start_from == FROM_MEMBERS:
        raise OptionError(
            "{start_from} {} optimises over rows in memory, and {stream} leaves them "
            "on disk: leave it out, or name a run of `ornstein train --stream --model "
            "ensemble`, map or deterministic.",
            FROM_MEMBERS,
        )


def kernels_from_disk() -> list[KernelName]:
    """Kernels whose chains may run over rows that stay on disk."""
    build = lambda name: build_kernel(SamplingOptions(kernel=name), SOME_ROWS)
    return [name for name in KERNELS if why_not_from_disk(build(name)) is None]


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
        if value is not None and not value > 0:
            raise OptionError("{} must be positive, got {}.", Option(name), value)
    if options.num_warmup < 0:
        raise OptionError(
            "{num_warmup} must not be negative, got {}", options.num_warmup
        )
    step_size = options.step_size
    if step_size is not None and not 0 < step_size < math.inf:
        raise OptionError("{step_size} must be positive, got {}.", step_size)
    if not 0 <= options.momentum < 1:
        raise OptionError(
            "{momentum} must be at least 0 and below 1, got {}.",
            options.momentum,
        )
    if options.network in STANDARD_NORMAL:
        prior = (options.prior, options.prior_scale)
        check_standard_prior(options.network, prior, "prior_scale")
    if options.network != WHITENED:
        _check_no_path(options)
    if options.expand_parameters and not sizes(options.width, "width"):
        raise OptionError(
            "{expand_parameters} does nothing for a network without hidden units: "
            "leave it out, or give {width} such as 50-50."
        )
    if options.expand_parameters and options.network in STANDARD_NORMAL:
        raise OptionError(
            "{expand_parameters} changes the prior of weight matrices, and {network} "
            "{} has standard normals in their place: leave it out.",
            options.network,
        )
    if not 1 <= options.store_every <= options.num_samples:
        raise OptionError(
            "{store_every} must be from 1 to {num_samples} {}, got {}: some samples "
            "are stored.",
            options.num_samples,
            options.store_every,
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
    if options.cycles > 0 and not has_cycles(options.kernel):
        raise OptionError(
            "{cycles} does nothing for {kernel} {}, which finds its own step size: "
            "leave it out, or take sgld, sghmc, psgld or another that sees batches.",
            options.kernel,
        )
    build_kernel(options, SOME_ROWS)


def unread_by_chains(options: SamplingOptions) -> dict[str, tuple[str, str]]:
    """Options that the kernel, the network or the chains' starts never read.

    Args:
        options: of which these decide.

    Returns:
        for each the option that decides it, and what that is.
    """
    of_kernel, of_network = ("kernel", options.kernel), ("network", options.network)
    unread = {
        name: (choice, getattr(options, choice))
        for name, choice in _unread_by_kernel(options).items()
    }
    if options.network != WHITENED:
        unread |= dict.fromkeys(OF_WHITENED, of_network)
    if options.kernel == "constant-sgd":
        unread["step_size"] = of_kernel
    if not has_cycles(options.kernel):
        unread["cycles"] = of_kernel
    return unread | {"image_augmentation": of_kernel}


def check_read(options: SamplingOptions, default: SamplingOptions) -> None:
    """Refuse a change to what the kernel, or the chains' starts, never read.

    Args:
        options: as they were given.
        default: those of the preset, which need not all be read.

    Raises:
        ValueError: naming the option.
    """
    for name, why in _unread_by_kernel(options).items():
        if getattr(options, name) != getattr(default, name):
            raise does_nothing(name, why, getattr(options, why))


def _unread_by_kernel(options: SamplingOptions) -> dict[str, str]:
    """With the option that decides it."""
    kernel = options.kernel
    is_read = {
        "batch_size": is_minibatch(kernel),
        "momentum": kernel in ("partial-hmc", "sghmc", "sgnht"),
        "num_integration_steps": kernel in ("hmc", "partial-hmc"),
    }
    unread = {name: "kernel" for name, read in is_read.items() if not read}
    if options.start_from != FROM_MEMBERS:
        unread["start_steps"] = "start_from"
    return unread


def has_cycles(kernel: KernelName) -> bool:
    """Whether a kernel's step size may go in cycles."""
    return is_minibatch(kernel) and kernel != "constant-sgd"


def _listed(names: list[KernelName]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _check_no_path(options: SamplingOptions) -> None:
    """Refuse options of a network whose weights move, of one whose weights do not."""
    default = SamplingOptions()
    for name in OF_WHITENED:
        if getattr(options, name) != getattr(default, name):
            raise does_nothing(name, "network", options.network)
