"""`ornstein report`, and the report that `train` and `sample` leave."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any

import tyro

from ...data import Data
from ...prediction import Fitted, Prediction
from ...report import keep_rows, save_rows, write_report
from ...train import RunFolder
from .._output import check_outputs
from .._run_folder import reading
from .._terminal import Terminal

_PAGE = "report.html"


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the report of a run, or of several side by side, as one HTML file.

    What was learned, how good, how far to trust it: scores with standard errors,
    calibration, uncertainty, single test rows, chains, the diagnosis, the model card.
    The file needs no network. It is made of what the run folders keep: no data are
    opened, but for runs of before, which predict their test rows again.

    Attributes:
        runs: what `ornstein train` or `sample` wrote.
        output: the file; report.html in the run's folder by default, or here of several
            runs.
        overwrite: replace a file that is there; a run's own report is always replaced.
        json: print the result as JSON, and nothing else, on standard output.
    """

    runs: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN ...]")
    ]
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        del command
        started = time.monotonic()
        folders = [RunFolder.open(path).path for path in self.runs]
        path = self._checked_output(folders)
        with reading(*folders):
            write_report(folders, path, say=terminal.say)
        seconds = round(time.monotonic() - started, 1)
        terminal.say(f"Wrote {path}")
        return {
            "report": str(path),
            "runs": [str(folder) for folder in folders],
            "num_bytes": path.stat().st_size,
            "seconds": seconds,
        }

    def _checked_output(self, folders: list[Path]) -> Path:
        if not folders:
            raise ValueError("give the folder of a run, or of several: RUN [RUN ...].")
        own = folders[0] / _PAGE
        path = self.output
        if path is None:
            path = own if len(folders) == 1 else Path(_PAGE)
        if len(folders) == 1 and path.resolve() == own.resolve():
            return path
        for folder in folders:
            check_outputs(
                {"--output": path}, inputs=(), run=folder, overwrite=self.overwrite
            )
        return path


def leave_report(
    run: RunFolder,
    fit: Fitted,
    prediction: Prediction,
    data: Data,
    terminal: Terminal,
) -> list[Path]:
    """What a run keeps for reports, and its first one; say what was written.

    A run that is finished is not lost by it: what goes wrong is a line.

    Args:
        run: finished, with its result.
        fit: what was trained, or samples.
        prediction: of the test rows.
        data: whose test rows they are.
        terminal: for people.
    """
    written: list[Path] = []
    try:
        written.append(save_rows(run.path, keep_rows(fit, prediction, data)))
        written.append(write_report(run.path, run.path / _PAGE))
    except Exception as error:  # whatever it is, the run has its result
        reason = f"{type(error).__name__}: {error}"
        terminal.say(
            f"Note: there is no report ({reason}); the run is whole, and `ornstein "
            f"report {run.path}` tries again."
        )
    return written
