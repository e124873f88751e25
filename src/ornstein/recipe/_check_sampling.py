"""What chains' options cannot be."""

from .._sentence import Option, OptionError, does_nothing
from ._kernels import SOME_ROWS, build_kernel, is_minibatch
from ._recipe import sizes
from ._sampling_options import OF_WHITENED, SamplingOptions
from .checks import check_standard_prior
from .models import WHITENED
from .options import check_numbers


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
    if options.network == WHITENED:
        check_standard_prior(options.prior, options.prior_scale, "prior_scale")
    else:
        _check_no_path(options)
    if options.expand_parameters and not sizes(options.width, "width"):
        raise OptionError(
            "{expand_parameters} does nothing for a network without hidden units: "
            "leave it out, or give {width} such as 50-50."
        )
    if options.expand_parameters and options.network == WHITENED:
        raise OptionError(
            "{expand_parameters} changes the prior of weight matrices, and {network} "
            "sdebnn has standard normals in their place: leave it out."
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
    build_kernel(options, SOME_ROWS)


def _check_no_path(options: SamplingOptions) -> None:
    """Refuse options of a network whose weights move, of one whose weights do not."""
    default = SamplingOptions()
    for name in OF_WHITENED:
        if getattr(options, name) != getattr(default, name):
            raise does_nothing(name, "network", options.network)
