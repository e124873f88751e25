"""Runs of Markov chains, carried out as their options say."""

import typing
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._sentence import Option, OptionError, Sentence
from ..data import Data
from ..functions import (
    MAP,
    Deterministic,
    Ensemble,
    PosteriorSamples,
    expand_parameters,
)
from ..potential import Potential
from ..prediction import FittedModel
from ..prior import AbstractPrior, GaussianPrior
from ..sampling import (
    RunningPrediction,
    SamplingCallback,
    load_samples,
    optimised_starts,
    sample,
    starts_of_members,
)
from ..train import Fit
from ._chain_starts import choose_starts, sample_potential, starts_file
from ._kernels import build_kernel, noise_limit_of, num_steps_of
from ._recipe import Recipe
from ._sampling import SampleRecipe, sampled_priors
from ._sampling_options import SampledNetwork, SamplingOptions
from ._training import Keys, Prepared
from .models import PRIORS, STANDARD_NORMAL, network_kind
from .options import WeightOptions

_OF_STARTS, _OF_MODE = 1, 2
"""What is folded into the key of the chains for that of their starts, and of a mode."""


def has_starts(folder: Path) -> bool:
    """Whether a run has its chains' starts already.

    Args:
        folder: of its samples.
    """
    return starts_file(folder).exists()


def run_sampling(
    recipe: SampleRecipe,
    prepared: Prepared,
    folder: Path | None,
    *,
    members: Fit | None = None,
    num_data: int | None = None,
    resume: bool = False,
    origin: dict[str, str] | None = None,
    running: RunningPrediction | None = None,
    callbacks: Sequence[SamplingCallback] = (),
) -> PosteriorSamples:
    """Sample as the recipe says.

    Args:
        recipe: the options.
        prepared: what `prepare(recipe.recipe)` built.
        folder: of the samples; `None` keeps them in memory.
        members: of the run at which chains start, if they do.
        num_data: rows that default step sizes are for, if they are weighted.
        resume: go on with the chains there.
        origin: the run's, as `origin_of_run` has it.
        running: sums up what all samples predict.
        callbacks: hear about the chains.
    """
    options = recipe.sampling
    arguments = potential_arguments(recipe, prepared)
    num_data = len(prepared.data.train) if num_data is None else num_data
    kernel = build_kernel(options, num_data)
    batch_size = options.batch_size if kernel.is_minibatch else None
    key = Keys.of(prepared.recipe).fit
    starts = choose_starts(
        options.start_from,
        arguments,
        None if folder is None else starts_file(folder),
        num_chains=options.num_chains,
        num_steps=options.start_steps,
        batch_size=batch_size,
        members=members,
        key=jax.random.fold_in(key, _OF_STARTS),
        callbacks=callbacks,
    )
    return sample(
        arguments.pop("network"),
        arguments.pop("split"),
        arguments.pop("likelihood"),
        **arguments,
        kernel=kernel,
        key=key,
        num_samples=options.num_samples,
        num_warmup=options.num_warmup,
        num_chains=options.num_chains,
        thin=options.thin,
        noise_limit=noise_limit_of(options, num_data),
        batch_size=batch_size,
        starts=starts,
        folder=folder,
        resume=resume,
        origin=origin,
        running=running,
        callbacks=callbacks,
    )


def mode_at_start(recipe: SampleRecipe, prepared: Prepared) -> MAP:
    """The network and prior of the chains as a random function that is no posterior.

    Args:
        recipe: the options.
        prepared: what `prepare(recipe.recipe)` built.
    """
    potential = Potential(**potential_arguments(recipe, prepared))
    return MAP(potential.start[0], potential.network, potential.prior)


def find_mode(
    recipe: SampleRecipe,
    prepared: Prepared,
    *,
    callbacks: Sequence[SamplingCallback] = (),
) -> FittedModel:
    """A mode of the density that the chains sample, a learned scale's with it.

    By Adam from a draw of the prior, with at least as many gradients as one of the
    chains has (trajectories of NUTS counted as one).

    Args:
        recipe: the options.
        prepared: what `prepare(recipe.recipe)` built.
        callbacks: hear about it, as about members at which chains start.
    """
    options, key = recipe.sampling, Keys.of(prepared.recipe).fit
    arguments = potential_arguments(recipe, prepared)
    potential = Potential(**arguments)
    is_batched = build_kernel(options, potential.num_data).is_minibatch
    has_length = options.kernel in ("hmc", "partial-hmc")
    num_gradients = num_steps_of(options, potential.num_data) if has_length else 1
    num_gradients *= options.num_warmup + options.num_samples * options.thin
    found = optimised_starts(
        arguments.pop("network"),
        arguments.pop("split"),
        arguments.pop("likelihood"),
        **arguments,
        key=jax.random.fold_in(key, _OF_MODE),
        num_chains=1,
        num_steps=max(num_gradients, options.start_steps),
        batch_size=options.batch_size if is_batched else None,
        callbacks=callbacks,
    )
    params, scale = jax.tree.map(lambda a: a[0], found.positions)
    _, likelihood = potential.combine((params, scale))
    return FittedModel(MAP(params, potential.network, potential.prior), likelihood)


