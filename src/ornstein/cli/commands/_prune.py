"""`ornstein prune`."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated, Any

import tyro

from ..._files import lock_folder, write_atomically
from ...evaluation import evaluate, refuse_non_finite_predictions
from ...functions import MeanField, prune
from ...prediction import Fitted, FittedModel, predict
from ...recipe import (
    Keys,
    Prepared,
    final_path,
    load_run,
    provenance,
)
from ...train import RunFolder, save_sparse
from .._output import check_outputs, inputs_of
from .._run_folder import (
    check_draws,
    say_notes,
)
from .._terminal import Terminal, as_json

_FRACTIONS = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98)
_SCORES = ("rmse", "nll", "ece", "crps")


@dataclasses.dataclass(frozen=True)
class Prune:
    """Remove the weights of a mean-field run whose mean is smallest beside their scale.

    Judges what is left on the test rows, at several fractions and at the one asked
    for. Writes what the latter leaves to a sparse file, which
    `ornstein.train.load_sparse` reads.

    Attributes:
        run_folder: what `ornstein train --model mean-field` wrote.
        fraction: of the weights to remove, at least 0 and below 1.
        output: the sparse file; sparse.npz in the run folder by default.
        draws: functions averaged over; the run's number by default.
        overwrite: replace a sparse file that is there; never an input, or a run's own.
        json: print the result as JSON, and nothing else, on standard output.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    fraction: float = 0.75
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    draws: int | None = None
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        if not 0 <= self.fraction < 1:
            raise ValueError(
                f"--fraction must be at least 0 and below 1, got {self.fraction}: 0.75 "
                "removes three of four weights."
            )
        run = RunFolder.open(self.run_folder)
        sparse = run.path / "sparse.npz" if self.output is None else self.output
        self._check_output(sparse)
        with lock_folder(run.path):
            return self._prune(sparse, terminal, command)

    def _prune(self, sparse: Path, terminal: Terminal, command: str) -> dict[str, Any]:
        check_draws(self.draws)
        started = time.monotonic()
        trained = load_run(self.run_folder).with_rows()
        run, prepared, fit = trained.folder, trained.prepared, trained.fit
        self._check_output(sparse, *inputs_of(prepared.recipe))
        if not isinstance(fit.model, MeanField):
            raise ValueError(
                f"{run.path} holds a `{type(fit.model).__name__}`, whose weights have "
                "no means and scales to rank: give a run of --model mean-field."
            )
        training = prepared.recipe.training
        draws = training.test_draws if self.draws is None else self.draws
        fractions = sorted({*_FRACTIONS, self.fraction})
        curve = [
            _judge(fit, prepared, fraction, num_draws=draws) for fraction in fractions
        ]
        chosen = curve[fractions.index(self.fraction)]
        save_sparse(sparse, prune(fit.model, self.fraction))
        sizes = {
            "sparse_bytes": sparse.stat().st_size,
            "full_bytes": final_path(run).stat().st_size,
        }
        result = {
            "run": str(run.path),
            "data": prepared.recipe.data.data,
            "num_draws": draws,
            **chosen,
            "output": str(sparse),
            **sizes,
            "curve": curve,
            "notes": list(prepared.data.notes),
            "provenance": provenance(
                command, seed=training.seed, seconds=time.monotonic() - started
            ),
        }
        result = as_json(result)
        say_notes(prepared.data.notes, terminal)
        title = f"{run.path} on the test rows of {prepared.data.name}"
        terminal.grid(title, result["curve"])
        path = run.path / "pruning.json"
        write_atomically(path, json.dumps(result, indent=2).encode())
        terminal.say(
            f"Wrote {sparse}: {sizes['sparse_bytes']:,} bytes, where the full model "
            f"has {sizes['full_bytes']:,}; and the curve to {path}"
        )
        return result

    def _check_output(self, sparse: Path, *inputs: Path) -> None:
        # Without --output a file that is there is this command's own, of before.
        name = "The file of an earlier prune," if self.output is None else "--output"
        check_outputs(
            {name: sparse},
            inputs=inputs,
            run=self.run_folder,
            overwrite=self.overwrite,
        )


def _judge(
    fit: Fitted, prepared: Prepared, fraction: float, *, num_draws: int
) -> dict[str, Any]:
    """How well the function predicts without this fraction of its weights."""
    pruned = prune(fit.model, fraction)
    test, key = prepared.data.test, Keys.of(prepared.recipe).test
    left = FittedModel(pruned, fit.likelihood, fit.state)
    prediction = predict(left, test.x, key=key, num_draws=num_draws)
    refuse_non_finite_predictions(prediction)
    scores = evaluate(prediction, test.y)
    row: dict[str, Any] = {"fraction": fraction, "num_weights": pruned.num_weights}
    if "accuracy" in scores:
        row["error"] = 1 - scores["accuracy"]
    return row | {name: scores[name] for name in _SCORES if name in scores}
