"""`ornstein export`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import tyro

from ...recipe import description_of, load_run
from .._output import check_outputs
from .._terminal import Terminal, as_json


@dataclasses.dataclass(frozen=True)
class Export:
    """Write what a run predicts as a program that runs without ornstein.

    A file of StableHLO with the weights and the draws in it, which
    `jax.export.deserialize` reads where only JAX and flatbuffers are installed, and
    beside it a JSON file that says what goes in and what comes out.

    Attributes:
        run_folder: what `ornstein train` or `sample` wrote.
        output: the program; the JSON file has .json after its name.
        draws: functions averaged over; the run's number by default.
        num_rows: that the program takes at once; any number by default.
        overwrite: replace files that are there; never a run's own.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    draws: int | None = None
    num_rows: int | None = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        del command
        for name, count in (("--draws", self.draws), ("--num-rows", self.num_rows)):
            if count is not None and count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}.")
        if self.output.is_dir():  # which has no name for the file beside it
            raise ValueError(f"--output {self.output} is a folder: give a file.")
        check_outputs(
            {"--output": self.output, "The JSON file": description_of(self.output)},
            inputs=(),
            run=self.run_folder,
            overwrite=self.overwrite,
        )
        run = load_run(self.run_folder)
        files = run.export(self.output, num_draws=self.draws, num_rows=self.num_rows)
        size = files.program.stat().st_size
        terminal.say(
            f"Wrote {files.program} ({size:,} bytes), and what it takes to "
            f"{files.description}"
        )
        return as_json(
            {
                "run": str(run.folder.path),
                "output": str(files.program),
                "description": str(files.description),
                "bytes": size,
            }
        )