def potential_arguments(recipe: SampleRecipe, prepared: Prepared) -> dict[str, Any]:
    """Network, data, likelihood and priors of the chains, as `Potential` takes them."""
    network, prior = _network_and_prior(recipe, prepared)
    return {
        "network": network,
        "split": prepared.data.train,
        "likelihood": prepared.likelihood,
        "prior": prior,
        # Of the log of a learned scale, in units of standardised targets.
        "likelihood_prior": GaussianPrior(1.0),
    }


def sampled_prior(recipe: SampleRecipe, prepared: Prepared) -> AbstractPrior:
    """The prior of the network's parameters.

    Args:
        recipe: the options.
        prepared: what `prepare(recipe.recipe)` built.
    """
    return _network_and_prior(recipe, prepared)[1]


def check_members(
    recipe: SampleRecipe,
    prepared: Prepared,
    members: Fit,
    theirs: Prepared,
    given: Collection[str] | None = None,
) -> None:
    """Refuse members at which these chains cannot start.

    Args:
        recipe: of the chains.
        prepared: what `prepare(recipe.recipe)` built.
        members: another run's.
        theirs: its recipe, and what they were trained on.
        given: names of options that somebody gave; `None` where all are kept.

    Raises:
        ValueError: saying what is another's.
        TypeError: for members that are no networks.
    """
    options, own, data = recipe.sampling, prepared.data, theirs.data
    if isinstance(members.model, Ensemble | MAP | Deterministic):
        _check_network(recipe, theirs.recipe)
        if given is not None and isinstance(members.model, MAP):
            _check_prior(options, theirs.recipe, given)
    pairs = zip(*map(_rows, (own, data)), strict=False)
    is_same = (
        len(own.train) == len(data.train)
        and len(_rows(own)) == len(_rows(data))
        and all(np.array_equal(a, b) for a, b in pairs)
    )
    if not is_same:
        raise OptionError(
            "{start_from} {} was trained on other rows than these chains are to see "
            "({} training rows of {}, here {} of {}, standardised by themselves): give "
            "both the same {data}, {split}, {validation_fraction}, {train_rows} and "
            "{seed}.",
            options.start_from,
            len(data.train),
            data.name,
            len(own.train),
            own.name,
        )
    potential = sample_potential(potential_arguments(recipe, prepared))
    starts_of_members(members, potential, options.num_chains)


_OF_TRAINING = {"regularise_dynamics", "roughness_order"}


def _check_network(recipe: SampleRecipe, trained: Recipe) -> None:
    """Refuse another network than the one that a run trained, naming what differs."""
    options, network = recipe.sampling, trained.network.network
    known = typing.get_args(SampledNetwork)
    if network not in known:
        raise OptionError(
            "{start_from} {} is of {network} {}, and chains have {}: train one of "
            "these.",
            options.start_from,
            network,
            " or ".join(known),
        )
    if network != options.network:
        raise OptionError(
            "{start_from} {} is of {network} {}, and the chains of {network} {}: leave "
            "{network} out.",
            options.start_from,
            network,
            options.network,
        )
    parts = [vars(r.model) | vars(r.solver) for r in (trained, recipe.recipe)]
    for name in sorted(network_kind(network).options - _OF_TRAINING):
        its, ours = (part[name] for part in parts)
        if its == ours:
            continue
        option = "start_scale" if name == "prior_scale" else name
        has_it = option in vars(options)
        raise OptionError(
            "{start_from} {} was trained with {} {}, and the chains have {}: {}.",
            options.start_from,
            Option(name),
            its,
            ours,
            Sentence("leave {} out", Option(option))
            if has_it
            else Sentence("train with {}, for they have no other", ours),
        )


def _check_prior(
    options: SamplingOptions, trained: Recipe, given: Collection[str]
) -> None:
    """Refuse a prior that was neither trained with nor given."""
    prior = trained.weights.prior
    is_read = options.network not in STANDARD_NORMAL
    if not is_read or {"prior", "prior_scale"} <= set(given):
        return
    if prior not in sampled_priors():
        raise OptionError(
            "{start_from} {} was trained with {prior} {}, and chains have {}: give "
            "both {prior} and {prior_scale}.",
            options.start_from,
            prior,
            " or ".join(sampled_priors()),
        )
    if options.prior != prior:
        raise OptionError(
            "{start_from} {} was trained with {prior} {}, whose scale is of other "
            "units than that of {}: give {prior_scale}, too.",
            options.start_from,
            prior,
            options.prior,
        )


def _rows(data: Data) -> list[np.ndarray]:
    """In memory: of rows on disk a sample, which their number and the seed decide."""
    held = data.train.in_memory()
    return list(map(np.asarray, jax.tree.leaves((held.x, held.y))))


def open_sampling(
    recipe: SampleRecipe, prepared: Prepared, folder: Path
) -> PosteriorSamples:
    """The samples that a run wrote."""
    network, _ = _network_and_prior(recipe, prepared)
    return load_samples(folder, network, prepared.likelihood)


def _network_and_prior(
    recipe: SampleRecipe, prepared: Prepared
) -> tuple[Any, AbstractPrior]:
    """What moves, and how it is distributed a priori."""
    options = recipe.sampling
    weights = WeightOptions(prior=options.prior, weight_scale=options.prior_scale)
    network: Any = getattr(prepared.model, "network")  # noqa: B009
    prior = PRIORS[options.prior](weights, network)
    if not options.expand_parameters:
        return network, prior
    expanded = expand_parameters(network)
    # So that the scale of the prior means the same with products and without.
    return expanded, expanded.expanded_prior(prior, scale=None)
