"""How the runs of a sweep are carried out: the contract, and processes of our own."""

import abc
import dataclasses
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable

import numpy as np

from .._sentence import OptionError
from ._job import PAUSE, Attempt, Job, Outcome, stop


class AbstractEngine(abc.ABC):
    """Carries out runs that need nothing of each other."""

    @abc.abstractmethod
    def outcomes(
        self, jobs: Iterable[Job], heed: Callable[[], None]
    ) -> Generator[Outcome, None, None]:
        """How each run ended, as they end.

        Where the iterator is left early, runs are interrupted, and save what they have.

        Args:
            jobs: the runs.
            heed: called several times a second; what it raises stops the runs.
        """


@dataclasses.dataclass(frozen=True)
class Processes(AbstractEngine):
    """Processes of this machine, each with its share of the cores.

    Two runs that each have threads for every core take longer than one after the other.

    Attributes:
        num_workers: runs at a time.
    """

    num_workers: int = 1

    def __post_init__(self) -> None:
        if self.num_workers < 1:
            raise OptionError(
                "{workers} must be positive, got {}: give the number of runs at a "
                "time.",
                self.num_workers,
            )

    def outcomes(
        self, jobs: Iterable[Job], heed: Callable[[], None]
    ) -> Generator[Outcome, None, None]:
        """How each run ended, as they end."""
        waiting, running = deque(jobs), dict[int, Attempt]()
        shares = shares_of_cores(self.num_workers)
        try:
            while waiting or running:
                heed()
                for slot, cores in enumerate(shares):
                    if waiting and slot not in running:
                        number = len(cores) or None
                        running[slot] = Attempt(
                            waiting.popleft(), num_cores=number, cores=cores
                        )
                for slot, attempt in list(running.items()):
                    outcome = attempt.poll()
                    if outcome is not None:
                        del running[slot]
                        yield outcome
                time.sleep(PAUSE)
        finally:
            stop(running.values())


def shares_of_cores(num_workers: int) -> list[list[int]]:
    """The cores of each of several workers; one alone has no need to be told.

    Args:
        num_workers: may be more than there are cores, which are then shared.
    """
    if num_workers == 1 or not hasattr(os, "sched_getaffinity"):
        return [[] for _ in range(num_workers)]
    cores = sorted(os.sched_getaffinity(0))
    if num_workers > len(cores):
        return [[cores[slot % len(cores)]] for slot in range(num_workers)]
    return [part.tolist() for part in np.array_split(cores, num_workers)]
