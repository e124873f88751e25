"""A fit that takes its next epoch when asked, so that it can be timed."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ornstein.data import Split
from ornstein.train import Plan, Validation, fit


def epochs_of(model: Any, data: Split, *args: Any, **options: Any) -> Callable:
    """A function that takes an epoch of `fit` as it comes, with these arguments.

    `fit` runs in a thread, since it returns only at the end. One call of its program
    may take several epochs, unless each ends with a validation: here of one row, which
    is part of what is timed.
    """
    turns = _Turns()
    options["validation"] = Validation(data.rows(np.arange(1)), num_draws=1)

    def run() -> None:
        fit(model, data, *args, num_epochs=10_000, callbacks=[turns], **options)

    threading.Thread(target=run, daemon=True).start()
    return turns.next_epoch


class _Turns:
    """A callback that holds a fit back until its next epoch is asked for."""

    def __init__(self):
        self._asked, self._done = threading.Semaphore(0), threading.Semaphore(0)

    def next_epoch(self) -> None:
        """Let the fit go on, and wait for it."""
        self._asked.release()
        if not self._done.acquire(timeout=600):
            raise RuntimeError("The fit has stopped: see its thread's traceback.")

    def start(self, plan: Plan) -> None:
        self._asked.acquire()

    def advance(self, step: int, record: dict[str, Any]) -> None:
        pass

    def epoch(self, record: dict[str, Any]) -> None:
        self._done.release()
        self._asked.acquire()

    def stop(self) -> None:
        pass
