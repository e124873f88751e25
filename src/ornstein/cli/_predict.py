"""`ornstein predict`."""

import csv
import dataclasses
import io
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ..data import Data, read_inputs
from ..experiments import Keys, provenance
from ..likelihood import AbstractLocationScaleLikelihood, Categorical
from ..predict import Prediction, predict
from ..train._atomic import write_atomically
from ._run_folder import load_run, say_draws
from ._terminal import Terminal


@dataclasses.dataclass(frozen=True)
class Predict:
    """Predict your own inputs with a trained run.

    Writes a table with a line for each input. Classes: each one's probability, entropy
    and its epistemic and aleatoric parts (nats). Numbers, in the targets' own units:
    mean, median, interval, epistemic and aleatoric variance.

    Attributes:
        run_folder: what `ornstein train` wrote.
        inputs: a .csv or .parquet file with the columns of the training data, an .npz
            file with x, an image, or a folder of images.
        output: the .csv file to write.
        interval: the probability of the interval that is written for numbers.
        draws: functions averaged over; the run's number by default.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    inputs: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="INPUT")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    interval: float = 0.9
    draws: int | None = None
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        started = time.monotonic()
        if not 0 < self.interval < 1:
            raise ValueError(
                f"--interval must lie above 0 and below 1, got {self.interval}."
            )
        if self.output.suffix.lower() != ".csv" or self.output.is_dir():
            raise ValueError(f"--output must be a .csv file, got {self.output}.")
        if not self.output.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {self.output.parent} to write to: make it first."
            )
        _, prepared, fit = load_run(self.run_folder)
        x = read_inputs(self.inputs, prepared.data)
        training = prepared.recipe.training
        draws = training.test_draws if self.draws is None else self.draws
        say_draws(fit, draws, terminal)
        key = Keys.of(prepared.recipe).test
        prediction = predict(fit, x, key=key, num_draws=draws)
        columns = _columns(prediction, prepared.data, self.interval)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        write_atomically(self.output, text.getvalue().encode())
        for note in prepared.data.notes:
            terminal.say(f"Note: {note}")
        terminal.say(f"Wrote {self.output}: {len(x)} rows of {', '.join(columns)}")
        seconds = time.monotonic() - started
        return {
            "output": str(self.output),
            "num_rows": len(x),
            "columns": list(columns),
            "num_draws": draws,
            "notes": list(prepared.data.notes),
            "provenance": provenance(command, seed=training.seed, seconds=seconds),
        }


def _columns(prediction: Prediction, data: Data, level: float) -> dict[str, list]:
    if isinstance(prediction.likelihood, Categorical):
        probs = np.asarray(prediction.probs)
        names = list(data.class_names)
        columns: dict[str, Any] = {"prediction": [names[i] for i in probs.argmax(1)]}
        columns |= {f"p({name})": probs[:, i] for i, name in enumerate(names)}
        columns["entropy"] = np.asarray(prediction.entropy)
    elif isinstance(prediction.likelihood, AbstractLocationScaleLikelihood):
        return _number_columns(prediction, data, level)
    else:
        probs = np.asarray(prediction.probs)
        names = _target_names(data, probs.shape[1])
        columns = {f"p({name})": probs[:, i] for i, name in enumerate(names)}
    columns["epistemic"] = np.asarray(prediction.epistemic)
    columns["aleatoric"] = np.asarray(prediction.aleatoric)
    return {name: list(values) for name, values in columns.items()}


def _number_columns(
    prediction: Prediction, data: Data, level: float
) -> dict[str, list]:
    """In the units that targets had before they were standardised."""
    lower, upper = prediction.interval(level)
    values = {"median": prediction.median, "lower": lower, "upper": upper}
    if prediction.summary is not None:
        values = {"mean": prediction.mean, **values}
    undo = lambda v: v if data.y_scaling is None else data.y_scaling.undo(v)
    values = {name: undo(np.asarray(value)) for name, value in values.items()}
    if prediction.summary is not None and prediction.summary.aleatoric is not None:
        scale = 1.0 if data.y_scaling is None else data.y_scaling.scale
        for name in ("epistemic", "aleatoric"):
            values[name] = np.asarray(getattr(prediction, name)) * np.square(scale)
    num_columns = values["median"].shape[1]
    names = _target_names(data, num_columns)
    suffix = lambda name: "" if num_columns == 1 else f" of {name}"
    return {
        f"{what}{suffix(name)}": list(value[:, i])
        for i, name in enumerate(names)
        for what, value in values.items()
    }


def _target_names(data: Data, num_columns: int) -> list[str]:
    if len(data.target_names) == num_columns:
        return list(data.target_names)
    return [f"y{i}" for i in range(num_columns)]
