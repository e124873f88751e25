"""`ornstein predict`."""

import contextlib
import csv
import dataclasses
import errno
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from .._files import lock_folder, write_atomically
from ..data import Data, escaped, in_raw_units, read_inputs
from ..evaluation import refuse_non_finite_predictions
from ..likelihood import AbstractLocationScaleLikelihood, Categorical
from ..prediction import Fitted, Prediction, predict
from ..recipe import Keys, Prepared, is_told_by_series, provenance, read_series
from ..report import save_figure, series_figure
from ..train import RunFolder
from ._output import check_outputs, inputs_of
from ._run_folder import load_run, say_draws, say_notes
from ._terminal import Terminal

_FIGURES = (".png", ".pdf", ".svg")


@dataclasses.dataclass(frozen=True)
class Predict:
    """Predict your own inputs with a trained run.

    Writes a table with a line for each input. Classes: each one's probability, entropy
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
        interval: the probability of the interval that is written for numbers.
        figure: also draw the bands of the first few series, into this file.
        draws: functions averaged over; the run's number by default.
        overwrite: replace files that are there; never an input, or a run's own.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    inputs: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="INPUT")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    interval: float = 0.9
    figure: Path | None = None
    draws: int | None = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        if not 0 < self.interval < 1:
            raise ValueError(
                f"--interval must lie above 0 and below 1, got {self.interval}."
            )
        if self.output.suffix.lower() != ".csv" or self.output.is_dir():
            raise ValueError(f"--output must be a .csv file, got {self.output}.")
        if self.figure is not None and self.figure.suffix.lower() not in _FIGURES:
            raise ValueError(
                f"--figure must end in {', '.join(_FIGURES)}, got {self.figure}."
            )
        self._check_outputs(self.inputs)
        with _reading(RunFolder.open(self.run_folder).path):
            return self._predict(terminal, command)

    def _predict(self, terminal: Terminal, command: str) -> dict[str, Any]:
        started = time.monotonic()
        _, prepared, fit = load_run(self.run_folder)
        self._check_outputs(*inputs_of(prepared.recipe))
        is_series = prepared.data.task == "series"
        if self.figure is not None and not is_series:
            raise ValueError(
                f"--figure draws sequences, and the run learned from "
                f"{prepared.data.name}: leave it out."
            )
        training = prepared.recipe.training
        draws = training.test_draws if self.draws is None else self.draws
        predicted = self._of_series if is_series else self._of_rows
        columns, written = predicted(prepared, fit, terminal, num_draws=draws)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(map(_cell, columns))
        for row in zip(*columns.values(), strict=True):
            writer.writerow(map(_cell, row))
        write_atomically(self.output, text.getvalue().encode())
        say_notes(prepared.data.notes, terminal)
        num_rows = len(next(iter(columns.values())))
        terminal.say(f"Wrote {self.output}: {num_rows} rows of {', '.join(columns)}")
        seconds = time.monotonic() - started
        return {
            "output": str(self.output),
            **written,
            "num_rows": num_rows,
            "columns": list(columns),
            "num_draws": draws,
            "notes": list(prepared.data.notes),
            "provenance": provenance(command, seed=training.seed, seconds=seconds),
        }

    def _check_outputs(self, *inputs: Path) -> None:
        outputs = {"--output": self.output}
        if self.figure is not None:
            outputs["--figure"] = self.figure
        check_outputs(
            outputs, inputs=inputs, run=self.run_folder, overwrite=self.overwrite
        )

    def _of_rows(
        self, prepared: Prepared, fit: Fitted, terminal: Terminal, *, num_draws: int
    ) -> tuple[dict[str, list], dict[str, str]]:
        x = read_inputs(self.inputs, prepared.data)
        say_draws(fit, num_draws, terminal)
        key = Keys.of(prepared.recipe).test
        prediction = predict(fit, x, key=key, num_draws=num_draws)
        refuse_non_finite_predictions(prediction)
        return _columns(prediction, prepared.data, self.interval), {}

    def _of_series(
        self, prepared: Prepared, fit: Fitted, terminal: Terminal, *, num_draws: int
    ) -> tuple[dict[str, list], dict[str, str]]:
        data = prepared.data
        inputs = read_series(self.inputs, prepared.recipe, data)
        if not is_told_by_series(fit.model):
            terminal.say(
                "Note: the run learned a single series (--recognition none): it is "
                "what is predicted, whatever values the file has."
            )
        key = Keys.of(prepared.recipe).test
        prediction = predict(fit, inputs.x, key=key, num_draws=num_draws)
        refuse_non_finite_predictions(prediction)
        numbers = _numbers(prediction, data, self.interval)
        by_row = {name: inputs.in_file_order(v) for name, v in numbers.items()}
        columns = inputs.columns | _by_target(by_row, data)
        if self.figure is None:
            return columns, {}
        is_own, names = inputs.is_own, inputs.names
        figure = series_figure(prediction, inputs.x, data, is_own=is_own, names=names)
        save_figure(self.figure, figure)
        terminal.say(f"Wrote {self.figure}")
        return columns, {"figure": str(self.figure)}


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """A run that is not replaced meanwhile; one that nobody may write to is not."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(folder, is_shared=True))
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
        yield


