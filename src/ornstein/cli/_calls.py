"""The calls that made a run: the one that began it, and those that went on with it."""

import contextlib
import json
import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from .._files import UnreadableError, read_json, write_atomically
from ..recipe import provenance
from ..sampling import SamplingPlan
from ..train import Plan, RunFolder

_FILE = "calls.json"
_NOTED_EVERY = 30.0
"""Seconds from one writing of the file to the next: what a killed call loses."""

Call = dict[str, Any]
"""Provenance of a call, and the `date` on which it began."""


class Calls:
    """Keeps the provenance of every call in the run folder: a callback.

    The commit and the versions are those of the call's start.

    Args:
        run: the run.
        command: of this call, as it was typed.
        seed: of everything random.
        is_first: whether it begins the run: then it is entered at once. Another is
            when every check has passed.

    Raises:
        ValueError: if the file of the earlier calls is damaged.
    """

    def __init__(self, run: RunFolder, command: str, *, seed: int, is_first: bool):
        self._run = run
        self._earlier = [] if is_first else read_calls(run)
        self._origin = provenance(command, seed=seed, seconds=0.0)
        self._date = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = self._noted = time.monotonic()
        self._is_entered = False
        if is_first:
            self.note()

    def start(self, plan: Plan | SamplingPlan) -> None:
        """Every check has passed."""
        del plan
        self.note()

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Note the seconds now and then: a call may be killed."""
        del step, record
        if time.monotonic() - self._noted >= _NOTED_EVERY:
            self.note()

    def epoch(self, record: dict[str, Any]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing: judging is still to come."""

    def note(self) -> None:
        """Write the calls so far."""
        self._is_entered, self._noted = True, time.monotonic()
        content = {"calls": [*self._earlier, self._own()]}
        text = json.dumps(content, indent=2)
        write_atomically(self._run.path / _FILE, text.encode())

    def leave(self) -> None:
        """Note the seconds of a call that ends, however it does."""
        if self._is_entered:
            with contextlib.suppress(OSError):  # what ends it may be a full disk
                self.note()

    @property
    def seconds(self) -> float | None:
        """Of all calls until now; `None` where those of an earlier one are not known.

        A call that was killed counts up to half a minute less.
        """
        earlier = [None if call is None else call["seconds"] for call in self._earlier]
        total = time.monotonic() - self._started
        for seconds in earlier:
            if seconds is None:
                return None
            total += seconds
        return total

    def provenance(self) -> dict[str, Any]:
        """This call's own, with `call_seconds`, and what the run owes to others.

        `seconds` are those of all calls; `begun` is the call that began the run, `None`
        where nobody wrote it down, and `resumed` those after it, with this one.
        """
        begun, *resumed = [*self._earlier, self._own()]
        seconds, own = self.seconds, time.monotonic() - self._started
        return self._origin | {
            "seconds": None if seconds is None else round(seconds, 1),
            "call_seconds": round(own, 1),
            "begun": begun,
            "resumed": resumed,
        }

    def _own(self) -> Call:
        seconds = round(time.monotonic() - self._started, 1)
        return self._origin | {"seconds": seconds, "date": self._date}


@contextlib.contextmanager
def entered(
    run: RunFolder, command: str, *, seed: int, is_first: bool
) -> Iterator[Calls]:
    """`Calls` of a call that is this block: its seconds are noted however it ends."""
    calls = Calls(run, command, seed=seed, is_first=is_first)
    try:
        yield calls
    finally:
        calls.leave()


def read_calls(run: RunFolder) -> list[Call | None]:
    """The calls of a run until now; of one from before they were kept, `None`.

    Raises:
        ValueError: if the file is damaged.
    """
    path = run.path / _FILE
    try:
        content = read_json(path)
        calls = content["calls"]
        if not calls or not all(map(_is_call, calls)):
            raise TypeError("a call is missing, or no call")
    except FileNotFoundError:
        return [None]
    except (UnreadableError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged: put it back, or delete it, and the result says that "
            "the provenance of the run's beginning is not known."
        ) from error
    return list(calls)


def _is_call(call: Any) -> bool:
    if call is None:
        return True
    seconds = call["seconds"]
    is_number = type(seconds) in (int, float)
    return is_number and math.isfinite(seconds) and seconds >= 0
