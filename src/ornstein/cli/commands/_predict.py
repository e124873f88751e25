"""`ornstein predict`."""

import csv
import dataclasses
import io
import time
from pathlib import Path
from typing import Annotated, Any

import tyro

from ..._files import write_atomically
from ...data import escaped, read_inputs
from ...evaluation import refuse_non_finite_predictions
from ...prediction import predict
from ...recipe import (
    Keys,
    TrainedRun,
    beside,
    by_target,
    is_told_by_series,
    learned_span,
    load_run,
    numbers_in_units,
    provenance,
    read_series,
)
from ...report import save_figure, series_figure
from ...train import RunFolder
from .._output import check_outputs, inputs_of
from .._run_folder import (
    check_draws,
    reading,
    say_draws,
    say_notes,
)
from .._several import ALONE, Several
from .._terminal import Terminal

_INTERVAL = 0.9
_MOST = 0.999999  # probability of an interval, of what single precision can tell
_FIGURES = (".png", ".pdf", ".svg")
_ONE_SERIES = (
    "Note: the run learned a single series (--recognition none): it is what is "
    "predicted, whatever values the file has."
)
_BEGAN_UNKNOWN = (
    "Note: the run learned a single path (--recognition none), and did not keep when "
    "that begins and ends: it begins at the first time of the file, and what was "
    "learned holds until its last value. Give the times and values of training above "
    "those that you ask for, or train again."
)
_BEGAN_APART = (
    "Note: the run learned a single path (--recognition none) of series that begin at "
    "different times: it begins at the first time of the file, and what was learned "
    "holds until its last value."
)


