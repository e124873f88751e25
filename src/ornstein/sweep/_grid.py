"""The grid of a sweep: every combination of some options' values."""

import dataclasses
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from .._sentence import Option, OptionError

MAX_RUNS = 10_000
"""Of one grid: more is a typing error sooner than a wish."""

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_MAX_NAME = 100
"""Of a folder: 255 bytes are the file system's, and paths have ends of their own."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One combination, which is one run.

    Attributes:
        settings: options, by the names of their fields, with values as they were typed.
    """

    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        """A folder's name, which is no other combination's of the same options."""
        pairs = [f"{option}={value}" for option, value in self.settings.items()]
        plain = [re.sub(r"[^A-Za-z0-9.+-]+", "-", v) for v in self.settings.values()]
        text = "_".join(map("{}={}".format, self.settings, plain))
        if text == "_".join(pairs) and len(text) <= _MAX_NAME:
            return text
        whole = json.dumps(dict(self.settings)).encode()
        return f"{text[:_MAX_NAME]}~{hashlib.sha256(whole).hexdigest()[:8]}"


@dataclasses.dataclass(frozen=True)
class Grid:
    """Options and the values that each is to have.

    Attributes:
        values: of each option by the name of its field, as they were typed.

    Example:
        ```python
        >>> grid = Grid.parse(["seed=0..2", "width=16,32"])
        >>> len(grid)
        6
        >>> next(iter(grid)).name
        'seed=0_width=16'

        ```
    """

    values: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Grid":
        """A grid as the command line has it.

        Args:
            texts: of each option one: `seed=0..4` (both ends count) or `lr=1e-3,3e-3`.

        Raises:
            ValueError: for what is no grid of two runs or more.
        """
        values: dict[str, tuple[str, ...]] = {}
        for text in texts:
            option, is_given, listed = text.partition("=")
            option = option.strip().lstrip("-").replace("-", "_")
            if not option or not is_given:
                raise OptionError(
                    "{over} {} has no values: write an option and its values, such as "
                    "seed=0..4 or width=16,32.",
                    text,
                )
            if option in values:
                raise OptionError(
                    "{over} has {} twice: give all its values at once.", Option(option)
                )
            values[option] = tuple(_values(text, listed))
        grid = cls(values)
        if len(grid) < 2:
            raise OptionError(
                "{over} makes a grid of one run: give an option two values or more, or "
                "run the command by itself.",
            )
        if len(grid) > MAX_RUNS:
            raise OptionError(
                "{over} makes a grid of {:,} runs, and {:,} are the most: give fewer "
                "values.",
                len(grid),
                MAX_RUNS,
            )
        return grid

    def __len__(self) -> int:
        return math.prod(map(len, self.values.values()))

    def __iter__(self) -> Iterator[Cell]:
        """The runs: the last option's values change first."""
        for values in itertools.product(*self.values.values()):
            yield Cell(dict(zip(self.values, values, strict=True)))

    def extended(self, other: "Grid") -> "Grid | None":
        """This grid with the further values of another; `None` if it lacks some.

        Args:
            other: of the same options, in any order.
        """
        if set(self.values) != set(other.values):
            return None
        joined = {}
        for name, ours in self.values.items():
            # 1e-3 and 0.001 are one value, under the name that it had first.
            known = {typed(value): value for value in ours}
            theirs = {typed(value): value for value in other.values[name]}
            if set(known) - set(theirs):
                return None
            joined[name] = tuple((theirs | known)[key] for key in known | theirs)
        return Grid(joined)


def _values(text: str, listed: str) -> Iterator[str]:
    seen = set()
    for part in listed.split(","):
        for value in _expanded(text, part.strip()):
            if typed(value) in seen:
                raise OptionError("{over} {} has {} twice: give it once.", text, value)
            seen.add(typed(value))
            yield value


def _expanded(text: str, part: str) -> Iterable[str]:
    if not part:
        raise OptionError(
            "{over} {} has an empty value: separate values by single commas.", text
        )
    found = _RANGE.fullmatch(part)
    if found is None:
        return (part,)
    first, last = map(int, found.groups())
    if last < first:
        raise OptionError(
            "{over} {} has an empty range: write {}..{}, the smaller number first.",
            text,
            last,
            first,
        )
    if last - first >= MAX_RUNS:
        raise OptionError(
            "{over} {} has {:,} values, and {:,} are the most: give fewer.",
            text,
            last - first + 1,
            MAX_RUNS,
        )
    return map(str, range(first, last + 1))


def typed(value: str) -> int | float | str:
    """A setting as a number, if it is one.

    Args:
        value: as it was typed.
    """
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        if math.isfinite(number) and "_" not in value:
            return number
    return value
