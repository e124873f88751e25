"""`ornstein reproduce`."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ..._files import UnreadableError, lock_folder, read_json, write_atomically
from ...recipe import ScaleName
from ...studies import EXPERIMENTS, Experiment, Shelf, Study
from .._terminal import Terminal, as_json

if TYPE_CHECKING:
    ExperimentName = str
else:
    ExperimentName = Literal[tuple(EXPERIMENTS)]


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """Make a figure or table again; finished pieces are kept, and gone on from.

    Attributes:
        name: which one; `ornstein info` has a line on each.
        scale: quick is minutes on two cores, but hours of table1, ibnn-benchmark,
            ibnn-fig7 and ibnn-fig8, and about one of fig7 and fig9; hours (of table1 of
            cifar10 alone) hours on them, gpu at most 25 minutes on one accelerator,
            full the paper's own budget.
        data: the data set of table1: mnist, cifar10, or another one with recipes of
            your own.
        models: of table1, the rows to train, joined by commas: names from `ornstein
            info --recipes`, or recipes of your own such as mine.json; all by default.
            Of uci, the rows to compute, such as yacht, hmc or yacht/hmc; of agreement
            such as mnist, reference or mnist/sgld. Of uci-as-typed such as yacht or
            yacht/auto. Of mnist-rows, numbers of rows. kept computes nothing, and
            shows what is there (agreement, uci and uci-as-typed).
        out: the folder of pieces, figures and result; runs/NAME-SCALE by default, and
            results/table1/DATA-SCALE of table1. Without it uci,
            uci-as-typed, agreement, mnist-rows and mnist-confirmation keep their
            pieces in results/pieces too, and go on from there.
        seed: of everything random, 0 by default. Of table1, fig7, fig9, stl-training
            and mocap, whose recipes have seeds of their own, the only one to run;
            without it they run all of a recipe's.
        json: print the result as JSON, and nothing else, on standard output.
    """

    name: Annotated[ExperimentName, tyro.conf.Positional]
    scale: ScaleName = "quick"
    data: str | None = None
    models: str | None = None
    out: Path | None = None
    seed: int | None = None
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        experiment = EXPERIMENTS[self.name]
        self._check_options(experiment)
        data = "mnist" if self.data is None else self.data
        names = {"name": self.name, "scale": self.scale, "data": data}
        out = self.out or Path(experiment.folder.format(**names))
        if out.exists() and not out.is_dir():
            raise FileExistsError(f"{out} is a file: name a folder with --out.")
        self._check_own(out)
        with _at_work_in(out):
            return self._reproduce(experiment, out, names, terminal, command)

    def _reproduce(
        self,
        experiment: Experiment,
        out: Path,
        names: dict[str, str],
        terminal: Terminal,
        command: str,
    ) -> dict[str, Any]:
        terminal.say(f"{self.name}: {experiment.summary}")
        models = () if self.models is None else _split(self.models)
        shelf = None
        if experiment.shelf is not None and self.out is None:
            shelf = Shelf(Path(experiment.shelf.format(**names)))
        study = Study(
            out,
            self.scale,
            seed=self.seed,
            say=terminal.say,
            data=names["data"],
            models=models,
            command=command,
            shelf=shelf,
        )
        try:
            rows = experiment.run(study)
        except KeyboardInterrupt:
            terminal.say(f"Interrupted: `{command}` goes on from the pieces in {out}.")
            raise
        if study.shows_kept and not rows:
            where = f"{out}" if shelf is None else f"{out} or in results/pieces"
            raise FileNotFoundError(
                f"--models {self.models} shows finished pieces of `reproduce "
                f"{self.name}`, and of --scale {self.scale} and --seed {study.seed} "
                f"none make a row in {where}: leave --models out to compute them, or "
                "name the folder that has them with --out."
            )
        result = as_json(
            {
                "name": self.name,
                "rows": rows,
                "paper": experiment.paper,
                "provenance": study.ledger.provenance(),
            }
        )
        terminal.grid(f"{self.name}, scale {self.scale}", rows)
        terminal.say(f"The paper: {experiment.paper}")
        path = out / "result.json"
        write_atomically(path, json.dumps(result, indent=2).encode())
        terminal.say(f"Wrote {path}")
        return result

    def _check_own(self, out: Path) -> None:
        """Refuse a folder with the files of a run, or of another experiment."""
        path = out / "result.json"
        is_run = (out / "config.json").exists()
        if path.exists() and not is_run:
            try:
                found = read_json(path)
            except UnreadableError as error:
                raise ValueError(
                    f"{path} cannot be read: {error}; take it away, or choose another "
                    "folder with --out."
                ) from error
            is_own = isinstance(found, dict) and found.get("name") == self.name
            is_run = not is_own
        if is_run:
            raise FileExistsError(
                f"--out {out} has the files of a run, or of another experiment than "
                f"{self.name}, which would be replaced: choose another folder."
            )

    def _check_options(self, experiment: Experiment) -> None:
        """Refuse options that the experiment would pass over in silence."""
        if self.scale not in experiment.scales:
            raise ValueError(
                f"--scale {self.scale} is not one of {self.name}'s: give "
                f"{', '.join(experiment.scales)}."
            )
        given = {"data": self.data, "models": self.models}
        for option, value in given.items():
            if value is not None and option not in experiment.options:
                raise ValueError(
                    f"--{option} does nothing for `reproduce {self.name}`: leave it "
                    "out."
                )


@contextlib.contextmanager
def _at_work_in(folder: Path) -> Iterator[None]:
    """Alone in a folder, which is made for it, and is gone again if it stays empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lock_folder(folder):
            yield
    finally:
        with contextlib.suppress(OSError):  # not empty
            for path in made:
                path.rmdir()


def _split(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(",")))
