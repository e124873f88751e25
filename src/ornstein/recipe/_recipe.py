"""Every choice of a run, as JSON: what the command line fills in and a run keeps."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import numpy as np

from .._sentence import Option, OptionError
from .options import (
    DataOptions,
    ImplicitOptions,
    LatentOptions,
    LikelihoodOptions,
    ModelOptions,
    NetworkOptions,
    PosthocOptions,
    SeriesOptions,
    SolverOptions,
    TrainingOptions,
    WeightOptions,
)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Every choice of a run.

    Attributes:
        data: what is learned from.
        series: sequences, and how they are tested.
        model: the random function.
        network: the plain network inside it.
        implicit: the noise on its nodes.
        weights: how a plain network becomes random.
        posthoc: what is made of it once it is trained.
        latent: the latent path of each sequence.
        likelihood: what an output says about a target.
        solver: how the equations are solved.
        training: how it is trained and tested.
    """

    data: DataOptions = dataclasses.field(default_factory=DataOptions)
    series: SeriesOptions = dataclasses.field(default_factory=SeriesOptions)
    model: ModelOptions = dataclasses.field(default_factory=ModelOptions)
    network: NetworkOptions = dataclasses.field(default_factory=NetworkOptions)
    implicit: ImplicitOptions = dataclasses.field(default_factory=ImplicitOptions)
    weights: WeightOptions = dataclasses.field(default_factory=WeightOptions)
    posthoc: PosthocOptions = dataclasses.field(default_factory=PosthocOptions)
    latent: LatentOptions = dataclasses.field(default_factory=LatentOptions)
    likelihood: LikelihoodOptions = dataclasses.field(default_factory=LikelihoodOptions)
    solver: SolverOptions = dataclasses.field(default_factory=SolverOptions)
    training: TrainingOptions = dataclasses.field(default_factory=TrainingOptions)

    def changed(self, **changes: Any) -> "Recipe":
        """The recipe with some options changed, each by its own name.

        Of `epochs` and `steps` the one that is given takes the place of the other.

        Raises:
            ValueError: for a name that no option has.
        """
        for given, other in (("epochs", "steps"), ("steps", "epochs")):
            if changes.get(given) is not None:
                changes = {other: None} | changes
        return changed(self, changes, command="train")

    def to_json(self) -> dict[str, Any]:
        """As nested JSON objects."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Any) -> "Recipe":
        """What `to_json` wrote; parts that it does not have keep their defaults.

        Raises:
            ValueError: for something else.
        """
        fields = {f.name: f for f in dataclasses.fields(cls)}
        if not isinstance(saved, Mapping) or not {"data"} <= set(saved) <= set(fields):
            raise ValueError(
                f"A recipe has the parts {', '.join(fields)}, not "
                f"{', '.join(saved) if isinstance(saved, Mapping) else saved!r}: give "
                "the folder that this version of `ornstein train` wrote."
            )
        types = typing.get_type_hints(cls)
        return cls(**{name: read_part(types[name], saved[name]) for name in saved})


_Options = TypeVar("_Options")


def changed(recipe: _Options, changes: Mapping[str, Any], *, command: str) -> _Options:
    """A recipe of several parts with some options changed, each by its own name.

    Args:
        recipe: a dataclass of dataclasses.
        changes: by option.
        command: whose options these are, for the message.

    Raises:
        ValueError: for a name that no option has, or a value that it cannot have.
    """
    rest, parts = dict(changes), {}
    for part in dataclasses.fields(recipe):  # type: ignore[arg-type]
        options = getattr(recipe, part.name)
        names = {f.name for f in dataclasses.fields(options)} & set(rest)
        own = {name: rest.pop(name) for name in names}
        parts[part.name] = read_part(type(options), vars(options) | own)
    if rest:
        raise ValueError(
            f"There is no option {sorted(rest)[0]!r}: `ornstein {command} --help` "
            "lists them."
        )
    return type(recipe)(**parts)


def read_part(part: type, saved: Any) -> Any:
    """One part of a recipe; options that it does not name keep their defaults."""
    types = typing.get_type_hints(part)
    if not isinstance(saved, Mapping):
        raise ValueError(
            f"{part.__name__} of a recipe are {saved!r}, but must be an object of "
            "options: train the run again."
        )
    values = {}
    for name, value in saved.items():
        if name not in types:
            raise ValueError(
                f"There is no option {name!r}: the run is of another version of "
                "ornstein; train it again."
            )
        value = _plain(value)
        if not _is_of(value, types[name]):
            raise ValueError(
                f"`{name}` is {value!r}, but must be {_said(types[name])}."
            )
        values[name] = _as_option(value, types[name])
    return part(**values)


def _plain(value: Any) -> Any:
    """Python's own number for one of NumPy's, of which searches make their grids."""
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value from JSON is of the type of an option."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        is_several = isinstance(value, list | tuple)
        return is_several and all(_is_of(entry, arguments[0]) for entry in value)
    if arguments:
        return any(_is_of(value, argument) for argument in arguments)
    if isinstance(value, bool):
        return hint is bool
    if hint is float and isinstance(value, int):
        return abs(value) < 2**1000
    return isinstance(value, hint)


def _as_option(value: Any, hint: Any) -> Any:
    """A value as an option has it: tuples for lists, and 1.0 for a number's 1."""
    if isinstance(value, list):
        (of, *_) = typing.get_args(hint)
        return tuple(_as_option(entry, of) for entry in value)
    is_number = hint is float or float in typing.get_args(hint)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_number and is_whole else value


def _said(hint: Any) -> str:
    """An option's type, as a sentence names it."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if typing.get_origin(hint) is tuple:
        return "a list"
    if arguments:
        return " or ".join(map(_said, arguments))
    names = {float: "a number", int: "a whole number", str: "a text", bool: "yes or no"}
    return names.get(hint, "null")


def sizes(text: str, option: str) -> tuple[int, ...]:
    """The numbers of `2-128-2`; none of `none`.

    Args:
        text: what was given.
        option: whose text it is, for messages.
    """
    if text == "none":
        return ()
    parts = text.split("-")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(
            "{} is {!r}, but must be positive whole numbers joined by hyphens, such as "
            "2-128-2.",
            Option(option),
            text,
        )
    return tuple(int(part) for part in parts)
