"""What hears about chains while they run: a progress bar above all."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class SamplingPlan(NamedTuple):
    """What chains are going to do.

    Attributes:
        num_warmup: steps of the warm-up, at most.
        num_samples: kept of each chain.
        num_chains: side by side.
        thin: steps from one kept sample to the next.
        num_parameters: numbers that are sampled.
        first_step: steps already taken, in chains that are resumed.
    """

    num_warmup: int
    num_samples: int
    num_chains: int
    thin: int
    num_parameters: int
    first_step: int

    @property
    def num_steps(self) -> int:
        """Of each chain, in all."""
        return self.num_warmup + self.num_samples * self.thin


@runtime_checkable
class SamplingCallback(Protocol):
    """Something that hears about chains. Call order: start, advance*, stop.

    A `KeyboardInterrupt` that it raises ends the chains after their state is saved.

    A record has `phase` ("warm-up" or "sampling"), `num_kept`, `num_divergent`, and
    where they exist `acceptance_rate`, `step_size` and `r_hat` (the largest of a few
    parameters'). Of `optimised_starts` it has the phase "members" and their mean
    `energy`, and nothing else.
    """

    def start(self, plan: SamplingPlan) -> None:
        """Every check has passed; the chains are about to run."""
        ...

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Some steps were taken, `step` in all."""
        ...

    def stop(self) -> None:
        """The chains ended, were interrupted, or failed."""
        ...


class ChainProgress:
    """Acceptance, divergences, R-hat and the time left, on a rich console.

    Args:
        console: where to draw it; the command line's, for instance.
    """

    def __init__(self, console: Console):
        self.progress = Progress(
            TextColumn("{task.fields[phase]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = TaskID(0)

    def start(self, plan: SamplingPlan) -> None:
        """Draw the bar."""
        self._task = self.progress.add_task(
            "sample",
            total=plan.num_steps,
            completed=plan.first_step,
            phase=f"{plan.num_chains} chains",
            numbers="compiling",
        )
        self.progress.start()

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Move the bar and refresh the numbers."""
        self.progress.update(
            self._task,
            completed=step,
            phase=record["phase"],
            numbers=_numbers(record),
        )

    def stop(self) -> None:
        """Leave the bar as it is."""
        self.progress.stop()


def _numbers(record: dict[str, Any]) -> str:
    shown = [
        ("samples", "num_kept", "{:d}"),
        ("energy", "energy", "{:.4g}"),
        ("acceptance", "acceptance_rate", "{:.2f}"),
        ("step size", "step_size", "{:.3g}"),
        ("divergences", "num_divergent", "{:d}"),
        ("R-hat", "r_hat", "{:.3f}"),
    ]
    return "  ".join(
        f"{title} {pattern.format(record[name])}"
        for title, name, pattern in shown
        if name in record
    )
