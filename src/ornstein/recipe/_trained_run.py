"""A trained run, which predicts without the data that it learned from."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import PRNGKeyArray, Shaped
from ..data import (
    Inputs,
    array_inputs,
    array_labelled,
    frame_inputs,
    frame_labelled,
    load_schema,
    read_inputs,
    read_labelled,
)
from ..functions import PosteriorSamples
from ..network import initial_state
from ..prediction import Fitted, FittedModel, pad_few, predict
from ..sampling import NoSamplesYetError
from ..train import CheckpointError, RunFolder, load_model
from ._export_run import Exported, export_fit
from ._run_evaluation import RunEvaluation, judged
from ._run_files import (
    SAMPLES,
    check_kept,
    check_own,
    final_notes,
    final_path,
    is_sampled,
    read_recipe,
    read_sample_recipe,
    schema_path,
)
from ._run_prediction import RunPrediction
from ._run_sampling import open_sampling, sampled_prior
from ._sampling import SampleRecipe
from ._training import Keys, Prepared, prepare, rebuild
from .inputs import load_data
from .models import trained_like

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """A finished run: its fit, and all that it knows of its data.

    `load_run` reads one. Predictions need nothing but its folder; `with_rows` opens the
    file that it learned from.

    Attributes:
        folder: where it is.
        prepared: what its recipe built; data without rows, until `with_rows`.
        fit: the trained model or samples.
        has_rows: whether the data have their rows.
        fit_notes: what its training had to say.
    """

    folder: RunFolder
    prepared: Prepared
    fit: Fitted
    has_rows: bool = False
    fit_notes: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """`"classification"`, `"regression"` or `"series"`."""
        return self.prepared.data.task

    @property
    def class_names(self) -> tuple[str, ...]:
        """In the order of their probabilities; empty where there are no classes."""
        return tuple(self.prepared.data.class_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the columns of the inputs; empty where the source had no names."""
        return tuple(self.prepared.data.feature_names)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Of the columns of the targets; empty where the source had no names."""
        return tuple(self.prepared.data.target_names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers of its predictions must know."""
        own = self.fit.model.posterior_parts().notes
        others = (note for note in self.fit_notes if note not in own)
        return (*self.prepared.data.notes, *own, *others)

    def predict(
        self,
        x: "pd.DataFrame | Shaped[np.ndarray, 'rows ...'] | str | Path | Inputs",
        *,
        num_draws: int | None = None,
        separator: str | None = None,
        key: PRNGKeyArray | None = None,
    ) -> RunPrediction:
        """Predict new rows, given and answered in the data's own units.

        Safe to call from several threads. Counts of rows share a few compiled programs.

        Args:
            x: a table with the columns that the run learned from; raw features or
                images, rows first; or the path of a file or folder of them. Nothing
                is to be standardised before.
            num_draws: functions averaged over; the run's own number by default.
            separator: between cells of a `.csv`; seen from its header by default.
            key: which functions; the run's own by default, as `ornstein predict` has.

        Raises:
            ValueError: for a run of sequences, and for inputs that cannot be used.
        """
        data, recipe = self.prepared.data, self.prepared.recipe
        if data.task == "series":
            raise ValueError(
                f"{self.folder.path} learned sequences: predict them by `ornstein "
                "predict RUN INPUT -o OUTPUT`, or by `orn.predict(run.fit, series)`."
            )
        if isinstance(x, Inputs):
            inputs = x
        elif isinstance(x, str | Path):
            inputs = read_inputs(x, data, separator=separator)
        elif isinstance(x, np.ndarray) or not hasattr(x, "columns"):
            inputs = array_inputs(np.asarray(x), data)
        else:
            inputs = frame_inputs(x, data)
        draws = recipe.training.test_draws if num_draws is None else num_draws
        key = Keys.of(recipe).test if key is None else key
        prediction = predict(
            self.fit, pad_few(inputs.x), key=key, num_draws=draws, pad_rows=True
        )
        return RunPrediction(prediction, data, inputs)

    def evaluate(
        self,
        x: "pd.DataFrame | Shaped[np.ndarray, 'rows ...'] | str | Path",
        y: "Shaped[np.ndarray, '...'] | None" = None,
        *,
        num_draws: int | None = None,
        separator: str | None = None,
        key: PRNGKeyArray | None = None,
    ) -> RunEvaluation:
        """Judge the run by new rows whose targets are known, such as later ones.

        Rows of a table without a target are left out, and a note says how many.

        Args:
            x: a table with the columns that the run learned from and those of the
                target; the path of one, of an `.npz` file with x and y, or of a folder
                of images with a sub-folder for each class; or raw features or images.
            y: beside raw features or images: names of classes, or numbers in the
                target's own units.
            num_draws: functions averaged over; the run's own number by default.
            separator: between cells of a `.csv`; seen from its header by default.
            key: which functions; the run's own by default, as its test rows had them.

        Example:
            ```python
            run.evaluate("later.csv").scores["nll"]
            ```

        Raises:
            ValueError: for a run of sequences, and for rows that cannot be used.
        """
        data = self.prepared.data
        if data.task == "series":
            raise ValueError(
                f"{self.folder.path} learned sequences, and only rows with a target "
                "are judged here: predict the new ones by `ornstein predict RUN INPUT "
                "-o OUTPUT`."
            )
        table: Any = x if hasattr(x, "columns") else None
        if (y is None) != (table is not None or isinstance(x, str | Path)):
            raise ValueError(
                "`y` goes beside arrays, and tables and files have the target "
                "themselves: give `evaluate(x, y)` or `evaluate(table)`."
            )
        if isinstance(x, str | Path):
            rows = read_labelled(x, data, separator=separator)
        elif table is not None:
            rows = frame_labelled(table, data)
        else:
            rows = array_labelled(np.asarray(x), np.asarray(y), data)
        found = self.predict(rows.inputs, num_draws=num_draws, key=key)
        return judged(found, rows, data)

    def export(
        self,
        path: str | Path,
        *,
        num_draws: int | None = None,
        num_rows: int | None = None,
        key: PRNGKeyArray | None = None,
    ) -> Exported:
        """Write what `predict` says as a program that needs JAX alone.

        `jax.export.deserialize` reads it, and `call` takes raw inputs as float32: as
        the JSON file beside it says. Weights and draws are in it.

        Args:
            path: of the program, a file of StableHLO.
            num_draws: functions averaged over; the run's own number by default.
            num_rows: that it takes; any number by default.
            key: which functions; the run's own by default.

        Raises:
            ValueError: for a run of sequences, and for models that must know how many
                rows there are.
        """
        recipe = self.prepared.recipe
        return export_fit(
            self.fit,
            self.prepared.data,
            Path(path),
            key=Keys.of(recipe).test if key is None else key,
            num_draws=recipe.training.test_draws if num_draws is None else num_draws,
            num_rows=num_rows,
        )

    def with_rows(self) -> "TrainedRun":
        """The same run with the rows that it learned from and is tested on.

        Raises:
            DataError: if their file is gone, or is not what it was.
        """
        if self.has_rows:
            return self
        known, recipe = self.prepared.data, self.prepared.recipe
        if known.source is not None:
            known.source.check_unchanged()
        data = load_data(recipe)
        known.check_same(data)
        prepared = self.prepared._replace(data=data)
        return dataclasses.replace(self, prepared=prepared, has_rows=True)


