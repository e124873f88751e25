"""Where the parts of one result come from: computed now, or kept from other calls."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..recipe import provenance

Origin = dict[str, Any]
"""Command, commit, versions, device, seed and seconds of one part."""


class Ledger:
    """The parts of a result, each with the provenance of the call that computed it.

    The commit is that of the start: a checkout may move on while its code runs.

    Args:
        command: of this call, as it was typed.
        seed: of everything random.

    Attributes:
        origin: of what this call computes, without seconds.
    """

    def __init__(self, command: str, *, seed: int):
        self.origin: Origin = provenance(command, seed=seed, seconds=0.0)
        del self.origin["seconds"]
        self._started = time.monotonic()
        self._parts: dict[str, Origin | None] = {}
        self._open: list[dict[str, Origin | None]] = []
        self._computed = 0.0

    def compute(self, work: Callable[[], Any]) -> tuple[Any, Origin, dict[str, Any]]:
        """Do a part of the work.

        Args:
            work: computes the part, and may take others up on its way.

        Returns:
            The part, its origin, and the origins by name of the parts that it took up,
            whose seconds are not in its own.
        """
        started, before = time.monotonic(), self._computed
        self._open.append({})
        try:
            value = work()
        finally:
            taken = self._open.pop()
        elapsed = time.monotonic() - started
        own = max(0.0, elapsed - (self._computed - before))
        self._computed += own
        return value, self.origin | {"seconds": round(own, 1)}, taken

    def take(
        self, name: str, origin: Origin | None, parts: Mapping[str, Any] | None = None
    ) -> None:
        """Enter a part of the result.

        Args:
            name: of the part.
            origin: what it was kept with; `None` if nobody wrote it down.
            parts: those that it was made of, by name.
        """
        for entries in (self._parts, *self._open):
            entries.update(parts or {})
            entries[name] = origin

    def seconds_of(self, name: str) -> float | None:
        """How long a part of the result took; `None` where nobody wrote it down.

        Args:
            name: of a part that was entered.
        """
        origin = self._parts[name]
        return None if origin is None else origin.get("seconds")

    def provenance(self) -> dict[str, Any]:
        """This call's own, and `pieces`: parts by origin, with the seconds of each.

        `call_seconds` are those of this call, and `seconds` those of all the work: the
        pieces', and what this call did beside them. It is `None` where those of a piece
        are not known.
        """
        elapsed = time.monotonic() - self._started
        groups: dict[str, dict[str, Any]] = {}
        total: float | None = elapsed - self._computed
        for name, origin in self._parts.items():
            rest = {"provenance": None} if origin is None else dict(origin)
            seconds = rest.pop("seconds", None)
            group = groups.setdefault(json.dumps(rest, sort_keys=True), rest)
            group.setdefault("seconds", {})[name] = seconds
            total = None if total is None or seconds is None else total + seconds
        return self.origin | {
            "seconds": None if total is None else round(total, 1),
            "call_seconds": round(elapsed, 1),
            "pieces": list(groups.values()),
        }
