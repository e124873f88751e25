"""Arguments to a command."""

import contextlib
import dataclasses
import io
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import tyro

from ..recipe import (
    KernelName,
    ModelName,
    OptimiserName,
    PresetName,
    Recipe,
    SampledNetwork,
    SampleRecipe,
    check_numbers,
    default_model,
    preset_recipe,
    preset_sampling,
)
from ._sample import Sample
from ._train import Train
from ._usage import UsageError, speak


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
    epochs: int | None = None
    steps: int | None = None
    num_members: int | None = None


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
    if args[0] not in commands and not args[0].startswith("-"):
        raise UsageError(
            f"there is no command {args[0]!r}: give one of {', '.join(commands)}."
        )
    peek = _peek(args[1:]) if args[0] in ("train", "sample") else _Peek()
    model = peek.model or default_model(peek.data, time=peek.time)
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
    choices = tuple(
        Annotated[
            command,
            tyro.conf.subcommand(name, default=defaults[command])
            if command in defaults
            else tyro.conf.subcommand(name),
        ]
        for name, command in commands.items()
    )
    # Known at run time only, hence no `|`.
    command = speak(
        typing.Union[choices],  # noqa: UP007
        args=list(args),
        prog="ornstein",
        description="Bayesian deep learning by stochastic dynamics.",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    if isinstance(command, Train | Sample) and command.resume is not None:
        _check_resume(command, defaults[type(command)])
    check_numbers(command)
    return command


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
    """Defaults of `sample`; the whole parse refuses a network that it does not take."""
    is_known = peek.network in typing.get_args(SampledNetwork)
    network = typing.cast(SampledNetwork, peek.network) if is_known else None
    return preset_sampling(peek.data, peek.kernel, network)


def _check_resume(given: Train | Sample, default: Train | Sample) -> None:
    """A run that goes on keeps its own options: refuse new ones."""
    if dataclasses.replace(given, resume=None, json=False) != default:
        raise UsageError(
            f"--resume {given.resume} goes on with the options of that run: leave the "
            "others out."
        )


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
