"""One sentence: does a posterior do anything?"""

from collections.abc import Sequence

import numpy as np

from ._audit_result import Relative, Verdict

_ERRORS = 3.0
_LEAST = 1e-3
"""Nats a row. A thousandth is a tenth of a percent of each row's probability: less than
draws of a prediction, or another seed of the training, make."""
_MOST_OF_A_TWIN = 10.0
"""Nats a row. A twin that is worse by more is broken (its noise scale collapsed, say),
and being better than it says nothing."""
_MOST = 0.05
"""Nats a row. Rows and draws that leave room for more cannot say that a part does
nothing."""


def judge(relatives: Sequence[Relative]) -> tuple[Verdict, str]:
    """The verdict of `audit`, and the sentence with its reasons.

    Args:
        relatives: what a fit was compared with: with parts put back (all of them last),
            silenced, and trained twins.
    """
    twins = [r for r in relatives if r.kind == "twin"]
    put_back = [r for r in relatives if r.kind == "put back"]
    if not put_back:  # a posterior of no known prior
        put_back = [r for r in relatives if r.kind == "silenced"]
    moved = [r for r in put_back if _is_worse(r) or _is_better(r)]
    is_fair = not any(map(is_broken, twins))
    is_ahead = bool(twins) and is_fair and all(map(_is_worse, twins))
    unknown = [r for r in put_back if not _is_within(r)]
    if not moved and not is_ahead and not unknown:
        widest = max(put_back, key=lambda r: abs(r.settled_gain))
        said = [f"{_with(widest)} its NLL is {_compared(widest)}"]
        said += [f"the twin {twin.name} is {_compared(twin)}" for twin in twins]
        if twins and not any(map(_is_worse, twins)):
            said.append("a twin without it predicts as well and costs less")
        return "does nothing", f"This posterior does nothing: {'; '.join(said)}."
    if is_ahead and _is_worse(put_back[-1]):
        said = [f"{_shown(r)} better than {_called(r)}" for r in (*twins, put_back[-1])]
        return "does", f"This posterior does something: its NLL is {', '.join(said)}."
    said = [f"{_with(r)} its NLL is {_compared(r)}" for r in moved]
    if not moved and not unknown:
        said.append("no part of it does anything")
    if not moved and unknown:
        said += [f"{_with(r)} its NLL is {_compared(r)}" for r in unknown]
        widest = max(unknown, key=lambda r: np.nan_to_num(r.gain_se, nan=np.inf))
        few = "rows" if widest.gain_se**2 > 2 * widest.draws_se**2 else "draws"
        said.append(f"which these {few} are too few to tell from nothing")
    said += [f"the twin {twin.name} is {_compared(twin)}" for twin in twins]
    if not is_fair:
        said.append(
            "a twin so far behind is broken, and no fair comparison (of few rows a "
            "noise scale that is learned with points vanishes)"
        )
        others = [r for r in relatives if r.kind == "rescaled"]
        said += [f"the one {r.name} is {_compared(r)}" for r in others]
        said.append("hold the scale, or compare on held-out rows with an ensemble")
    if any(map(_is_better, twins)):
        said.append("take the one that is better, or train this one for longer")
    if not twins:
        said.append("no twins were trained, and whether they do as well is not known")
    return "in between", f"What this posterior does is in between: {'; '.join(said)}."


def is_broken(twin: Relative) -> bool:
    """Whether a twin's NLL is so far behind that being better says nothing.

    Args:
        twin: a trained one.
    """
    return not twin.settled_gain < _MOST_OF_A_TWIN


def _is_within(relative: Relative) -> bool:
    """Whether there is no room for more than nothing; of NaN there is."""
    return abs(relative.settled_gain) + _ERRORS * relative.gain_se <= _MOST


def _is_worse(relative: Relative) -> bool:
    return relative.settled_gain >= max(_ERRORS * relative.gain_se, _LEAST)


def _is_better(relative: Relative) -> bool:
    return -relative.settled_gain >= max(_ERRORS * relative.gain_se, _LEAST)


def _compared(relative: Relative) -> str:
    shown = f"{abs(relative.settled_gain):.2g} ± {relative.gain_se:.1g} nats a row"
    if _is_worse(relative):
        return f"{shown} worse"
    if _is_better(relative):
        return f"{shown} better"
    return f"no different ({_shown(relative)})"


def _shown(relative: Relative) -> str:
    return f"{relative.settled_gain:.2g} ± {relative.gain_se:.1g} nats a row"


def _called(relative: Relative) -> str:
    if relative.kind == "twin":
        return f"the twin {relative.name}"
    return f"its own {_with(relative)}"


def _with(relative: Relative) -> str:
    """A change to the fit: `with the path at its prior`."""
    if relative.kind == "silenced":
        return relative.name
    return f"with {relative.name}"
