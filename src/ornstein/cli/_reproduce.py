"""`ornstein reproduce`."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ..experiments import EXPERIMENTS, ScaleName, Study, provenance
from ..train._atomic import write_atomically
from ._terminal import Terminal, as_json

ExperimentName = Literal[
    "fig1",
    "fig2",
    "fig8",
    "cost",
    "inducing",
    "posterior",
    "exactness",
    "sghmc-distributions",
    "csgd-ellipses",
    "bbb-pruning",
    "mnist-samplers",
    "bandit",
    "uci",
    "ibnn-fig1",
    "ibnn-fig2",
    "ibnn-fig3",
    "ibnn-fig4",
    "ibnn-fig7",
    "ibnn-fig8",
    "ibnn-table1",
    "ibnn-benchmark",
    "ibnn-components",
    "ibnn-pretrained",
]


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """Make a figure or table again; finished pieces are kept, and gone on from.

    Attributes:
        name: which one; `ornstein info` has a line on each.
        scale: quick is minutes on two cores, gpu at most 25 minutes on one
            accelerator, full the paper's own budget.
        out: the folder of pieces, figures and result; runs/NAME-SCALE by default.
        seed: of everything random.
        json: print the result as JSON, and nothing else, on standard output.
    """

    name: Annotated[ExperimentName, tyro.conf.Positional]
    scale: ScaleName = "quick"
    out: Path | None = None
    seed: int = 0
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        started = time.monotonic()
        experiment = EXPERIMENTS[self.name]
        out = self.out or Path("runs") / f"{self.name}-{self.scale}"
        if out.exists() and not out.is_dir():
            raise FileExistsError(f"{out} is a file: name a folder with --out.")
        terminal.say(f"{self.name}: {experiment.summary}")
        study = Study(out, self.scale, seed=self.seed, say=terminal.say)
        try:
            rows = experiment.run(study)
        except KeyboardInterrupt:
            terminal.say(f"Interrupted: `{command}` goes on from the pieces in {out}.")
            raise
        seconds = time.monotonic() - started
        result = as_json(
            {
                "name": self.name,
                "rows": rows,
                "paper": experiment.paper,
                "provenance": provenance(command, seed=self.seed, seconds=seconds),
            }
        )
        terminal.grid(f"{self.name}, scale {self.scale}", rows)
        terminal.say(f"The paper: {experiment.paper}")
        out.mkdir(parents=True, exist_ok=True)
        path = out / "result.json"
        write_atomically(path, json.dumps(result, indent=2).encode())
        terminal.say(f"Wrote {path}")
        return result
