"""Which of several runs to take, and how sure that is."""

import math
from collections.abc import Sequence

import numpy as np

from ..page import Html, tag, with_error
from ..rows import JudgedRows
from ._base import Sheet
from ._comparison import losses, paired, unit_of, why_not_paired

_ERRORS = 2.0
"""Standard errors from which a paired difference counts."""


def choice(sheets: Sequence[Sheet], names: Sequence[str]) -> Html:
    """The run with the lowest NLL, if the same test rows tell it from all others.

    Args:
        sheets: of two runs or more.
        names: of the runs, each once.
    """
    text = _why_not_told(sheets, names) or _told(sheets, names)
    entry = tag("div", tag("dt", "Which to take"), tag("dd", text))
    return tag("dl", entry, class_="lead")


def _why_not_told(sheets: Sequence[Sheet], names: Sequence[str]) -> str:
    for name, sheet in zip(names[1:], sheets[1:], strict=True):
        reason = why_not_paired(sheets[0], sheet)
        if reason:
            return (
                f"That cannot be told from these folders: {name} and {names[0]} are "
                f"{reason}. Train them on the same rows, and judge them on the same."
            )
    if not all(np.all(np.isfinite(_nll(sheet))) for sheet in sheets):
        return (
            "That cannot be told from these folders: a test row has no finite NLL, so "
            "that differences have no error. Look at the tables below."
        )
    return ""


def _told(sheets: Sequence[Sheet], names: Sequence[str]) -> str:
    nlls = [paired(_nll(sheet), _rows(sheet))[0] for sheet in sheets]
    best, *others = map(int, np.argsort(nlls, kind="stable"))
    rows = _rows(sheets[best])
    gains = {i: paired(_nll(sheets[i]) - _nll(sheets[best]), rows) for i in others}
    alike = [i for i in others if not _is_sure(*gains[i])]
    num_rows = len(rows.index)
    said = [
        f"{names[i]} by {_nats(*gains[i])} a {unit_of(sheets[best])}"
        + (
            f" ({gains[i][0] / gains[i][1]:.1f} standard errors)"
            if i not in alike
            else ""
        )
        for i in others
    ]
    gained = f"on {num_rows:,} test rows that all have, its NLL is below that of "
    gained += " and ".join(said)
    if not alike:
        parts = [f"{names[best]}: {gained}", *_but(sheets, names, best, others)]
        return ". ".join(parts) + "."
    which = " or ".join(names[i] for i in sorted([best, *alike]))
    parts = [f"{which}: these test rows cannot tell"]
    parts[0] += f". Lowest is {names[best]}: {gained}"
    if len(alike) == 1:
        parts += _more_rows(*gains[alike[0]], num_rows)
    parts += _but(sheets, names, best, others)
    parts.append("Until more do, take the one that costs less, or has fewer faults")
    return ". ".join(parts) + "."


def _is_sure(gain: float, error: float) -> bool:
    """Whether a gain counts; one of an unknown error, or of none, does not."""
    return error > 0 and gain >= _ERRORS * error


def _nats(gain: float, error: float) -> str:
    shown, said = with_error(gain, error)
    return f"{shown} \N{PLUS-MINUS SIGN} {said} nats" if said else f"{shown} nats"


def _more_rows(gain: float, error: float, num_rows: int) -> list[str]:
    """How many rows would tell, if the difference is what it is here."""
    if not (gain > 0 and math.isfinite(error) and error > 0):
        return []
    needed = num_rows * (_ERRORS * error / gain) ** 2
    if needed > 1e9:
        return []
    digits = 10 ** max(math.floor(math.log10(needed)) - 1, 0)
    return [f"If it is as large as here, about {_up(needed, digits):,} rows would tell"]


def _up(value: float, digits: int) -> int:
    return math.ceil(round(value / digits, 6)) * digits


def _but(
    sheets: Sequence[Sheet], names: Sequence[str], best: int, others: Sequence[int]
) -> list[str]:
    """What speaks against the best: another that errs less, faults, other seeds."""
    said, mine = [], losses(_rows(sheets[best]))
    of = "share wrong" if _rows(sheets[best]).kind == "classes" else "squared error"
    for i in others:
        gain, error = paired(mine - losses(_rows(sheets[i])), _rows(sheets[i]))
        if _is_sure(gain, error):
            shown, its = with_error(gain, error)
            said.append(
                f"But the {of} of {names[i]} is lower, by {shown} \N{PLUS-MINUS SIGN} "
                f"{its}"
            )
    faults = sheets[best].record.result.get("diagnosis")
    if faults:
        called = ", ".join(str(fault.get("name")) for fault in faults)
        said.append(f"The diagnosis found faults with {names[best]} ({called})")
    said.append("Another seed or split is not in these errors")
    return said


def _nll(sheet: Sheet) -> np.ndarray:
    return -_rows(sheet).columns["log_prob"].astype(float)


def _rows(sheet: Sheet) -> JudgedRows:
    assert sheet.rows is not None
    return sheet.rows
