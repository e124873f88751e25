"""What a command takes: what `--help` shows, and what is wrong with arguments."""

import contextlib
import dataclasses
import difflib
import io
import re
import typing
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Any

import tyro

from ..recipe import Recipe, SampleRecipe, unread_options
from ._flags import flags_of

# tyro tells what is wrong in a frame that it prints, and nowhere else that may be
# relied on: its errors with fields are in a private module, whose first lines say that
# any release may change it. So the frame is read: what stands around a line, and
# instead of one; of ASCII where standard output is not UTF-8.
_FRAME = re.compile(r"^\s*[╭╰│|+]|[╮╯│|+]\s*$")
_RULE = re.compile(r"[\s─-]*")

_CHOICE = re.compile(
    r"invalid choice '(.*)' for argument '(\S+)'\. Expected one of \((.*)\)"
)
_NO_VALUE = re.compile(r"Missing value for argument '(\S+)'")
_NO_TYPE = re.compile(
    r"Error parsing (\S+): no type matching (\S+) could be .* from \[(.*)\]"
)
_NO_NUMBER = re.compile(
    r"Error parsing (\S+): (could not convert|invalid literal).*: ('.*')"
)
_MISSING = re.compile(r"Missing from ornstein \w+: (.*)")
_KINDS = {"FLOAT": "a number", "INT": "a whole number", "{None}": "None"}


class UsageError(ValueError):
    """Arguments that no command takes."""


def speak(
    kind: Any, commands: Mapping[str, type], *, args: Sequence[str], **kwargs: Any
) -> Any:
    """`tyro.cli` with its errors as one sentence rather than a frame of lines.

    Args:
        kind: what the arguments are of.
        commands: dataclasses by name.
        args: that were given, a command first.
        kwargs: of `tyro.cli`.

    Raises:
        UsageError: for arguments that cannot be understood.
    """
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(kind, args=list(args), **kwargs)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        said = _without_frame(errors.getvalue())
        raise UsageError(_sentence(said, commands, args)) from None


def nearest(name: str, choices: Collection[str]) -> str:
    """`" (did you mean …?)"`, or nothing where no choice resembles `name`.

    Args:
        name: as it was given.
        choices: that there are.
    """
    bare = {choice.lstrip("-"): choice for choice in choices}
    found = difflib.get_close_matches(name.lstrip("-"), bare, n=1)
    return f" (did you mean {bare[found[0]]}?)" if found else ""


def _is_name(word: str) -> bool:
    """Whether a word is a flag, or stands for a value."""
    return word.startswith("-") or word.isupper()


def _without_frame(frame: str) -> str:
    """What a frame of tyro's says, without its title, drawing and advice."""
    said = []
    for line in frame.splitlines()[1:]:
        text = _FRAME.sub("", line).strip()
        text = "" if _RULE.fullmatch(text) else text
        if said and (not text or text.startswith(("Got errors", "For full"))):
            break
        said.append(text)
    return re.sub(r"\s+", " ", " ".join(said)).strip().rstrip(".")


def _sentence(said: str, commands: Mapping[str, type], args: Sequence[str]) -> str:
    """What tyro said, with the nearest of what there is."""
    command = args[0] if args and args[0] in commands else None
    whole = "ornstein" if command is None else f"ornstein {command}"
    advice = f"`{whole} --help` lists what each option takes"
    if said.startswith("Unrecognized"):
        return _unknown(said, commands, command)
    if found := _CHOICE.search(said):
        given, option, listed = found.groups()
        choices = re.findall(r"'([^']*)'", listed)
        option = option if option.startswith("-") else option.upper()
        return (
            f"{option} takes no {given!r}{nearest(given, choices)}: give one of "
            f"{', '.join(choices)}."
        )
    if found := _NO_VALUE.search(said):
        return f"{found[1]} needs a value: {advice}."
    if found := _NO_TYPE.search(said):
        option, kinds, given = found.groups()
        known = [_KINDS.get(kind, kind) for kind in kinds.split("|")]
        return f"{option} takes {' or '.join(reversed(known))}, not {given}: {advice}."
    if found := _NO_NUMBER.search(said):
        option, how, given = found.groups()
        kind = _KINDS["FLOAT" if how == "could not convert" else "INT"]
        return f"{option} takes {kind}, not {given}: {advice}."
    if found := _MISSING.search(said):
        missing = [text.split() for text in found[1].split(" (required)") if text]
        names = [" ".join(takewhile(_is_name, words)) for words in missing]
        return f"`{whole}` needs {' and '.join(filter(None, names))}: {advice}."
    return f"{said}: {advice}."