def load_run(folder: str | Path) -> TrainedRun:
    """A finished run of `ornstein train` or `ornstein sample`.

    Args:
        folder: the run's, which may have been moved.

    Example:
        ```python
        run = orn.load_run("runs/housing-1")
        table = run.predict(pandas.read_csv("new.csv")).to_frame()
        ```

    Raises:
        FileNotFoundError: if there is none.
        CheckpointError: if it is not finished, or its model cannot be read.
        ValueError: if its configuration cannot.
    """
    run = RunFolder.open(Path(folder))
    chains = read_sample_recipe(run) if is_sampled(run) else None
    # Its weights are all in its file: none that it started from are needed.
    recipe = chains.recipe if chains else read_recipe(run).changed(pretrained=None)
    check_kept(run)
    if chains is None:
        _check_finished(run)
    check_own(run)
    schema = schema_path(run)
    is_known = schema.is_file()
    # Runs of before keep no schema, and their data are read again.
    prepared = rebuild(recipe, load_schema(schema)) if is_known else prepare(recipe)
    fit = (
        _read_fit(run, prepared) if chains is None else _samples(run, chains, prepared)
    )
    notes = final_notes(run) if chains is None else ()
    return TrainedRun(run, prepared, fit, has_rows=not is_known, fit_notes=notes)


def _check_finished(run: RunFolder) -> None:
    if not final_path(run).is_file():
        kept = "".join(f"; {old} is the run that it replaces" for old in run.replaced)
        raise CheckpointError(
            f"{run.path} is not finished: go on with {run.resuming}{kept}."
        )


def _read_fit(run: RunFolder, prepared: Prepared) -> FittedModel:
    model = trained_like(prepared.recipe, prepared.model, prepared.likelihood)
    like = (model, prepared.likelihood, initial_state(prepared.model))
    return FittedModel(*load_model(final_path(run), like))


def _samples(
    run: RunFolder, recipe: SampleRecipe, prepared: Prepared
) -> PosteriorSamples:
    """What the chains of a run kept.

    Raises:
        CheckpointError: if that is nothing yet, or cannot be read.
    """
    folder = run.checkpoints / SAMPLES
    none_yet = CheckpointError(
        f"{run.path} has no samples yet: go on with {run.resuming}."
    )
    if not folder.exists():  # ended while its starts were looked for
        raise none_yet
    try:
        samples = open_sampling(recipe, prepared, folder)
    except NoSamplesYetError:
        raise none_yet from None
    return samples.with_prior(sampled_prior(recipe, prepared))
