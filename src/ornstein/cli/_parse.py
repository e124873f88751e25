"""Arguments to a command."""

import contextlib
import dataclasses
import io
import os
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import tyro

from .._version import __version__
from ..recipe import (
    KernelName,
    ModelName,
    OptimiserName,
    PresetName,
    Recipe,
    SampledNetwork,
    SampleRecipe,
    check_numbers,
    check_read,
    default_model,
    preset_recipe,
    preset_sampling,
    starts_from_run,
)
from ._flags import flag, flags_of
from ._run_folder import chains_of_members
from ._several import ALONE, Several
from ._usage import HELP, HELP_ALL, UsageError, nearest, shown, speak
from .commands import Sample, Train

LOOKED_AT = "ORNSTEIN_LOOKED_AT"
"""Of the environment of a sweep's run, whose options were looked at when it began: an
older sweep may have some that nothing reads, and cannot be given others."""


@dataclasses.dataclass(frozen=True)
class _Peek:
    """What decides the other options' defaults."""

    data: str = Recipe().data.data
    preset: PresetName = Train.preset
    model: ModelName | None = None
    network: str | None = None
    time: str | None = None
    series: str | None = None
    kernel: KernelName | None = None
    optimiser: OptimiserName | None = None
    start_from: str | None = None
    epochs: int | None = None
    steps: int | None = None
    num_members: int | None = None
    likelihood: str | None = None
    prior: str | None = None
    latent_noise: str | None = None
    latent_prior: str | None = None
    stream: bool = False


_DECIDES = ("likelihood", "prior", "latent_noise", "latent_prior", "time", "optimiser")
"""Of those, what decides which other options are read, beside the defaults."""


_ELSEWHERE = {
    "diagnose": "`ornstein evaluate RUN` ends with a diagnosis, as training does",
    "audit": "`ornstein evaluate RUN --audit`",
    "test": "`ornstein evaluate RUN`",
    "fit": "`ornstein train`",
}
"""Words that are no command's name, and where what they say is."""


