"""How a command ends early: Ctrl-C, and the SIGTERM of schedulers and shutdowns."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .._processes import largest, num_processes
from ..sampling import SamplingPlan
from ..train import Plan


class Terminated(KeyboardInterrupt):
    """SIGTERM: all that ends at a Ctrl-C ends at it, too."""


_NUMBERS = (None, KeyboardInterrupt, Terminated)


class Interruption:
    """Turns SIGINT and SIGTERM into exceptions, in training between two steps only.

    A callback of `fit` and of `sample`, to be the last of them. Between its `start` and
    its `stop` the first signal waits for the end of the compiled call under way (of
    a second to three, of one step that takes longer, or of the compilation), so that
    the checkpoint loses nothing. A second one does not wait.
    """

    def __init__(self) -> None:
        self._waits = False
        self._met: type[KeyboardInterrupt] | None = None

    def start(self, plan: Plan | SamplingPlan) -> None:
        """Signals wait from here on."""
        del plan
        self.hold()

    def hold(self) -> None:
        """Signals wait for `raise_if_met`, outside of training too."""
        self._waits = True
        self.raise_if_met()

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """What was met is raised."""
        del step, record
        self.raise_if_met()

    def epoch(self, record: dict[str, Any]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Signals no longer wait."""
        self._waits = False

    def raise_if_met(self) -> None:
        """Raise the signal that has waited, if any.

        Of several processes that share a run, all raise what one of them met: alone,
        it would leave the others waiting for it.
        """
        if num_processes() > 1 and self._waits:
            (number,) = largest(_NUMBERS.index(self._met))
            self._met = _NUMBERS[number]
        met, self._met = self._met, None
        if met is not None:
            raise met

    def raise_last(self) -> None:
        """The same, after which signals no longer wait: what ends may take long."""
        try:
            self.raise_if_met()
        except KeyboardInterrupt:
            self.stop()
            raise

    def meet(self, number: int, frame: FrameType | None) -> None:
        """A signal's handler."""
        del frame
        met = Terminated if number == signal.SIGTERM else KeyboardInterrupt
        is_first, self._met = self._met is None, met
        if self._waits and is_first:
            return
        # Kept too: what is raised in a callback of the garbage collector, as JAX has
        # one, ends there.
        raise met


@contextlib.contextmanager
def handled(interruption: Interruption) -> Iterator[None]:
    """Its handlers while a command runs; Python lets the main thread alone have any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, interruption.meet) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