@dataclasses.dataclass(frozen=True)
class Predict:
    """Predict your own inputs with a trained run.

    Needs the run folder alone, and not the data that it learned from. Writes a table
    with a line for each input. The id column of a table, and the names of images' files
    come first. Classes: each one's probability, entropy
    and its epistemic and aleatoric parts (nats). Numbers, in the targets' own units:
    mean, median, interval, epistemic and aleatoric variance. Sequences: the same for
    each time of the file, with its series and time before them; an empty cell was not
    observed, so that times after the last value are the future. Names that a
    spreadsheet would run as a formula have a quote before them.

    Attributes:
        run_folder: what `ornstein train` wrote.
        inputs: a .csv or .parquet file with the columns of the training data, an .npz
            file with x, an image, or a folder of images. Of sequences a table (for
            built-in ones with the columns time, series and value).
        output: the .csv file to write.
        interval: the probability of the interval that is written for numbers, at most
            0.999999; 0.9 by default.
        figure: also draw the bands of the first few series, into this file.
        with_inputs: write the columns of the table beside the prediction.
        separator: between cells of a .csv; seen from its header by default.
        draws: functions averaged over; the run's number by default.
        overwrite: replace files that are there; never an input, or a run's own.
        mesh: several devices that share the work, such as data=4 (rows) or draws=4.
        several: processes that share the work.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    inputs: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="INPUT")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    interval: float | None = None
    figure: Path | None = None
    with_inputs: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    separator: str | None = None
    draws: int | None = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    mesh: str | None = None
    several: Annotated[Several, tyro.conf.arg(name="")] = ALONE
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        if not 0 < self._level < 1:
            raise ValueError(
                f"--interval must lie above 0 and below 1, got {self.interval}."
            )
        if self._level > _MOST:
            raise ValueError(
                f"--interval must be at most {_MOST}, got {self.interval}: the ends of "
                "wider ones are rounding errors of single precision."
            )
        if self.output.suffix.lower() != ".csv" or self.output.is_dir():
            raise ValueError(f"--output must be a .csv file, got {self.output}.")
        if self.figure is not None and self.figure.suffix.lower() not in _FIGURES:
            raise ValueError(
                f"--figure must end in {', '.join(_FIGURES)}, got {self.figure}."
            )
        self._check_outputs(self.inputs)
        with reading(RunFolder.open(self.run_folder).path):
            return self._predict(terminal, command)

    def _predict(self, terminal: Terminal, command: str) -> dict[str, Any]:
        check_draws(self.draws)
        started = time.monotonic()
        run = load_run(self.run_folder)
        prepared = run.prepared
        self._check_outputs(*inputs_of(prepared.recipe))
        is_series = prepared.data.task == "series"
        if self.figure is not None and not is_series:
            raise ValueError(
                f"--figure draws sequences, and the run learned from "
                f"{prepared.data.name}: leave it out."
            )
        if self.interval is not None and prepared.data.task == "classification":
            raise ValueError(
                f"--interval is of numbers, and the run learned classes from "
                f"{prepared.data.name}: leave it out."
            )
        training = prepared.recipe.training
        draws = training.test_draws if self.draws is None else self.draws
        predicted = self._of_series if is_series else self._of_rows
        columns, written = predicted(run, terminal, num_draws=draws)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(map(_cell, columns))
        for row in zip(*columns.values(), strict=True):
            writer.writerow(map(_cell, row))
        write_atomically(self.output, text.getvalue().encode())
        say_notes(run.notes, terminal)
        num_rows = len(next(iter(columns.values())))
        terminal.say(f"Wrote {self.output}: {num_rows} rows of {', '.join(columns)}")
        if any(name.split(" of ")[0] == "epistemic" for name in columns):
            units = "in nats, and add up to the entropy"
            if "entropy" not in columns:
                units = "variances, in the target's unit squared"
            terminal.say(f"epistemic and aleatoric are {units}")
        seconds = time.monotonic() - started
        return {
            "output": str(self.output),
            **written,
            "num_rows": num_rows,
            "columns": list(columns),
            "num_draws": draws,
            "notes": list(map(str, run.notes)),
            "provenance": provenance(command, seed=training.seed, seconds=seconds),
        }

    @property
    def _level(self) -> float:
        return _INTERVAL if self.interval is None else self.interval

    def _check_outputs(self, *inputs: Path) -> None:
        outputs = {"--output": self.output}
        if self.figure is not None:
            outputs["--figure"] = self.figure
        check_outputs(
            outputs, inputs=inputs, run=self.run_folder, overwrite=self.overwrite
        )

    def _of_rows(
        self, run: TrainedRun, terminal: Terminal, *, num_draws: int
    ) -> tuple[dict[str, list], dict[str, Any]]:
        data = run.prepared.data
        inputs = read_inputs(self.inputs, data, separator=self.separator)
        if self.with_inputs and not inputs.columns:
            raise ValueError(
                f"--with-inputs repeats the columns of a table, and {self.inputs} is "
                "none: leave it out."
            )
        say_draws(run.fit, num_draws, terminal)
        found = run.predict(inputs, num_draws=num_draws)
        refuse_non_finite_predictions(found.prediction)
        say_notes(found.notes, terminal)
        columns = found.to_columns(self._level)
        if self.with_inputs:
            columns = found.to_columns_beside(self._level)
        return columns, {"input_notes": list(found.notes)} if found.notes else {}

    def _of_series(
        self, run: TrainedRun, terminal: Terminal, *, num_draws: int
    ) -> tuple[dict[str, list], dict[str, Any]]:
        prepared, fit, data = run.prepared, run.fit, run.prepared.data
        self._check_series()
        inputs = read_series(self.inputs, prepared.recipe, data)
        if not is_told_by_series(fit.model):
            is_known = learned_span(prepared.recipe, data) is not None
            other = _BEGAN_UNKNOWN if data.span is None else _BEGAN_APART
            terminal.say(_ONE_SERIES if is_known else other)
        key = Keys.of(prepared.recipe).test
        prediction = predict(fit, inputs.given, key=key, num_draws=num_draws)
        refuse_non_finite_predictions(prediction)
        numbers = numbers_in_units(prediction, data, self._level)
        by_row = {name: inputs.in_file_order(v) for name, v in numbers.items()}
        columns = beside(inputs.columns, by_target(by_row, data))
        if self.figure is None:
            return columns, {}
        is_own, names = inputs.is_own, inputs.names
        figure = series_figure(prediction, inputs.x, data, is_own=is_own, names=names)
        save_figure(self.figure, figure)
        terminal.say(f"Wrote {self.figure}")
        return columns, {"figure": str(self.figure)}

    def _check_series(self) -> None:
        for option, is_given in (
            ("--with-inputs", self.with_inputs),
            ("--separator", self.separator is not None),
        ):
            if is_given:
                raise ValueError(
                    f"{option} is for tables with a row for each example, and the run "
                    "learned sequences: leave it out."
                )


def _cell(value: Any) -> Any:
    """As it is written: text that a spreadsheet would run is marked."""
    return escaped(value) if isinstance(value, str) else value
