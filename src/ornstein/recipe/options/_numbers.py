"""Numbers that no option takes, whichever it is."""

import dataclasses
import math
from typing import Any

import numpy as np

from ..._sentence import Option, OptionError

MAX_COUNT = 2**31 - 1
"""Of whatever is counted in single precision's integers."""
_MAX_SEED = 2**32 - 1
_IN_DOUBLE = (
    *("time_scale", "coordinator_timeout", "interval", "effort", "fraction"),
    *("validation_fraction", "test_fraction", "gpus"),
)
"""Options that no network meets; all others are of single precision there."""
_LEAST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def check_numbers(options: Any) -> None:
    """Refuse infinity, NaN, seeds that would be others', and counts beyond int32.

    And numbers that single precision would make infinity or 0.

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
    if isinstance(number, float) and name not in _IN_DOUBLE and number != 0:
        if not _LEAST <= abs(number) <= _LARGEST:
            raise OptionError(
                "{} must be 0 or of a size from {:.2g} to {:.2g}, got {}: it would be "
                "{} in single precision.",
                option,
                _LEAST,
                _LARGEST,
                number,
                0 if abs(number) < _LEAST else "infinite",
            )
    if not isinstance(number, int) or isinstance(number, bool):
        return
    if name == "seed" and not 0 <= number <= _MAX_SEED:
        raise OptionError(
            "{} must be a whole number from 0 to {}, got {}.", option, _MAX_SEED, number
        )
    if name != "seed" and abs(number) > MAX_COUNT:
        raise OptionError("{} must be at most {}, got {}.", option, MAX_COUNT, number)
