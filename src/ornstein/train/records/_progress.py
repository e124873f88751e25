"""A progress bar with the numbers that one watches."""

from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ._callbacks import Plan


class ProgressBar:
    """ELBO, KL, accuracy, ECE and the time left, on a rich console.

    Of a function without a bound: the loss, and the energy of its prior if it has one.

    Args:
        console: where to draw it; the command line's, for instance.
    """

    def __init__(self, console: Console):
        self.progress = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = TaskID(0)
        self._plan: Plan | None = None

    def start(self, plan: Plan) -> None:
        """Draw the bar."""
        self._plan = plan
        self._task = self.progress.add_task(
            "train",
            total=plan.num_steps,
            completed=plan.first_step,
            epoch=f"0/{plan.num_epochs}",
            numbers="compiling",
        )
        self.progress.start()

    def advance(self, step: int, record: dict[str, Any]) -> None:
        """Move the bar and refresh the numbers."""
        assert self._plan is not None
        steps_per_epoch = self._plan.num_steps // self._plan.num_epochs
        epoch = -(-step // steps_per_epoch)
        self.progress.update(
            self._task,
            completed=step,
            epoch=f"{epoch}/{self._plan.num_epochs}",
            numbers=_numbers(record, self._plan),
        )

    def epoch(self, record: dict[str, Any]) -> None:
        """Show the epoch's numbers, those of the validation split included."""
        assert self._plan is not None
        self.progress.update(self._task, numbers=_numbers(record, self._plan))

    def stop(self) -> None:
        """Leave the bar as it is."""
        self.progress.stop()


def _numbers(record: dict[str, Any], plan: Plan) -> str:
    """The KL is all of it: of what examples share, and of single examples.

    Where there is none (of an ensemble), it is not shown.
    """
    if "kl" in record:
        record = record | {"kl": record["kl"] + record.get("local_kl", 0.0)}
    bound = [("ELBO", "elbo", "{:.4g}"), ("KL", "kl", "{:.3g}")]
    density = [("loss", "loss", "{:.4g}"), ("energy", "kl", "{:.3g}")]
    shown = [
        *(bound if plan.has_bound else density),
        ("acc", "accuracy", "{:.4f}"),
        ("ECE", "ece", "{:.4f}"),
        ("val NLL", "val_nll", "{:.4f}"),
    ]
    return "  ".join(
        f"{title} {pattern.format(record[name])}"
        for title, name, pattern in shown
        if name in record and not (name == "kl" and record[name] == 0)
    )
