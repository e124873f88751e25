"""Sentences that name options, which a program and its users spell differently."""

import string
from collections.abc import Callable
from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option among the values of a `Sentence`, where its name is not fixed.

    Attributes:
        name: of its field.
    """

    name: str


class Choice(NamedTuple):
    """What to write among the values of a `Sentence`, where code and flags differ.

    Attributes:
        code: as a program writes it: "`Heun()`".
        template: of the options, with their values, on a command line: "{solver} heun".
    """

    code: str
    template: str


class Sentence(str):
    """A text that names options: as `arguments` here, as --flags on a command line.

    Args:
        template: as `str.format` takes it, with `{name}` for an option and `{}` for
            each value.
        values: numbers, texts, an `Option`, a `Choice`, or another `Sentence`.

    Example:
        ```python
        >>> sentence = Sentence("{batch_size} must be positive, got {}.", 0)
        >>> print(sentence)
        `batch_size` must be positive, got 0.
        >>> print(sentence.spelt("--{}".format))
        --batch_size must be positive, got 0.
        >>> sentence = Sentence("Use {}.", Choice("`Heun()`", "{solver} heun"))
        >>> print(sentence, sentence.spelt("--{}".format))
        Use `Heun()`. Use --solver heun.

        ```
    """

    template: str
    values: tuple[Any, ...]

    def __new__(cls, template: str, *values: Any) -> "Sentence":
        self = str.__new__(cls, _filled(template, values, None))
        self.template, self.values = template, values
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.template, *self.values)  # for copies

    def spelt(self, spell: Callable[[str], str]) -> str:
        """The text with its options in another spelling.

        Args:
            spell: from the name of an option's field.
        """
        return _filled(self.template, self.values, spell)


class OptionError(ValueError):
    """Options that cannot be, or cannot be together.

    Args:
        template: of a `Sentence`.
        values: of its places: numbers, texts, an `Option`, or another `Sentence`.
    """

    def __init__(self, template: str, *values: Any):
        self.sentence = Sentence(template, *values)
        ValueError.__init__(self, self.sentence)

    def __reduce__(self) -> tuple[Any, ...]:
        # For copies: an error's own are of its text, which is no template.
        made_of = (self.sentence.template, *self.sentence.values)
        return type(self), made_of, self.__dict__


def does_nothing(option: str, choice: str, chosen: str) -> OptionError:
    """That an option is read only where another has another value.

    Args:
        option: that would be passed over.
        choice: the other one.
        chosen: its value.
    """
    return OptionError(
        "{} does nothing for {} {}: leave it out.",
        Option(option),
        Option(choice),
        chosen,
    )


class _Options(dict[str, str]):
    """Every name there is, spelled."""

    def __init__(self, spell: Callable[[str], str]):
        self.spell = spell

    def __missing__(self, name: str) -> str:
        return self.spell(name)


def _filled(
    template: str, values: tuple[Any, ...], spell: Callable[[str], str] | None
) -> str:
    """The text; without a spelling, as a program writes it."""
    in_code = "`{}`".format

    def said(value: Any) -> Any:
        if isinstance(value, Option):
            return (in_code if spell is None else spell)(value.name)
        if isinstance(value, Choice):
            return value.code if spell is None else _filled(value.template, (), spell)
        if isinstance(value, Sentence) and spell is not None:
            return value.spelt(spell)
        return value

    spelled = [said(value) for value in values]
    options = _Options(in_code if spell is None else spell)
    return string.Formatter().vformat(template, spelled, options)