def parse(args: Sequence[str], commands: Mapping[str, type]) -> Any:
    """The command that the arguments describe.

    Args:
        args: without the program's name.
        commands: dataclasses by name.

    Raises:
        UsageError: for arguments that cannot be understood.
        ValueError: for data without the preset that was asked for, or numbers that no
            option takes.
        SystemExit: with code 0, once `--help` or the like was printed.
    """
    if not args:
        raise UsageError(
            f"a command is missing: give one of {', '.join(commands)}, or --help."
        )
    if list(args) == ["--version"]:
        print(f"ornstein {__version__}")
        raise SystemExit(0)
    args, words = _parted(args)
    is_help_all = HELP_ALL in args
    args = [HELP[-1] if arg == HELP_ALL else arg for arg in args]
    is_help = any(arg in HELP for arg in args)
    if args[0] not in commands and not args[0].startswith("-"):
        raise UsageError(
            f"there is no command {args[0]!r}{_elsewhere(args[0], commands)}: give one "
            f"of {', '.join(commands)}."
        )
    peek = _peek(args[1:]) if args[0] in ("train", "sample") else _Peek()
    model = peek.model or default_model(peek.data, time=peek.time, stream=peek.stream)
    columns = {"time": peek.time, "series": peek.series}
    recipe = preset_recipe(
        peek.data,
        peek.preset,
        model,
        peek.network,
        optimiser=peek.optimiser,
        **columns,
    )
    recipe = _with_own_members(_with_own_budget(recipe, peek), peek)
    defaults = {
        Train: Train(recipe, peek.preset),
        Sample: Sample(_sampling(peek)),
    }
    kinds: list[Any] = []
    for name, command in commands.items():
        kind, how = command, {}
        if command in defaults:
            how = {"default": defaults[command]}
        if command in defaults and name == args[0] and is_help and not is_help_all:
            seen = shown(defaults[command], _decided(defaults[command].recipe, peek))
            kind, how = type(seen.default), seen._asdict()
        kinds.append(Annotated[kind, tyro.conf.subcommand(name, **how)])
    # Known at run time only, hence no `|`.
    command = speak(
        typing.Union[tuple(kinds)],  # noqa: UP007
        commands,
        args=args,
        prog="ornstein",
        description="Bayesian deep learning by stochastic dynamics.",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    if isinstance(command, Train | Sample) and command.resume is not None:
        is_plain = not _told(args[1:], type(command))
        _check_resume(command, defaults[type(command)], is_plain=is_plain)
    elif isinstance(command, Train | Sample):
        if LOOKED_AT not in os.environ:
            given = _given(args[1:], command.recipe)
            command = dataclasses.replace(command, given=given)
    if words:
        command = dataclasses.replace(command, words=words)
    check_numbers(command)
    if isinstance(command, Sample) and command.resume is None:
        check_read(command.recipe.sampling, defaults[Sample].recipe.sampling)
    return command


def _parted(args: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The arguments of `sweep`, and after `--` those of its runs."""
    args = list(args)
    if args[0] != "sweep":
        return args, ()
    if "--" in args:
        end = args.index("--")
        return args[:end], tuple(args[end + 1 :])
    for name in ("train", "sample"):
        if name in args:
            raise UsageError(
                f"the command of one run stands after `--`: write `ornstein sweep "
                f"[OPTIONS] -- {name} ...`."
            )
    return args, ()


def _decided(recipe: Any, peek: _Peek) -> Any:
    """Defaults of a command with what was given and decides which options are read."""
    parts = (getattr(recipe, field.name) for field in dataclasses.fields(recipe))
    there = {field.name for part in parts for field in dataclasses.fields(part)}
    given = {name: getattr(peek, name) for name in _DECIDES if name in there}
    return recipe.changed(**{name: v for name, v in given.items() if v is not None})


def _with_own_budget(recipe: Recipe, peek: _Peek) -> Recipe:
    """A preset whose budget stands back where one is given in other units."""
    if peek.epochs is None and peek.steps is None:
        return recipe
    training = dataclasses.replace(recipe.training, epochs=None, steps=None)
    return dataclasses.replace(recipe, training=training)


def _with_own_members(recipe: Recipe, peek: _Peek) -> Recipe:
    """A preset that averages over the members that are asked for, each once."""
    if recipe.model.model != "ensemble" or peek.num_members is None:
        return recipe
    training = dataclasses.replace(recipe.training, test_draws=peek.num_members)
    return dataclasses.replace(recipe, training=training)


def _sampling(peek: _Peek) -> SampleRecipe:
    """Defaults of `sample`; the whole parse refuses a network that it does not take.

    From where a run ended they are of its network, and one a member of an ensemble.
    """
    is_known = peek.network in typing.get_args(SampledNetwork)
    network = typing.cast(SampledNetwork, peek.network) if is_known else None
    others = starts_from_run(peek.start_from)
    found, likelihood = ({}, None) if others is None else chains_of_members(others)
    if network is None and others is not None:
        network = found.get("network", "mlp")  # of which members are
    recipe = preset_sampling(peek.data, peek.kernel, network, stream=peek.stream)
    if found.get("network", network) != network:
        return recipe  # the network was typed, and is another
    sampling = dataclasses.replace(recipe.sampling, **found)
    recipe = dataclasses.replace(recipe, sampling=sampling)
    if not found or likelihood is None:
        return recipe
    return dataclasses.replace(recipe, likelihood=likelihood)


def _check_resume(
    given: Train | Sample, default: Train | Sample, *, is_plain: bool
) -> None:
    """A run that goes on keeps its own options: refuse new ones.

    Told their defaults, they would be taken for nothing: it is plain without any.
    """
    # How it is carried out is no part of it.
    how = {"mesh": None, "several": ALONE, "json": False}
    if not is_plain or dataclasses.replace(given, resume=None, **how) != default:
        raise UsageError(
            f"--resume {given.resume} goes on with the options of that run: leave the "
            "others out."
        )


def _elsewhere(name: str, commands: Mapping[str, type]) -> str:
    """What may have been meant, in brackets; empty for anything else."""
    said = _ELSEWHERE.get(name)
    return nearest(name, commands) if said is None else f" ({said})"


def _told(args: Sequence[str], command: type) -> set[str]:
    """A command's options among the arguments, but for how it is carried out."""
    names = {arg.partition("=")[0].replace("_", "-") for arg in args}
    how = {"--resume", "--mesh", "--json", *flags_of(Several)}
    return names & set(flags_of(command)) - how


def _given(args: Sequence[str], recipe: Recipe | SampleRecipe) -> tuple[str, ...]:
    """Names of the recipe's options among the arguments."""
    names = {arg.partition("=")[0].replace("_", "-") for arg in args}
    parts = (getattr(recipe, field.name) for field in dataclasses.fields(recipe))
    options = (field.name for part in parts for field in dataclasses.fields(part))
    return tuple(n for n in options if names & {flag(n), flag(f"no_{n}")})


def _peek(args: Sequence[str]) -> _Peek:
    """Those that decide defaults among the arguments, in any order."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            peek, _ = tyro.cli(
                _Peek, args=list(args), return_unknown_args=True, add_help=False
            )
    except SystemExit:
        return _Peek()  # the whole parse says what is wrong
    return peek
