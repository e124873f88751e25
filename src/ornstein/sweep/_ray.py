"""The runs of a sweep on a cluster, or on this machine, by Ray."""

import contextlib
import dataclasses
import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from .._sentence import OptionError
from ._engine import AbstractEngine
from ._job import Job, Outcome, carry_out

_LOOK = 0.5
"""Seconds from one look at signals to the next."""
_SAVING = 120.0
"""Seconds that interrupted runs have to save what they have."""


@dataclasses.dataclass(frozen=True)
class Ray(AbstractEngine):
    """Tasks of Ray (Moritz et al., 2018), each of which starts a run as a process.

    Of the cluster that the variable `RAY_ADDRESS` names, or of one that this process
    starts on its machine and ends. All machines must see the sweep's folder and the
    data at the same paths.

    Attributes:
        num_workers: runs at a time; by default as many as the cluster has room for, or
            one on this machine alone.
        num_cpus: cores of each run.
        num_gpus: accelerators of each run, 0.25 for four runs on one. Without any, a
            run sees none.
    """

    num_workers: int | None = None
    num_cpus: int = 1
    num_gpus: float = 0.0

    def __post_init__(self) -> None:
        given = {"workers": self.num_workers, "cpus": self.num_cpus}
        for name, value in given.items():
            if value is not None and value < 1:
                raise OptionError(f"{{{name}}} must be positive, got {{}}.", value)
        if self.num_gpus < 0:
            raise OptionError("{gpus} must not be negative, got {}.", self.num_gpus)
        _import()

    def outcomes(
        self, jobs: Iterable[Job], heed: Callable[[], None]
    ) -> Generator[Outcome, None, None]:
        """How each run ended, as they end."""
        ray = _import()
        waiting, running = list(jobs)[::-1], {}
        address = os.environ.get("RAY_ADDRESS")
        with _session(ray, address, self) as most:
            # A run goes on where it was, so that it may be tried again elsewhere.
            task = ray.remote(num_cpus=self.num_cpus, num_gpus=self.num_gpus)(carry_out)
            try:
                while waiting or running:
                    heed()
                    while waiting and (most is None or len(running) < most):
                        job = waiting.pop()
                        running[task.remote(job, self.num_cpus)] = job
                    done, _ = ray.wait(list(running), timeout=_LOOK)
                    for reference in done:
                        yield _outcome(ray, reference, running.pop(reference))
            finally:
                for reference in running:
                    ray.cancel(reference)
                if running:
                    ray.wait(list(running), num_returns=len(running), timeout=_SAVING)


@contextlib.contextmanager
def _session(ray: Any, address: str | None, engine: Ray) -> Iterator[int | None]:
    """A connection to a cluster; the most runs at a time, if there is such a number."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    most = engine.num_workers
    if address is None:
        most = 1 if most is None else most
        with warnings.catch_warnings():
            # JAX's, of forks: what Ray forks becomes another program at once.
            warnings.filterwarnings("ignore", message=r".*os\.fork\(\)")
            ray.init(
                address="local",
                num_cpus=most * engine.num_cpus,
                include_dashboard=False,
                **quiet,
            )
    else:
        ray.init(address=address, **quiet)
    try:
        for number, handler in before.items():  # it has one for SIGTERM, which exits
            signal.signal(number, handler)
        yield most
    finally:
        ray.shutdown()


def _outcome(ray: Any, reference: Any, job: Job) -> Outcome:
    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Outcome(job.name, 1, lines[-1].strip(), 0.0)


def _import() -> Any:
    try:
        import ray  # extra `ray`: heavy
    except ImportError as error:
        raise OptionError(
            "{engine} ray needs Ray, which is not installed: `pip install "
            "'ornstein[ray]'`, or leave it out for processes of this machine."
        ) from error
    return ray
