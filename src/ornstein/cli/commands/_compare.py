"""`ornstein compare`."""

import contextlib
import dataclasses
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ..._files import write_atomically
from ..._sentence import does_nothing
from ...comparison import Comparison, compare
from ...data import (
    LabelledFrame,
    TableOptions,
    expanded,
    labelled_frame,
    load,
    raw_rows,
)
from ...plot import ComparedMethod, method_comparison
from ...recipe import provenance
from ...report import save_figure
from .._flags import flagged
from .._output import check_outputs
from .._terminal import Terminal, as_json
from .._usage import UsageError

_FIGURES = (".png", ".pdf", ".svg")


@dataclasses.dataclass(frozen=True)
class Compare:
    """Which method is for your table? Cross-validate each, beside scikit-learn's.

    Families and chains of several kernels, and logistic or ridge regression, a
    forest, a network and (of small tables) a Gaussian process of scikit-learn learn
    from the same folds. NLL in nats a row, with its standard error; accuracy, ECE and
    AUROC of classes; RMSE and the share of rows that the central 90 % band holds of
    numbers; seconds of one fit. One sentence says which to take.

    Attributes:
        data: a .csv, .parquet or .npz file, digits, or uci/NAME.
        target: the column to predict, for tables.
        task: what the target of your own file is; seen from the target by default.
        features: columns to learn from, for tables.
        drop: columns to leave out, for tables.
        id_column: the column that names the rows, for tables.
        separator: between cells of a .csv; seen from its header by default.
        data_dir: the folder of downloaded sets; ORNSTEIN_DATA by default.
        methods: names of methods, all by default; the table has them.
        num_folds: parts of the rows, each of which is tested once.
        effort: times each method's own number of steps: 1 is what `ornstein train` does
            by default, 0.1 is a first look in minutes.
        output: a .json file for all scores, row by row for the NLL.
        figure: also draw them, into this file.
        overwrite: replace files that are there.
        seed: of everything random.
        json: print the result as JSON, and nothing else, on standard output.
    """

    data: str
    target: str | None = None
    task: Literal["classification", "regression"] | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    separator: str | None = None
    data_dir: Path | None = None
    methods: tuple[str, ...] = ()
    num_folds: int = 5
    effort: float = 1.0
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    figure: Path | None = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    seed: int = 0
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        self._check_outputs()
        started = time.monotonic()
        rows = self._rows()
        task = "regression" if rows.class_names is None else "classification"
        terminal.say(
            f"{self.data}: {len(rows.x)} rows of {rows.x.shape[1]} columns, {task}"
        )
        for note in rows.notes:
            terminal.say(f"Note: {flagged(note)}")
        with _without_steps():
            found = compare(
                rows.x,
                rows.y,
                task=task,
                methods=self.methods or None,
                num_folds=self.num_folds,
                effort=self.effort,
                seed=self.seed,
                say=terminal.say,
                keep=lambda found: self._keep(found, rows, command, started),
            )
        title = f"{self.data}, {self.num_folds} folds, effort {self.effort:g}"
        terminal.grid(f"{title} (± standard errors over rows)", found.rows())
        terminal.say(found.advice)
        result = self._keep(found, rows, command, started)
        if self.output is not None:
            terminal.say(f"Wrote {self.output}")
        if self.figure is not None:
            save_figure(self.figure, method_comparison(_lines(found), title=title))
            terminal.say(f"Wrote {self.figure}")
        return result

    def _keep(
        self, found: Comparison, rows: LabelledFrame, command: str, started: float
    ) -> dict[str, Any]:
        """The result; into its file, too, which has what there is after each method."""
        result = self._result(found, rows)
        seconds = time.monotonic() - started
        result["provenance"] = provenance(command, seed=self.seed, seconds=seconds)
        if self.output is not None:
            each = {
                method.name: [float(f"{nll:.5g}") for nll in method.nll]
                for method in found.methods
            }
            whole = as_json(result | {"nll_of_rows": each})
            text = json.dumps(whole, indent=1, allow_nan=False)
            write_atomically(self.output, text.encode())
        return result

    def _check_outputs(self) -> None:
        if self.output is not None and self.output.suffix.lower() != ".json":
            raise UsageError(f"--output must be a .json file, got {self.output}.")
        if self.figure is not None and self.figure.suffix.lower() not in _FIGURES:
            raise UsageError(
                f"--figure must end in {', '.join(_FIGURES)}, got {self.figure}."
            )
        given = {"--output": self.output, "--figure": self.figure}
        outputs = {name: path for name, path in given.items() if path is not None}
        inputs = [path for path in [expanded(self.data)] if path.exists()]
        check_outputs(outputs, inputs=inputs, run=None, overwrite=self.overwrite)

    def _rows(self) -> LabelledFrame:
        """All rows, as they are."""
        import pandas as pd

        path = expanded(self.data)
        suffix = path.suffix.lower()
        if self.data_dir is not None and suffix in (".csv", ".parquet", ".npz"):
            raise does_nothing("data_dir", "data", self.data)
        if suffix in (".csv", ".parquet"):
            options = TableOptions(
                self.target,
                self.task,
                self.features,
                self.drop,
                self.id_column,
                self.separator,
            )
            return labelled_frame(path, options)
        data = load(
            self.data,
            data_dir=self.data_dir,
            target=self.target,
            task=self.task,
            features=self.features,
            drop=self.drop,
            id_column=self.id_column,
            separator=self.separator,
        )
        if data.task == "series":
            raise UsageError(
                f"--data {self.data} holds sequences, and tables are compared: train "
                "--model latent-sde and latent-ode, and see their evaluations."
            )
        x, y = raw_rows(data)
        names = data.feature_names or [f"x{i}" for i in range(x.shape[1])]
        frame = pd.DataFrame(x, columns=list(names))
        classes = data.class_names or None
        return LabelledFrame(frame, y, classes, data.notes)

    def _result(self, found: Comparison, rows: LabelledFrame) -> dict[str, Any]:
        return {
            "data": self.data,
            "task": found.task,
            "num_rows": found.num_rows,
            "num_folds": found.num_folds,
            "effort": self.effort,
            "methods": found.rows(),
            "failed": dict(found.failed),
            "advice": found.advice,
            "notes": list(map(str, rows.notes)),
        }


@contextlib.contextmanager
def _without_steps() -> Iterator[None]:
    """Trainings by the dozen, of which warnings are said and not how each begins."""
    logger = logging.getLogger("ornstein")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _lines(found: Comparison) -> list[ComparedMethod]:
    is_own = {method.name: method.is_own for method in found.methods}
    return [
        ComparedMethod(
            row["method"],
            is_own[row["method"]],
            row["behind"],
            row["behind ±"],
            row["seconds"],
        )
        for row in found.rows()
    ]