def _cell(value: Any) -> Any:
    """As it is written: text that a spreadsheet would run is marked."""
    return escaped(value) if isinstance(value, str) else value


def _columns(prediction: Prediction, data: Data, level: float) -> dict[str, list]:
    if isinstance(prediction.likelihood, Categorical):
        probs = np.asarray(prediction.probs)
        names = list(data.class_names)
        columns: dict[str, Any] = {"prediction": [names[i] for i in probs.argmax(1)]}
        columns |= {f"p({name})": probs[:, i] for i, name in enumerate(names)}
        columns["entropy"] = np.asarray(prediction.entropy)
    elif isinstance(prediction.likelihood, AbstractLocationScaleLikelihood):
        return _by_target(_numbers(prediction, data, level), data)
    else:
        probs = np.asarray(prediction.probs)
        names = _target_names(data, probs.shape[1])
        columns = {f"p({name})": probs[:, i] for i, name in enumerate(names)}
    columns["epistemic"] = np.asarray(prediction.epistemic)
    columns["aleatoric"] = np.asarray(prediction.aleatoric)
    return {name: list(values) for name, values in columns.items()}


def _numbers(prediction: Prediction, data: Data, level: float) -> dict[str, np.ndarray]:
    """In the units that targets had before they were standardised."""
    lower, upper = prediction.interval(level)
    values = {"median": prediction.median, "lower": lower, "upper": upper}
    if prediction.summary is not None:
        values = {"mean": prediction.mean, **values}
    raw = lambda value: in_raw_units(np.asarray(value), data.y_scaling)
    numbers = {name: raw(value) for name, value in values.items()}
    if prediction.summary is not None and prediction.summary.aleatoric is not None:
        scale = 1.0 if data.y_scaling is None else data.y_scaling.scale
        for name in ("epistemic", "aleatoric"):
            numbers[name] = np.asarray(getattr(prediction, name)) * np.square(scale)
    return numbers


def _by_target(numbers: dict[str, np.ndarray], data: Data) -> dict[str, list]:
    """A column for each number of each target, named after the target if several."""
    num_columns = numbers["median"].shape[1]
    names = _target_names(data, num_columns)
    suffix = lambda name: "" if num_columns == 1 else f" of {name}"
    return {
        f"{what}{suffix(name)}": list(value[:, i])
        for i, name in enumerate(names)
        for what, value in numbers.items()
    }


def _target_names(data: Data, num_columns: int) -> list[str]:
    if len(data.target_names) == num_columns:
        return list(data.target_names)
    stem = "value" if data.task == "series" else "y"
    return [f"{stem}{i}" for i in range(num_columns)]
