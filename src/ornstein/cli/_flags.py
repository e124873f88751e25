"""Options as the command line spells them."""

import dataclasses
import typing
from typing import Any

import tyro

from .._sentence import Sentence


def flag(option: str) -> str:
    """`--batch-size` for `batch_size`."""
    return f"--{option.replace('_', '-')}"


def flagged(text: str) -> str:
    """A text with the options that it names as --flags; others as they are."""
    return text.spelt(flag) if isinstance(text, Sentence) else text


def said(error: BaseException) -> str:
    """What an error says, likewise."""
    sentence = error.args[0] if len(error.args) == 1 else None
    return flagged(sentence) if isinstance(sentence, Sentence) else str(error)


def flags_of(command: type) -> list[str]:
    """Every flag that a command takes and shows, in the order of its options.

    Args:
        command: a dataclass of options, or of such dataclasses.
    """
    flags = []
    hints = typing.get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        kind, markers = _unwrapped(hints[field.name])
        if dataclasses.is_dataclass(kind):
            flags += flags_of(typing.cast(type, kind))
        elif not {tyro.conf.Positional, tyro.conf.Suppress} & set(markers):
            flags.append(flag(field.name))
            if kind is bool and tyro.conf.FlagCreatePairsOff not in markers:
                flags.append(flag(f"no_{field.name}"))
    return flags


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what it is annotated with."""
    if typing.get_origin(hint) is typing.Annotated:
        kind, *markers = typing.get_args(hint)
        return kind, tuple(markers)
    return hint, ()
