"""Numbers that no option takes, whichever it is."""

import dataclasses
import math
from typing import Any

from ..._sentence import Option, OptionError

MAX_COUNT = 2**31 - 1
"""Of whatever is counted in single precision's integers."""
_MAX_SEED = 2**32 - 1


def check_numbers(options: Any) -> None:
    """Refuse infinity, NaN, seeds that would be others', and counts beyond int32.

    Args:
        options: a dataclass, whose parts may be dataclasses of options.

    Raises:
        ValueError: naming the option.
    """
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            check_numbers(value)
            continue
        for number in value if isinstance(value, tuple) else (value,):
            _check_number(field.name, number)


def _check_number(name: str, number: Any) -> None:
    option = Option(name)
    if isinstance(number, float) and not math.isfinite(number):
        raise OptionError("{} must be a finite number, got {}.", option, number)
    if not isinstance(number, int) or isinstance(number, bool):
        return
    if name == "seed" and not 0 <= number <= _MAX_SEED:
        raise OptionError(
            "{} must be a whole number from 0 to {}, got {}.", option, _MAX_SEED, number
        )
    if name != "seed" and abs(number) > MAX_COUNT:
        raise OptionError("{} must be at most {}, got {}.", option, MAX_COUNT, number)
