"""Numbers as people read them."""

import math
from typing import TypeAlias

import numpy as np

Number: TypeAlias = float | int | np.number
"""As JSON and arrays have them."""

_MINUS = "\N{MINUS SIGN}"


def number(value: Number | None, digits: int = 4) -> str:
    """A number with so many digits that say something; a dash where there is none.

    Args:
        value: any.
        digits: how many.
    """
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    if value == int(value) and abs(value) < 1e6:
        return _signed(f"{value:,.0f}")
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size > 6:
        return _signed(f"{value:.{digits - 1}g}")
    return _signed(f"{value:,.{max(digits - 1 - size, 0)}f}")


def with_error(value: Number | None, error: Number | None) -> tuple[str, str]:
    """A number to the second digit of its standard error, and that.

    Args:
        value: any.
        error: its standard error, if that is known: of one row it is NaN.
    """
    if error is None or not math.isfinite(error):
        return number(value), ""
    if value is None or error <= 0:
        return number(value), number(error, 2)
    places = max(1 - math.floor(math.log10(error)), 0)
    if places > 8 or not math.isfinite(value):
        return number(value), number(error, 2)
    return _signed(f"{value:,.{places}f}"), f"{error:,.{places}f}"


def percent(share: Number | None, digits: int = 1) -> str:
    """A share of one as percent.

    Args:
        share: from 0 to 1.
        digits: behind the point.
    """
    if share is None or not math.isfinite(share):
        return "\N{EN DASH}"
    return f"{_signed(f'{100 * share:.{digits}f}')}\N{NO-BREAK SPACE}%"


def count(value: int, what: str) -> str:
    """A number of things: "1 row", "2,000 rows".

    Args:
        value: how many.
        what: one of them.
    """
    plural = what if value == 1 else f"{what}{'es' if what.endswith('ss') else 's'}"
    return f"{value:,} {plural}"


def _signed(text: str) -> str:
    return text.replace("-", _MINUS)