def _unknown(said: str, commands: Mapping[str, type], command: str | None) -> str:
    """That an option is none, or one of another command."""
    listed = re.findall(r"(\S+) \(applied to", said) or said.partition(": ")[2].split(
        ", "
    )
    flag = next((text for text in listed if re.match(r"--?[a-zA-Z]", text)), listed[0])
    flag = flag.partition("=")[0]
    if command is None:
        return (
            f"there is no option {flag}{nearest(flag, ('--help', '--version'))}: "
            f"give a command, one of {', '.join(commands)}."
        )
    lists = f"`ornstein {command} --help-all` lists its options"
    if not flag.startswith("-"):
        return f"`ornstein {command}` has no place for {flag!r}: {lists}."
    if flag == "--kernel" and command == "train":
        return (
            "--kernel is of `ornstein sample`, and so are the chains' other options: "
            "give that command the same --data, or leave it out for chains of a preset."
        )
    others = [name for name, kind in commands.items() if flag in flags_of(kind)]
    if others:
        names = " and ".join(f"`ornstein {name}`" for name in others)
        return f"{flag} is an option of {names}, not of `ornstein {command}`: {lists}."
    guess = nearest(flag, flags_of(commands[command]))
    return f"`ornstein {command}` has no option {flag}{guess}: {lists}."


HELP, HELP_ALL = ("-h", "--help"), "--help-all"
"""What asks for some of the options, and for all."""


class Shown(typing.NamedTuple):
    """A command as its help shows it.

    Attributes:
        default: of a dataclass like the command's, with the rest of its options hidden.
        description: of the command, and of what is not shown.
    """

    default: Any
    description: str


def shown(command: Any, recipe: Recipe | SampleRecipe) -> Shown:
    """A command without the options that nothing would read.

    Args:
        command: with its defaults, whose recipe is shown.
        recipe: the same, with the options that were given and decide what is read.
    """
    unread = unread_options(recipe)
    default = _without(command, unread)
    number, of_all = _num_options(default), _num_options(command)
    what = recipe.data.data
    chosen = (
        f"--kernel {recipe.sampling.kernel}"
        if isinstance(recipe, SampleRecipe)
        else f"--model {recipe.model.model}"
    )
    note = (
        f"Shown are the {number} of {of_all} options that {chosen} reads on {what}: "
        f"give another beside --help to see its own, or {HELP_ALL} to see every one."
    )
    text = " ".join((type(command).__doc__ or "").partition("Attributes:")[0].split())
    return Shown(default, f"{text}\n\n{note}")


def _without(value: Any, unread: Collection[str]) -> Any:
    """A dataclass like that of `value`, with some fields hidden, and its value."""
    kind, fields, values = type(value), [], {}
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(value):
        name, hint = field.name, hints[field.name]
        own = getattr(value, name)
        if dataclasses.is_dataclass(own):
            own = _without(own, unread)
            markers = typing.get_args(hint)[1:] if _is_annotated(hint) else ()
            hint = Annotated[(type(own), *(markers or (None,)))]
        elif name in unread:
            hint = Annotated[hint, tyro.conf.Suppress]
        values[name] = own
        fields.append((name, hint, dataclasses.field(default=own)))
    namespace = {"__doc__": kind.__doc__}
    made = dataclasses.make_dataclass(
        kind.__name__, fields, namespace=namespace, frozen=True
    )
    return made(**values)


def _is_annotated(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated


def _num_options(command: Any) -> int:
    return sum(not flag.startswith("--no-") for flag in flags_of(type(command)))
